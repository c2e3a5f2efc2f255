//! Groups of processes (section 7.3).

use super::args::{length, out, read, slice, slice_mut};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, wrong};
use crate::object::session::SessionObject;
use crate::state::{self, state};
use mpi_core::group::{Comparison, Group};
use std::ffi::c_int;
use std::rc::Rc;

/// Gives a group a handle, with the session it derives from; the empty group has its predefined handle.
pub(crate) fn register(
    group: Group,
    session: Option<Rc<SessionObject>>,
) -> Result<MPI_Group, Failure> {
    if group.size() == 0 {
        return Ok(MPI_GROUP_EMPTY);
    }
    let handle = state()
        .tables()
        .groups()
        .borrow_mut()
        .insert((group, session));
    handle
        .map(MPI_Group)
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many groups"))
}

/// Gives a group derived from another one a handle.
fn derive(group: Group, from: MPI_Group) -> Result<MPI_Group, Failure> {
    register(group, session_of(from))
}

/// Returns the session that a group derives from, if any.
pub(crate) fn session_of(group: MPI_Group) -> Option<Rc<SessionObject>> {
    state().tables().groups().borrow().get(group.0)?.1.clone()
}

/// Checks a rank argument that must be in a group.
pub(super) fn member(group: &Group, rank: c_int, name: &str) -> Result<u32, Failure> {
    u32::try_from(rank)
        .ok()
        .filter(|r| *r < group.size())
        .ok_or_else(|| {
            let size = group.size();
            Failure::new(
                MPI_ERR_RANK,
                format!("{name} is {rank}, but its group has {size} members"),
            )
        })
}

/// Converts the result of a comparison.
pub(crate) fn comparison(result: Comparison) -> c_int {
    match result {
        Comparison::Identical => MPI_IDENT,
        Comparison::Congruent => MPI_CONGRUENT,
        Comparison::Similar => MPI_SIMILAR,
        Comparison::Unequal => MPI_UNEQUAL,
    }
}

pub unsafe fn MPI_Group_size(group: MPI_Group, size: *mut c_int) -> Outcome {
    let members = state::group(group)?.size();
    // SAFETY: `size` is null or writable: the C binding of MPI_Group_size requires it of the caller.
    unsafe { out(size, members as c_int, "size") }
}

pub unsafe fn MPI_Group_rank(group: MPI_Group, rank: *mut c_int) -> Outcome {
    let mine = state::group(group)?.rank_of(state::engine()?.me());
    // SAFETY: `rank` is null or writable: the C binding of MPI_Group_rank requires it of the caller.
    unsafe { out(rank, mine.map_or(MPI_UNDEFINED, |r| r as c_int), "rank") }
}

pub unsafe fn MPI_Group_translate_ranks(
    group1: MPI_Group,
    n: c_int,
    ranks1: *const c_int,
    group2: MPI_Group,
    ranks2: *mut c_int,
) -> Outcome {
    let (from, to) = (state::group(group1)?, state::group(group2)?);
    let n = length(n, "n")?;
    // SAFETY: `ranks1` and `ranks2` have `n` elements: the C binding of MPI_Group_translate_ranks requires it of the caller.
    let (ranks1, ranks2) =
        unsafe { (slice(ranks1, n, "ranks1")?, slice_mut(ranks2, n, "ranks2")?) };
    for (rank, translated) in ranks1.iter().zip(ranks2) {
        *translated = match *rank {
            MPI_PROC_NULL => MPI_PROC_NULL,
            rank => {
                let member = u32::try_from(rank).ok().and_then(|r| from.proc(r));
                let member = member.ok_or_else(|| {
                    Failure::new(
                        MPI_ERR_RANK,
                        format!(
                            "rank {rank} is not in group1, which has {} members",
                            from.size()
                        ),
                    )
                })?;
                to.rank_of(member).map_or(MPI_UNDEFINED, |r| r as c_int)
            }
        };
    }
    Ok(())
}

pub unsafe fn MPI_Group_compare(
    group1: MPI_Group,
    group2: MPI_Group,
    result: *mut c_int,
) -> Outcome {
    let compared = state::group(group1)?.compare(&state::group(group2)?);
    // SAFETY: `result` is null or writable: the C binding of MPI_Group_compare requires it of the caller.
    unsafe { out(result, comparison(compared), "result") }
}

pub unsafe fn MPI_Group_union(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
) -> Outcome {
    let new = state::group(group1)?.union(&state::group(group2)?);
    // SAFETY: `newgroup` is null or writable: the C binding of MPI_Group_union requires it of the caller.
    unsafe { out(newgroup, derive(new, group1)?, "newgroup") }
}

pub unsafe fn MPI_Group_intersection(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
) -> Outcome {
    let new = state::group(group1)?.intersection(&state::group(group2)?);
    // SAFETY: `newgroup` is null or writable: the C binding of MPI_Group_intersection requires it of the caller.
    unsafe { out(newgroup, derive(new, group1)?, "newgroup") }
}

pub unsafe fn MPI_Group_difference(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
) -> Outcome {
    let new = state::group(group1)?.difference(&state::group(group2)?);
    // SAFETY: `newgroup` is null or writable: the C binding of MPI_Group_difference requires it of the caller.
    unsafe { out(newgroup, derive(new, group1)?, "newgroup") }
}

/// Reads the ranks argument.
///
/// # Safety
/// `ranks` is an array of the caller with `n` elements.
unsafe fn ranks_of(n: c_int, ranks: *const c_int) -> Result<Vec<i64>, Failure> {
    // SAFETY: `ranks` is valid by the `# Safety` contract of this function.
    unsafe { super::args::widened(ranks, length(n, "n")?, "ranks") }
}

pub unsafe fn MPI_Group_incl(
    group: MPI_Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut MPI_Group,
) -> Outcome {
    // SAFETY: `ranks` and `newgroup` are valid as the C binding of MPI_Group_incl requires of its caller.
    unsafe {
        let new = state::group(group)?.include(&ranks_of(n, ranks)?)?;
        out(newgroup, derive(new, group)?, "newgroup")
    }
}

pub unsafe fn MPI_Group_excl(
    group: MPI_Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut MPI_Group,
) -> Outcome {
    // SAFETY: `ranks` and `newgroup` are valid as the C binding of MPI_Group_excl requires of its caller.
    unsafe {
        let new = state::group(group)?.exclude(&ranks_of(n, ranks)?)?;
        out(newgroup, derive(new, group)?, "newgroup")
    }
}

/// Expands range triplets into ranks.
///
/// # Safety
/// `ranges` is an array of the caller with `n` elements.
unsafe fn expand(group: &Group, n: c_int, ranges: *const [c_int; 3]) -> Result<Vec<i64>, Failure> {
    // SAFETY: `ranges` is valid by the `# Safety` contract of this function.
    let ranges = unsafe { slice(ranges, length(n, "n")?, "ranges")? };
    let ranges: Vec<_> = ranges
        .iter()
        .map(|[a, b, c]| (i64::from(*a), i64::from(*b), i64::from(*c)))
        .collect();
    Ok(group.expand(&ranges)?)
}

pub unsafe fn MPI_Group_range_incl(
    group: MPI_Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group,
) -> Outcome {
    let members = state::group(group)?;
    // SAFETY: `ranges` and `newgroup` are valid as the C binding of MPI_Group_range_incl requires of its caller.
    unsafe {
        let new = members.include(&expand(&members, n, ranges)?)?;
        out(newgroup, derive(new, group)?, "newgroup")
    }
}

pub unsafe fn MPI_Group_range_excl(
    group: MPI_Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group,
) -> Outcome {
    let members = state::group(group)?;
    // SAFETY: `ranges` and `newgroup` are valid as the C binding of MPI_Group_range_excl requires of its caller.
    unsafe {
        let new = members.exclude(&expand(&members, n, ranges)?)?;
        out(newgroup, derive(new, group)?, "newgroup")
    }
}

pub unsafe fn MPI_Group_free(group: *mut MPI_Group) -> Outcome {
    // SAFETY: `group` is null or readable: the C binding of MPI_Group_free requires it of the caller.
    let handle = unsafe { read(group, "group")? };
    // Freeing the empty group is allowed, since functions return it (section 7.3.2).
    if handle != MPI_GROUP_EMPTY {
        let removed = state().tables().groups().borrow_mut().remove(handle.0);
        removed.ok_or_else(|| wrong(Kind::Group, handle.0))?;
    }
    // SAFETY: `group` is null or writable: the C binding of MPI_Group_free requires it of the caller.
    unsafe { out(group, MPI_GROUP_NULL, "group") }
}
