//! Subarray and distributed array datatypes (sections 5.1.3 and 5.1.4).

use super::construct::derive;
use crate::abi::*;
use crate::api::args::{InArray, IntoI64, Out, length};
use crate::error::{Failure, Outcome};
use mpi_core::datatype::{self, Distribution, Form, Order};
use std::ffi::c_int;

/// Checks the `order` argument, `MPI_ORDER_C` or `MPI_ORDER_FORTRAN`.
fn order_of(order: c_int) -> Result<Order, Failure> {
    Order::from_value(order.wide()).ok_or_else(|| {
        Failure::new(
            MPI_ERR_ARG,
            format!("order is {order}, neither MPI_ORDER_C nor MPI_ORDER_FORTRAN"),
        )
    })
}

/// Checks the number of dimensions, which must be at least 1.
fn dimensions(ndims: c_int) -> Result<usize, Failure> {
    match length(ndims, "ndims")? {
        0 => Err(Failure::new(
            MPI_ERR_DIMS,
            "ndims is 0, but an array has at least one dimension",
        )),
        n => Ok(n),
    }
}

/// Creates a subarray datatype and registers a handle for it.
fn subarray<C: IntoI64>(
    ndims: c_int,
    (sizes, subsizes, starts): (InArray<C>, InArray<C>, InArray<C>),
    order: c_int,
    (oldtype, newtype): (MPI_Datatype, Out<MPI_Datatype>),
    form: Form,
) -> Outcome {
    dimensions(ndims)?;
    let order = order_of(order)?;
    let sizes = sizes.widened("array_of_sizes")?;
    let subsizes = subsizes.widened("array_of_subsizes")?;
    let starts = starts.widened("array_of_starts")?;
    derive(oldtype, newtype, form, |old| {
        datatype::subarray(&sizes, &subsizes, &starts, order, old)
    })
}

/// Creates a darray datatype, the elements of process `rank` of `size`, and registers a handle.
fn darray<C: IntoI64>(
    (rank, size): (c_int, c_int),
    ndims: c_int,
    (sizes, kinds, arguments, grid): (InArray<C>, InArray<c_int>, InArray<c_int>, InArray<c_int>),
    order: c_int,
    (oldtype, newtype): (MPI_Datatype, Out<MPI_Datatype>),
    form: Form,
) -> Outcome {
    dimensions(ndims)?;
    let order = order_of(order)?;
    let sizes = sizes.widened("array_of_gsizes")?;
    let how = distributions(kinds, arguments)?;
    let grid = grid.widened("array_of_psizes")?;
    derive(oldtype, newtype, form, |old| {
        datatype::darray(size.wide(), rank.wide(), &sizes, &how, &grid, order, old)
    })
}

pub fn MPI_Type_create_subarray(
    ndims: c_int,
    array_of_sizes: InArray<c_int>,
    array_of_subsizes: InArray<c_int>,
    array_of_starts: InArray<c_int>,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let arrays = (array_of_sizes, array_of_subsizes, array_of_starts);
    subarray(ndims, arrays, order, (oldtype, newtype), Form::Int)
}

pub fn MPI_Type_create_subarray_c(
    ndims: c_int,
    array_of_sizes: InArray<MPI_Count>,
    array_of_subsizes: InArray<MPI_Count>,
    array_of_starts: InArray<MPI_Count>,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let arrays = (array_of_sizes, array_of_subsizes, array_of_starts);
    subarray(ndims, arrays, order, (oldtype, newtype), Form::Count)
}

pub fn MPI_Type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: InArray<c_int>,
    array_of_distribs: InArray<c_int>,
    array_of_dargs: InArray<c_int>,
    array_of_psizes: InArray<c_int>,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let arrays = (
        array_of_gsizes,
        array_of_distribs,
        array_of_dargs,
        array_of_psizes,
    );
    let (of, types) = ((rank, size), (oldtype, newtype));
    darray(of, ndims, arrays, order, types, Form::Int)
}

pub fn MPI_Type_create_darray_c(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: InArray<MPI_Count>,
    array_of_distribs: InArray<c_int>,
    array_of_dargs: InArray<c_int>,
    array_of_psizes: InArray<c_int>,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let arrays = (
        array_of_gsizes,
        array_of_distribs,
        array_of_dargs,
        array_of_psizes,
    );
    let (of, types) = ((rank, size), (oldtype, newtype));
    darray(of, ndims, arrays, order, types, Form::Count)
}

/// Reads the distribution of each dimension.
fn distributions(
    kinds: InArray<c_int>,
    arguments: InArray<c_int>,
) -> Result<Vec<Distribution>, Failure> {
    let (kinds, arguments) = (
        kinds.widened("array_of_distribs")?,
        arguments.widened("array_of_dargs")?,
    );
    kinds
        .into_iter()
        .zip(arguments)
        .map(|(kind, argument)| {
            Distribution::from_values(kind, argument).ok_or_else(|| {
                Failure::new(
                    MPI_ERR_ARG,
                    format!("array_of_distribs has {kind}, which is no MPI_DISTRIBUTE_ constant"),
                )
            })
        })
        .collect()
}
