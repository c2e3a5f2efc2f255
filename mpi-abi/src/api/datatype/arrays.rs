//! Datatypes of parts of arrays: a block of one array, or what one process of a grid has of it (sections 5.1.3 and 5.1.4).

use super::construct::derive;
use crate::abi::*;
use crate::api::args::{Wide, length, wides};
use crate::error::{Failure, Outcome};
use mpi_core::datatype::{Datatype, Distribution, Form, Order};
use std::ffi::c_int;

/// The order argument of array types.
fn order_of(order: c_int) -> Result<Order, Failure> {
    Order::from_value(order.wide()).ok_or_else(|| {
        Failure::new(
            MPI_ERR_ARG,
            format!("order is {order}, neither MPI_ORDER_C nor MPI_ORDER_FORTRAN"),
        )
    })
}

/// The number of dimensions, which is at least one.
fn dimensions(ndims: c_int) -> Result<usize, Failure> {
    match length(ndims, "ndims")? {
        0 => Err(Failure::new(
            MPI_ERR_DIMS,
            "ndims is 0, but an array has at least one dimension",
        )),
        n => Ok(n),
    }
}

/// Makes the datatype of a block of an array and gives it a handle.
///
/// # Safety
/// The arrays (sizes, sizes of the block, where it starts) are arguments of the caller with `ndims` elements; the second type is an output argument.
unsafe fn subarray<C: Wide>(
    ndims: c_int,
    (sizes, subsizes, starts): (*const C, *const C, *const C),
    order: c_int,
    (oldtype, newtype): (MPI_Datatype, *mut MPI_Datatype),
    form: Form,
) -> Outcome {
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: passed on.
    unsafe {
        let sizes = wides(sizes, n, "array_of_sizes")?;
        let subsizes = wides(subsizes, n, "array_of_subsizes")?;
        let starts = wides(starts, n, "array_of_starts")?;
        derive(oldtype, newtype, form, |old| {
            Datatype::subarray(&sizes, &subsizes, &starts, order, old)
        })
    }
}

/// Makes the datatype of what process `rank` of `size` has of an array that is dealt out, and gives it a handle.
///
/// # Safety
/// The arrays (sizes, how each dimension is dealt out and with which argument, the grid of processes) are arguments of the caller with `ndims` elements;
/// the second type is an output argument.
unsafe fn darray<C: Wide>(
    (rank, size): (c_int, c_int),
    ndims: c_int,
    (sizes, kinds, arguments, grid): (*const C, *const c_int, *const c_int, *const c_int),
    order: c_int,
    (oldtype, newtype): (MPI_Datatype, *mut MPI_Datatype),
    form: Form,
) -> Outcome {
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: passed on.
    unsafe {
        let sizes = wides(sizes, n, "array_of_gsizes")?;
        let how = distributions(kinds, arguments, n)?;
        let grid = wides(grid, n, "array_of_psizes")?;
        derive(oldtype, newtype, form, |old| {
            Datatype::darray(size.wide(), rank.wide(), &sizes, &how, &grid, order, old)
        })
    }
}

pub unsafe fn MPI_Type_create_subarray(
    ndims: c_int,
    array_of_sizes: *const c_int,
    array_of_subsizes: *const c_int,
    array_of_starts: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let arrays = (array_of_sizes, array_of_subsizes, array_of_starts);
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_subarray requires of its caller.
    unsafe { subarray(ndims, arrays, order, (oldtype, newtype), Form::Int) }
}

pub unsafe fn MPI_Type_create_subarray_c(
    ndims: c_int,
    array_of_sizes: *const MPI_Count,
    array_of_subsizes: *const MPI_Count,
    array_of_starts: *const MPI_Count,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let arrays = (array_of_sizes, array_of_subsizes, array_of_starts);
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_subarray_c requires of its caller.
    unsafe { subarray(ndims, arrays, order, (oldtype, newtype), Form::Count) }
}

pub unsafe fn MPI_Type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: *const c_int,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let arrays = (
        array_of_gsizes,
        array_of_distribs,
        array_of_dargs,
        array_of_psizes,
    );
    let (of, types) = ((rank, size), (oldtype, newtype));
    // SAFETY: arguments of the caller.
    unsafe { darray(of, ndims, arrays, order, types, Form::Int) }
}

pub unsafe fn MPI_Type_create_darray_c(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    array_of_gsizes: *const MPI_Count,
    array_of_distribs: *const c_int,
    array_of_dargs: *const c_int,
    array_of_psizes: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let arrays = (
        array_of_gsizes,
        array_of_distribs,
        array_of_dargs,
        array_of_psizes,
    );
    let (of, types) = ((rank, size), (oldtype, newtype));
    // SAFETY: arguments of the caller.
    unsafe { darray(of, ndims, arrays, order, types, Form::Count) }
}

/// How each dimension of a distributed array is dealt out.
///
/// # Safety
/// Both arrays are arguments of the caller with `n` elements.
unsafe fn distributions(
    kinds: *const c_int,
    arguments: *const c_int,
    n: usize,
) -> Result<Vec<Distribution>, Failure> {
    // SAFETY: `kinds` and `arguments` are valid by the `# Safety` contract of this function.
    let (kinds, arguments) = unsafe {
        (
            wides(kinds, n, "array_of_distribs")?,
            wides(arguments, n, "array_of_dargs")?,
        )
    };
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
