//! Cartesian topologies (section 8.5).

use super::{
    arranged, lacks, local_rank, new_rank, parent_of, rank_or_undefined, same_rank, split,
};
use crate::abi::*;
use crate::api::args::{length, out, slice, slice_mut, widened};
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::comm::SplitKey;
use mpi_core::topo::reorder::Wires;
use mpi_core::topo::{Cart, Topology};
use std::ffi::c_int;

/// Returns the grid of a communicator.
fn cart(comm: &CommObject) -> Result<&Cart, Failure> {
    match comm.topology.get() {
        Some(Topology::Cart(cart)) => Ok(cart),
        _ => Err(lacks(comm, "Cartesian")),
    }
}

/// Builds a grid from the arguments of the caller.
///
/// # Safety
/// Pointers that are not null are valid for `ndims` elements.
unsafe fn read(ndims: c_int, dims: *const c_int, periods: *const c_int) -> Result<Cart, Failure> {
    let ndims = length(ndims, "ndims")?;
    // SAFETY: `dims` and `periods` are valid by the `# Safety` contract of this function.
    let (dims, periods) = unsafe {
        (
            widened(dims, ndims, "dims")?,
            slice(periods, ndims, "periods")?,
        )
    };
    Ok(Cart::new(&dims, periods.iter().map(|p| *p != 0).collect())?)
}

/// Stores the values, at most `room` of them.
///
/// # Safety
/// A pointer that is not null is valid for `room` elements.
unsafe fn fill(
    to: *mut c_int,
    room: usize,
    values: impl ExactSizeIterator<Item = c_int>,
    name: &str,
) -> Outcome {
    let len = values.len().min(room);
    // SAFETY: `to` is valid by the `# Safety` contract of this function.
    let to = unsafe { slice_mut(to, len, name)? };
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to = value);
    Ok(())
}

pub unsafe fn MPI_Cart_create(
    comm_old: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    reorder: c_int,
    comm_cart: *mut MPI_Comm,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    // SAFETY: `dims`, `periods` and `comm_cart` are valid as the C binding of MPI_Cart_create requires of its caller.
    unsafe {
        let cart = read(ndims, dims, periods)?.fit(parent.comm.size())?;
        let placed_rank = match reorder {
            0 => same_rank(&parent, cart.size()),
            _ => new_rank(&parent, &Wires::of_cart(&cart), Some(&cart))?,
        };
        let new = arranged(&parent, placed_rank, || Topology::Cart(cart))?;
        out(comm_cart, new, "comm_cart")
    }
}

pub unsafe fn MPI_Cart_map(
    comm: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> Outcome {
    let object = parent_of(comm)?;
    // SAFETY: `dims`, `periods` and `newrank` are valid as the C binding of MPI_Cart_map requires of its caller.
    unsafe {
        let cart = read(ndims, dims, periods)?.fit(object.comm.size())?;
        let placed_rank = local_rank(&object, &Wires::of_cart(&cart), Some(&cart));
        out(newrank, rank_or_undefined(placed_rank), "newrank")
    }
}

pub unsafe fn MPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> Outcome {
    let dims = cart(&*state::comm(comm)?)?.dims().len();
    // SAFETY: `ndims` is null or writable: the C binding of MPI_Cartdim_get requires it of the caller.
    unsafe { out(ndims, dims as c_int, "ndims") }
}

pub unsafe fn MPI_Cart_get(
    comm: MPI_Comm,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let cart = cart(&object)?;
    let room = length(maxdims, "maxdims")?;
    let here = cart.coords(object.comm.rank().into())?;
    // SAFETY: `dims`, `periods` and `coords` have `maxdims` elements: the C binding of MPI_Cart_get requires it of the caller.
    unsafe {
        fill(dims, room, cart.dims().iter().map(|d| *d as c_int), "dims")?;
        fill(
            periods,
            room,
            cart.periods().iter().map(|p| c_int::from(*p)),
            "periods",
        )?;
        fill(coords, room, here.iter().map(|c| *c as c_int), "coords")
    }
}

pub unsafe fn MPI_Cart_coords(
    comm: MPI_Comm,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Outcome {
    let there = cart(&*state::comm(comm)?)?.coords(rank.into())?;
    // SAFETY: `coords` has `maxdims` elements: the C binding of MPI_Cart_coords requires it of the caller.
    unsafe {
        fill(
            coords,
            length(maxdims, "maxdims")?,
            there.iter().map(|c| *c as c_int),
            "coords",
        )
    }
}

pub unsafe fn MPI_Cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> Outcome {
    let object = state::comm(comm)?;
    let cart = cart(&object)?;
    // SAFETY: `coords` has an element for each dimension and `rank` is writable: the C binding of MPI_Cart_rank requires it of the caller.
    unsafe {
        let coords = widened(coords, cart.dims().len(), "coords")?;
        out(rank, cart.rank(&coords)? as c_int, "rank")
    }
}

pub unsafe fn MPI_Cart_shift(
    comm: MPI_Comm,
    direction: c_int,
    disp: c_int,
    rank_source: *mut c_int,
    rank_dest: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let (source, dest) = cart(&object)?.shift(object.comm.rank(), direction.into(), disp.into())?;
    let or_null = |rank: Option<u32>| rank.map_or(MPI_PROC_NULL, |rank| rank as c_int);
    // SAFETY: `rank_source` and `rank_dest` are null or writable: the C binding of MPI_Cart_shift requires it of the caller.
    unsafe {
        out(rank_source, or_null(source), "rank_source")?;
        out(rank_dest, or_null(dest), "rank_dest")
    }
}

pub unsafe fn MPI_Cart_sub(
    comm: MPI_Comm,
    remain_dims: *const c_int,
    newcomm: *mut MPI_Comm,
) -> Outcome {
    let object = state::comm(comm)?;
    let cart = cart(&object)?;
    // SAFETY: `remain_dims` has an element for each dimension and `newcomm` is writable: the C binding of MPI_Cart_sub requires it of the caller.
    unsafe {
        let keep: Vec<bool> = slice(remain_dims, cart.dims().len(), "remain_dims")?
            .iter()
            .map(|keep| *keep != 0)
            .collect();
        let (which, inside, sub) = cart.sub(object.comm.rank(), &keep)?;
        let mine = SplitKey {
            color: Some(which.into()),
            key: inside as i32,
        };
        out(
            newcomm,
            split(&object, mine, || Topology::Cart(sub))?,
            "newcomm",
        )
    }
}
