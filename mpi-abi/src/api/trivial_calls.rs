//! Trivial calls: fast paths of queries that programs call in loops.
//!
//! If calls are not traced, an exported function first calls `trivial_X` with its arguments.
//! If `trivial_X` returns true, it has completed the call.
//! If `trivial_X` returns false, it had no effect, and the call takes the normal path.
//! The normal path has argument checks, the lock, the state page and error handlers.
//! So a trivial call cannot fail or wait. It reads no data that another thread may change.
//! It reads constants and atomics, and the process-wide state only if MPI calls take no lock.

use crate::abi::*;
use crate::api::args::{In, InOut, Out};
use crate::handle::FIRST_DYNAMIC;
use crate::state;
use mpi_core::datatype::Named;
use std::ffi::c_int;

use super::completion::set_empty;

/// Returns rank or size of a communicator without cloning its `Rc`.
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

/// Stores `value` if it is `Some` and the pointer is not null. Returns true if it was stored.
#[inline(always)]
fn give<T>(place: Out<T>, value: Option<T>) -> bool {
    match value {
        Some(value) => place.put(value),
        None => false,
    }
}

#[inline(always)]
pub fn trivial_Comm_rank(comm: MPI_Comm, rank: Out<c_int>) -> bool {
    give(rank, of_comm(comm, |(rank, _)| rank, |comm| comm.rank()))
}

#[inline(always)]
pub fn trivial_Comm_size(comm: MPI_Comm, size: Out<c_int>) -> bool {
    give(size, of_comm(comm, |(_, size)| size, |comm| comm.size()))
}

/// Returns size, lower bound and extent of a predefined datatype.
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
pub fn trivial_Type_size(datatype: MPI_Datatype, size: Out<c_int>) -> bool {
    let bytes = of_type(datatype).and_then(|[size, ..]| c_int::try_from(size).ok());
    give(size, bytes)
}

#[inline(always)]
pub fn trivial_Type_get_extent(
    datatype: MPI_Datatype,
    lb: Out<MPI_Aint>,
    extent: Out<MPI_Aint>,
) -> bool {
    let Some([_, low, apart]) = of_type(datatype) else {
        return false;
    };
    !extent.is_null() && give(lb, Some(low as MPI_Aint)) && give(extent, Some(apart as MPI_Aint))
}

#[inline(always)]
pub fn trivial_Get_count(
    status: In<MPI_Status>,
    datatype: MPI_Datatype,
    count: Out<c_int>,
) -> bool {
    let size = Named::dense_size(datatype.0);
    let Some(status) = status.peek().filter(|_| size.is_power_of_two()) else {
        return false;
    };
    let bytes = status.bytes();
    let whole = match bytes & (size as i64 - 1) {
        0 => c_int::try_from(bytes >> size.trailing_zeros()).ok(),
        _ => None,
    };
    give(count, whole)
}

#[inline(always)]
pub fn trivial_Test(
    request: InOut<MPI_Request>,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> bool {
    if request.peek() != Some(MPI_REQUEST_NULL) {
        return false;
    }
    let done = give(flag, Some(1));
    if done {
        set_empty(status);
    }
    done
}

#[inline(always)]
pub fn trivial_Initialized(flag: Out<c_int>) -> bool {
    give(flag, Some(crate::phase::initialized().into()))
}

#[inline(always)]
pub fn trivial_Finalized(flag: Out<c_int>) -> bool {
    give(flag, Some(crate::phase::finalized().into()))
}
