//! Cartesian topologies (section 8.5).
#![allow(unsafe_code)]

use super::{
    arranged, lacks, local_rank, new_rank, parent_of, rank_or_undefined, same_rank, split,
};
use crate::abi::*;
use crate::api::args::{InArray, InOutArray, Out, Uncounted, length};
use crate::error::{Failure, Outcome};
use crate::object::comm::CommObject;
use crate::state;
use mpi_core::comm::SplitKey;
use mpi_core::topo::reorder::Wires;
use mpi_core::topo::{Cart, Topology};
use std::ffi::c_int;

/// Returns the Cartesian topology of a communicator. Another topology, or none, is an error.
fn cart(comm: &CommObject) -> Result<&Cart, Failure> {
    match comm.topology.get() {
        Some(Topology::Cart(cart)) => Ok(cart),
        _ => Err(lacks(comm, "Cartesian")),
    }
}

/// Builds a Cartesian topology from the caller's arguments.
fn read(ndims: c_int, dims: InArray<c_int>, periods: InArray<c_int>) -> Result<Cart, Failure> {
    length(ndims, "ndims")?;
    let (dims, periods) = (dims.widened("dims")?, periods.get("periods")?);
    Ok(Cart::new(&dims, periods.iter().map(|p| *p != 0).collect())?)
}

/// Stores the values in the array, and drops those beyond its length.
fn fill(
    to: InOutArray<c_int>,
    values: impl ExactSizeIterator<Item = c_int>,
    name: &str,
) -> Outcome {
    let to = to.up_to(values.len()).get(name)?;
    to.iter_mut()
        .zip(values)
        .for_each(|(to, value)| *to = value);
    Ok(())
}

pub fn MPI_Cart_create(
    comm_old: MPI_Comm,
    ndims: c_int,
    dims: InArray<c_int>,
    periods: InArray<c_int>,
    reorder: c_int,
    comm_cart: Out<MPI_Comm>,
) -> Outcome {
    let parent = parent_of(comm_old)?;
    let cart = read(ndims, dims, periods)?.fit(parent.comm.size())?;
    let placed_rank = match reorder {
        0 => same_rank(&parent, cart.size()),
        _ => new_rank(&parent, &Wires::of_cart(&cart), Some(&cart))?,
    };
    let new = arranged(&parent, placed_rank, || Topology::Cart(cart))?;
    comm_cart.set(new, "comm_cart")
}

pub fn MPI_Cart_map(
    comm: MPI_Comm,
    ndims: c_int,
    dims: InArray<c_int>,
    periods: InArray<c_int>,
    newrank: Out<c_int>,
) -> Outcome {
    let object = parent_of(comm)?;
    let cart = read(ndims, dims, periods)?.fit(object.comm.size())?;
    let placed_rank = local_rank(&object, &Wires::of_cart(&cart), Some(&cart));
    newrank.set(rank_or_undefined(placed_rank), "newrank")
}

pub fn MPI_Cartdim_get(comm: MPI_Comm, ndims: Out<c_int>) -> Outcome {
    let dims = cart(&*state::comm(comm)?)?.dims().len();
    ndims.set(dims as c_int, "ndims")
}

pub fn MPI_Cart_get(
    comm: MPI_Comm,
    maxdims: c_int,
    dims: InOutArray<c_int>,
    periods: InOutArray<c_int>,
    coords: InOutArray<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let cart = cart(&object)?;
    length(maxdims, "maxdims")?;
    let here = cart.coords(object.comm.rank().into())?;
    fill(dims, cart.dims().iter().map(|d| *d as c_int), "dims")?;
    fill(
        periods,
        cart.periods().iter().map(|p| c_int::from(*p)),
        "periods",
    )?;
    fill(coords, here.iter().map(|c| *c as c_int), "coords")
}

pub fn MPI_Cart_coords(
    comm: MPI_Comm,
    rank: c_int,
    maxdims: c_int,
    coords: InOutArray<c_int>,
) -> Outcome {
    let there = cart(&*state::comm(comm)?)?.coords(rank.into())?;
    length(maxdims, "maxdims")?;
    fill(coords, there.iter().map(|c| *c as c_int), "coords")
}

pub fn MPI_Cart_rank(comm: MPI_Comm, coords: Uncounted<c_int>, rank: Out<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    let cart = cart(&object)?;
    // SAFETY: `coords` has one element per dimension (section 8.5.5).
    let coords = unsafe { coords.counted(cart.dims().len()) }.widened("coords")?;
    rank.set(cart.rank(&coords)? as c_int, "rank")
}

pub fn MPI_Cart_shift(
    comm: MPI_Comm,
    direction: c_int,
    disp: c_int,
    rank_source: Out<c_int>,
    rank_dest: Out<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let (source, dest) = cart(&object)?.shift(object.comm.rank(), direction.into(), disp.into())?;
    let or_null = |rank: Option<u32>| rank.map_or(MPI_PROC_NULL, |rank| rank as c_int);
    rank_source.set(or_null(source), "rank_source")?;
    rank_dest.set(or_null(dest), "rank_dest")
}

pub fn MPI_Cart_sub(
    comm: MPI_Comm,
    remain_dims: Uncounted<c_int>,
    newcomm: Out<MPI_Comm>,
) -> Outcome {
    let object = state::comm(comm)?;
    let cart = cart(&object)?;
    // SAFETY: `remain_dims` has one element per dimension (section 8.5.7).
    let keep = unsafe { remain_dims.counted(cart.dims().len()) }.get("remain_dims")?;
    let keep: Vec<bool> = keep.iter().map(|keep| *keep != 0).collect();
    let (which, inside, sub) = cart.sub(object.comm.rank(), &keep)?;
    let mine = SplitKey {
        color: Some(which.into()),
        key: inside as i32,
    };
    newcomm.set(split(&object, mine, || Topology::Cart(sub))?, "newcomm")
}
