//! Constructors of derived datatypes (section 5.1).
//!
//! A constructor and its large-count twin differ in the width of their integers and in what `MPI_Type_get_contents` gives back,
//! so each has a line of its own over one helper.

use crate::abi::*;
use crate::api::args::{Wide, length, out, read, slice, wides};
use crate::error::{Failure, Outcome};
use crate::object::datatype::{object, register, remove};
use crate::state;
use mpi_core::datatype::{Datatype, Distribution, Form, Order, TypeError};
use std::ffi::c_int;

/// Makes a datatype from an older one and gives it a handle.
///
/// # Safety
/// `newtype` is an output argument of the caller.
unsafe fn derive(
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    form: Form,
    make: impl FnOnce(&Datatype) -> Result<Datatype, TypeError>,
) -> Outcome {
    let new = make(&state::datatype(oldtype)?)?.with_form(form);
    // SAFETY: passed on.
    unsafe { out(newtype, register(new)?, "newtype") }
}

/// A count as the length of its arrays.
fn entries(count: impl Wide) -> Result<usize, Failure> {
    let count = count.wide();
    usize::try_from(count).map_err(|_| {
        Failure::new(
            MPI_ERR_COUNT,
            format!("count is {count}, which is negative"),
        )
    })
}

pub unsafe fn MPI_Type_commit(datatype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: an argument of the caller that is read.
    let handle = unsafe { read(datatype, "datatype")? };
    Ok(state::datatype(handle)?.commit()?)
}

pub unsafe fn MPI_Type_free(datatype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: an argument of the caller that is read and written.
    let handle = unsafe { read(datatype, "datatype")? };
    object(handle)?.owner(handle).delete_all()?;
    remove(handle)?;
    // SAFETY: as above.
    unsafe { out(datatype, MPI_DATATYPE_NULL, "datatype") }
}

pub unsafe fn MPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> Outcome {
    let old = object(oldtype)?;
    let handle = register(old.datatype.dup()?)?;
    let new = object(handle)?;
    if let Err(failure) = old.owner(oldtype).copy_all(&new.owner(handle)) {
        // What had been copied goes again; the copy's failure is the one to report.
        let _ = new.owner(handle).delete_all();
        remove(handle)?;
        return Err(failure);
    }
    // SAFETY: an output argument of the caller.
    unsafe { out(newtype, handle, "newtype") }
}

pub unsafe fn MPI_Type_contiguous(
    count: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::contiguous(count.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_contiguous_c(
    count: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::contiguous(count.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_vector(
    count: c_int,
    blocklength: c_int,
    stride: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::vector(count.wide(), blocklength.wide(), stride.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_vector_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    stride: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::vector(count.wide(), blocklength.wide(), stride.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_create_hvector(
    count: c_int,
    blocklength: c_int,
    stride: MPI_Aint,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::hvector(count.wide(), blocklength.wide(), stride.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_create_hvector_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    stride: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::hvector(count.wide(), blocklength.wide(), stride.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_indexed(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let lengths = wides(array_of_blocklengths, n, "array_of_blocklengths")?;
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::indexed(&lengths, &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_indexed_c(
    count: MPI_Count,
    array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let lengths = wides(array_of_blocklengths, n, "array_of_blocklengths")?;
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::indexed(&lengths, &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_hindexed(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const MPI_Aint,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let lengths = wides(array_of_blocklengths, n, "array_of_blocklengths")?;
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::hindexed(&lengths, &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_hindexed_c(
    count: MPI_Count,
    array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let lengths = wides(array_of_blocklengths, n, "array_of_blocklengths")?;
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::hindexed(&lengths, &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_indexed_block(
    count: c_int,
    blocklength: c_int,
    array_of_displacements: *const c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::indexed_block(blocklength.wide(), &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_indexed_block_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    array_of_displacements: *const MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::indexed_block(blocklength.wide(), &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_hindexed_block(
    count: c_int,
    blocklength: c_int,
    array_of_displacements: *const MPI_Aint,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::hindexed_block(blocklength.wide(), &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_hindexed_block_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    array_of_displacements: *const MPI_Count,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::hindexed_block(blocklength.wide(), &displacements, old)
        })
    }
}

pub unsafe fn MPI_Type_create_struct(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const MPI_Aint,
    array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let lengths = wides(array_of_blocklengths, n, "array_of_blocklengths")?;
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        let types = slice(array_of_types, n, "array_of_types")?;
        let types = types
            .iter()
            .map(|t| state::datatype(*t))
            .collect::<Result<Vec<_>, _>>()?;
        let new = Datatype::structure(&lengths, &displacements, &types)?.with_form(Form::Int);
        out(newtype, register(new)?, "newtype")
    }
}

pub unsafe fn MPI_Type_create_struct_c(
    count: MPI_Count,
    array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count,
    array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let n = entries(count)?;
    // SAFETY: arguments of the caller.
    unsafe {
        let lengths = wides(array_of_blocklengths, n, "array_of_blocklengths")?;
        let displacements = wides(array_of_displacements, n, "array_of_displacements")?;
        let types = slice(array_of_types, n, "array_of_types")?;
        let types = types
            .iter()
            .map(|t| state::datatype(*t))
            .collect::<Result<Vec<_>, _>>()?;
        let new = Datatype::structure(&lengths, &displacements, &types)?.with_form(Form::Count);
        out(newtype, register(new)?, "newtype")
    }
}

pub unsafe fn MPI_Type_create_resized(
    oldtype: MPI_Datatype,
    lb: MPI_Aint,
    extent: MPI_Aint,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::resized(lb.wide(), extent.wide(), old)
        })
    }
}

pub unsafe fn MPI_Type_create_resized_c(
    oldtype: MPI_Datatype,
    lb: MPI_Count,
    extent: MPI_Count,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::resized(lb.wide(), extent.wide(), old)
        })
    }
}

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

pub unsafe fn MPI_Type_create_subarray(
    ndims: c_int,
    array_of_sizes: *const c_int,
    array_of_subsizes: *const c_int,
    array_of_starts: *const c_int,
    order: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: arguments of the caller.
    unsafe {
        let sizes = wides(array_of_sizes, n, "array_of_sizes")?;
        let subsizes = wides(array_of_subsizes, n, "array_of_subsizes")?;
        let starts = wides(array_of_starts, n, "array_of_starts")?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::subarray(&sizes, &subsizes, &starts, order, old)
        })
    }
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
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: arguments of the caller.
    unsafe {
        let sizes = wides(array_of_sizes, n, "array_of_sizes")?;
        let subsizes = wides(array_of_subsizes, n, "array_of_subsizes")?;
        let starts = wides(array_of_starts, n, "array_of_starts")?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::subarray(&sizes, &subsizes, &starts, order, old)
        })
    }
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
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: arguments of the caller.
    unsafe {
        let global = wides(array_of_gsizes, n, "array_of_gsizes")?;
        let distributions = distributions(array_of_distribs, array_of_dargs, n)?;
        let grid = wides(array_of_psizes, n, "array_of_psizes")?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::darray(
                size.wide(),
                rank.wide(),
                &global,
                &distributions,
                &grid,
                order,
                old,
            )
        })
    }
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
    let (n, order) = (dimensions(ndims)?, order_of(order)?);
    // SAFETY: arguments of the caller.
    unsafe {
        let global = wides(array_of_gsizes, n, "array_of_gsizes")?;
        let distributions = distributions(array_of_distribs, array_of_dargs, n)?;
        let grid = wides(array_of_psizes, n, "array_of_psizes")?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::darray(
                size.wide(),
                rank.wide(),
                &global,
                &distributions,
                &grid,
                order,
                old,
            )
        })
    }
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
    // SAFETY: passed on.
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
