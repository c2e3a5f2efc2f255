//! Groups of processes (section 7.3).

use super::args::{InArray, InOut, InOutArray, Out, length};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::handle::{Kind, exhausted, wrong};
use crate::object::session::SessionObject;
use crate::state::{self, state};
use mpi_core::group::{Comparison, Group};
use std::ffi::c_int;
use std::rc::Rc;

/// Registers a handle for a group, with the session that the group derives from.
/// The empty group has the handle `MPI_GROUP_EMPTY`.
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
    handle.map(MPI_Group).ok_or_else(|| exhausted("groups"))
}

/// Registers a handle for a group derived from another group.
fn derive(group: Group, from: MPI_Group) -> Result<MPI_Group, Failure> {
    register(group, session_of(from))
}

/// Returns the session that a group derives from, if any.
pub(crate) fn session_of(group: MPI_Group) -> Option<Rc<SessionObject>> {
    state().tables().groups().borrow().get(group.0)?.1.clone()
}

/// Checks a rank argument that must be a rank of the group.
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

/// Converts the result of a comparison to a constant such as `MPI_IDENT`.
pub(crate) fn comparison(result: Comparison) -> c_int {
    match result {
        Comparison::Identical => MPI_IDENT,
        Comparison::Congruent => MPI_CONGRUENT,
        Comparison::Similar => MPI_SIMILAR,
        Comparison::Unequal => MPI_UNEQUAL,
    }
}

pub fn MPI_Group_size(group: MPI_Group, size: Out<c_int>) -> Outcome {
    let members = state::group(group)?.size();
    size.set(members as c_int, "size")
}

pub fn MPI_Group_rank(group: MPI_Group, rank: Out<c_int>) -> Outcome {
    let mine = state::group(group)?.rank_of(state::engine()?.me());
    rank.set(mine.map_or(MPI_UNDEFINED, |r| r as c_int), "rank")
}

pub fn MPI_Group_translate_ranks(
    group1: MPI_Group,
    n: c_int,
    ranks1: InArray<c_int>,
    group2: MPI_Group,
    ranks2: InOutArray<c_int>,
) -> Outcome {
    let (from, to) = (state::group(group1)?, state::group(group2)?);
    length(n, "n")?;
    let (ranks1, ranks2) = (ranks1.get("ranks1")?, ranks2.get("ranks2")?);
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

pub fn MPI_Group_compare(group1: MPI_Group, group2: MPI_Group, result: Out<c_int>) -> Outcome {
    let compared = state::group(group1)?.compare(&state::group(group2)?);
    result.set(comparison(compared), "result")
}

pub fn MPI_Group_union(group1: MPI_Group, group2: MPI_Group, newgroup: Out<MPI_Group>) -> Outcome {
    let new = state::group(group1)?.union(&state::group(group2)?);
    newgroup.set(derive(new, group1)?, "newgroup")
}

pub fn MPI_Group_intersection(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let new = state::group(group1)?.intersection(&state::group(group2)?);
    newgroup.set(derive(new, group1)?, "newgroup")
}

pub fn MPI_Group_difference(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let new = state::group(group1)?.difference(&state::group(group2)?);
    newgroup.set(derive(new, group1)?, "newgroup")
}

/// Reads the argument `ranks`, an array of `n` ranks.
fn ranks_of(n: c_int, ranks: InArray<c_int>) -> Result<Vec<i64>, Failure> {
    length(n, "n")?;
    ranks.widened("ranks")
}

pub fn MPI_Group_incl(
    group: MPI_Group,
    n: c_int,
    ranks: InArray<c_int>,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let new = state::group(group)?.include(&ranks_of(n, ranks)?)?;
    newgroup.set(derive(new, group)?, "newgroup")
}

pub fn MPI_Group_excl(
    group: MPI_Group,
    n: c_int,
    ranks: InArray<c_int>,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let new = state::group(group)?.exclude(&ranks_of(n, ranks)?)?;
    newgroup.set(derive(new, group)?, "newgroup")
}

/// Expands range triplets (first, last, stride) into ranks.
fn expand(group: &Group, n: c_int, ranges: InArray<[c_int; 3]>) -> Result<Vec<i64>, Failure> {
    length(n, "n")?;
    let ranges = ranges.get("ranges")?;
    let ranges: Vec<_> = ranges
        .iter()
        .map(|[a, b, c]| (i64::from(*a), i64::from(*b), i64::from(*c)))
        .collect();
    Ok(group.expand(&ranges)?)
}

pub fn MPI_Group_range_incl(
    group: MPI_Group,
    n: c_int,
    ranges: InOutArray<[c_int; 3]>,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let members = state::group(group)?;
    let new = members.include(&expand(&members, n, ranges.input())?)?;
    newgroup.set(derive(new, group)?, "newgroup")
}

pub fn MPI_Group_range_excl(
    group: MPI_Group,
    n: c_int,
    ranges: InOutArray<[c_int; 3]>,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let members = state::group(group)?;
    let new = members.exclude(&expand(&members, n, ranges.input())?)?;
    newgroup.set(derive(new, group)?, "newgroup")
}

pub fn MPI_Group_free(group: InOut<MPI_Group>) -> Outcome {
    let handle = group.get("group")?;
    // MPI functions return MPI_GROUP_EMPTY, so freeing it is allowed (section 7.3.2).
    if handle != MPI_GROUP_EMPTY {
        let removed = state().tables().groups().borrow_mut().remove(handle.0);
        removed.ok_or_else(|| wrong(Kind::Group, handle.0))?;
    }
    group.set(MPI_GROUP_NULL, "group")
}
