//! Trivial calls: the shortest path of queries that programs make in loops.
//!
//! Unless calls are traced, the exported function first calls `trivial_X`. It has the arguments of `MPI_X` and returns true if it has
//! completed the call; otherwise it has had no effect, and the call takes the normal path with its checks,
//! its lock, the state page and the error handlers.
//! So these functions cannot fail or wait, and use nothing that another thread may change:
//! constants, atomics, and the state only if calls take no lock.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::handle::FIRST_DYNAMIC;
use crate::state;
use mpi_core::datatype::Named;
use std::ffi::c_int;

use super::completion::set_empty;

/// Returns rank or size of a communicator without cloning it.
#[inline(always)]
fn of_comm(
    comm: MPI_Comm,
    world: fn((u32, u32)) -> u32,
    other: fn(&mpi_core::comm::Comm) -> u32,
) -> Option<c_int> {
    if comm == MPI_COMM_WORLD {
        return state::world_place().map(|place| world(place) as c_int);
    }
    if comm.0 < FIRST_DYNAMIC || !state::is_unlocked() {
        return None;
    }
    let comms = state::state().tables().comms().try_borrow().ok()?;
    Some(other(&comms.get(comm.0)?.comm) as c_int)
}

/// Writes an output argument, if a value exists and the pointer is not null; returns true if it did.
///
/// # Safety
/// `place` is null or an output argument of the caller.
#[inline(always)]
unsafe fn give<T>(place: *mut T, value: Option<T>) -> bool {
    match value {
        Some(value) if !place.is_null() => {
            // SAFETY: `place` is valid by the `# Safety` contract of this function.
            unsafe { place.write(value) };
            true
        }
        _ => false,
    }
}

#[inline(always)]
pub unsafe fn trivial_Comm_rank(comm: MPI_Comm, rank: *mut c_int) -> bool {
    // SAFETY: `rank` is valid as the C binding of MPI_Comm_rank requires of its caller.
    unsafe { give(rank, of_comm(comm, |(rank, _)| rank, |comm| comm.rank())) }
}

#[inline(always)]
pub unsafe fn trivial_Comm_size(comm: MPI_Comm, size: *mut c_int) -> bool {
    // SAFETY: `size` is valid as the C binding of MPI_Comm_size requires of its caller.
    unsafe { give(size, of_comm(comm, |(_, size)| size, |comm| comm.size())) }
}

/// Returns size, lower bound and extent of a datatype.
#[inline(always)]
fn of_type(datatype: MPI_Datatype) -> Option<[i64; 3]> {
    let dense = Named::dense_size(datatype.0) as i64;
    if dense != 0 {
        return Some([dense, 0, dense]);
    }
    if datatype.0 < FIRST_DYNAMIC {
        let info = Named::from_handle(datatype.0)?.info();
        return Some([info.size, 0, info.extent]);
    }
    if !state::is_unlocked() {
        return None;
    }
    let types = state::state().tables().types().try_borrow().ok()?;
    let datatype = &types.get(datatype.0)?.datatype;
    Some([datatype.size(), datatype.lb(), datatype.extent()])
}

#[inline(always)]
pub unsafe fn trivial_Type_size(datatype: MPI_Datatype, size: *mut c_int) -> bool {
    let bytes = of_type(datatype).and_then(|[size, ..]| c_int::try_from(size).ok());
    // SAFETY: `size` is valid as the C binding of MPI_Type_size requires of its caller.
    unsafe { give(size, bytes) }
}

#[inline(always)]
pub unsafe fn trivial_Type_get_extent(
    datatype: MPI_Datatype,
    lb: *mut MPI_Aint,
    extent: *mut MPI_Aint,
) -> bool {
    let Some([_, low, apart]) = of_type(datatype) else {
        return false;
    };
    // SAFETY: `lb` and `extent` are null or writable: the C binding of MPI_Type_get_extent requires it of the caller; `lb` is written only if `extent` is not null.
    unsafe {
        !extent.is_null()
            && give(lb, Some(low as MPI_Aint))
            && give(extent, Some(apart as MPI_Aint))
    }
}

#[inline(always)]
pub unsafe fn trivial_Get_count(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut c_int,
) -> bool {
    let size = Named::dense_size(datatype.0);
    if status.is_null() || !size.is_power_of_two() {
        return false;
    }
    // SAFETY: `status` is valid as the C binding of MPI_Get_count requires of its caller.
    let bytes = unsafe { &*status }.bytes();
    let whole = match bytes & (size as i64 - 1) {
        0 => c_int::try_from(bytes >> size.trailing_zeros()).ok(),
        _ => None,
    };
    // SAFETY: `count` is valid as the C binding of MPI_Get_count requires of its caller.
    unsafe { give(count, whole) }
}

#[inline(always)]
pub unsafe fn trivial_Test(
    request: *mut MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> bool {
    // SAFETY: `request` is valid as the C binding of MPI_Test requires of its caller.
    if request.is_null() || unsafe { *request } != MPI_REQUEST_NULL {
        return false;
    }
    // SAFETY: `flag` and `status` are valid as the C binding of MPI_Test requires of its caller.
    unsafe {
        if !give(flag, Some(1)) {
            return false;
        }
        set_empty(status);
    }
    true
}

#[inline(always)]
pub unsafe fn trivial_Initialized(flag: *mut c_int) -> bool {
    // SAFETY: `flag` is valid as the C binding of MPI_Initialized requires of its caller.
    unsafe { give(flag, Some(crate::phase::initialized().into())) }
}

#[inline(always)]
pub unsafe fn trivial_Finalized(flag: *mut c_int) -> bool {
    // SAFETY: `flag` is valid as the C binding of MPI_Finalized requires of its caller.
    unsafe { give(flag, Some(crate::phase::finalized().into())) }
}
