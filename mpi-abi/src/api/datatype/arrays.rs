//! Array datatypes: a block of one array, or one process's part of a distributed array (sections 5.1.3 and 5.1.4).

use super::construct::derive;
use crate::abi::*;
use crate::api::args::{IntoI64, length, widened};
use crate::error::{Failure, Outcome};
use mpi_core::datatype::{Datatype, Distribution, Form, Order};
use std::ffi::c_int;

/// Checks the order argument of array types.
fn order_of(order: c_int) -> Result<Order, Failure> {
    Order::from_value(order.wide()).ok_or_else(|| {
        Failure::new(
            MPI_ERR_ARG,
            format!("order is {order}, neither MPI_ORDER_C nor MPI_ORDER_FORTRAN"),
        )
    })
}

/// Checks the number of dimensions, which is at least one.
fn dimensions(ndims: c_int) -> Result<usize, Failure> {
    match length(ndims, "ndims")? {
        0 => Err(Failure::new(
            MPI_ERR_DIMS,
            "ndims is 0, but an array has at least one dimension",
        )),
        n => Ok(n),
    }
}

/// Creates a subarray datatype and gives it a handle.
///
/// # Safety
/// The arrays (sizes, subsizes, starts) are arguments of the caller with `ndims` elements; the second type is an output argument.
unsafe fn subarray<C: IntoI64>(
    ndims: c_int,
    (sizes, subsizes, starts): (*const C, *const C, *const C),
    order: c_int,
    (oldtype, newtype): (MPI_Datatype, *mut MPI_Datatype),
    form: Form,
) -> Outcome {
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: `sizes`, `subsizes` and `starts` have `n` elements and `newtype` is writable by the `# Safety` contract of this function.
    unsafe {
        let sizes = widened(sizes, n, "array_of_sizes")?;
        let subsizes = widened(subsizes, n, "array_of_subsizes")?;
        let starts = widened(starts, n, "array_of_starts")?;
        derive(oldtype, newtype, form, |old| {
            Datatype::subarray(&sizes, &subsizes, &starts, order, old)
        })
    }
}

/// Creates the datatype of the part of a distributed array that process `rank` of `size` has, and gives it a handle.
///
/// # Safety
/// The arrays (sizes, distributions and their arguments, the process grid) are arguments of the caller with `ndims` elements;
/// the second type is an output argument.
unsafe fn darray<C: IntoI64>(
    (rank, size): (c_int, c_int),
    ndims: c_int,
    (sizes, kinds, arguments, grid): (*const C, *const c_int, *const c_int, *const c_int),
    order: c_int,
    (oldtype, newtype): (MPI_Datatype, *mut MPI_Datatype),
    form: Form,
) -> Outcome {
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: `sizes`, `kinds`, `arguments` and `grid` have `n` elements and `newtype` is writable by the `# Safety` contract of this function.
    unsafe {
        let sizes = widened(sizes, n, "array_of_gsizes")?;
        let how = distributions(kinds, arguments, n)?;
        let grid = widened(grid, n, "array_of_psizes")?;
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
    // SAFETY: `newtype` and the pointers in `arrays` are valid as the C binding of MPI_Type_create_subarray requires of its caller.
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
    // SAFETY: `newtype` and the pointers in `arrays` are valid as the C binding of MPI_Type_create_subarray_c requires of its caller.
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
    // SAFETY: the pointers in `arrays` and `types` are valid as the C binding of MPI_Type_create_darray requires of its caller.
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
    // SAFETY: the pointers in `arrays` and `types` are valid as the C binding of MPI_Type_create_darray_c requires of its caller.
    unsafe { darray(of, ndims, arrays, order, types, Form::Count) }
}

/// Reads the distribution of each dimension.
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
            widened(kinds, n, "array_of_distribs")?,
            widened(arguments, n, "array_of_dargs")?,
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
