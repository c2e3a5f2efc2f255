//! Constructors of derived datatypes (section 5.1).
//!
//! A constructor and its large-count twin differ in the width of their integers and in what `MPI_Type_get_contents` returns,
//! so both are thin functions over one helper.

use crate::abi::*;
use crate::api::args::{IntoI64, out, read, slice, widened};
use crate::error::{Failure, Outcome};
use crate::registry::datatype::{object, register, remove};
use crate::state;
use mpi_core::datatype::{Datatype, Form, TypeError};
use std::ffi::c_int;

/// Creates a datatype from an older one and gives it a handle.
///
/// # Safety
/// `newtype` is an output argument of the caller.
pub(super) unsafe fn derive(
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
    form: Form,
    make: impl FnOnce(&Datatype) -> Result<Datatype, TypeError>,
) -> Outcome {
    let new = make(&state::datatype(oldtype)?)?.with_form(form);
    // SAFETY: `newtype` is null or writable: `# Safety` of this function.
    unsafe { out(newtype, register(new)?, "newtype") }
}

/// Converts a count into the length of its arrays.
fn entries(count: impl IntoI64) -> Result<usize, Failure> {
    let count = count.wide();
    usize::try_from(count).map_err(|_| {
        Failure::new(
            MPI_ERR_COUNT,
            format!("count is {count}, which is negative"),
        )
    })
}

/// Reads the displacements of `count` blocks.
///
/// # Safety
/// The array is an argument of the caller with `count` elements.
unsafe fn displacements<D: IntoI64>(
    count: impl IntoI64,
    displacements: *const D,
) -> Result<Vec<i64>, Failure> {
    // SAFETY: `displacements` is valid by the `# Safety` contract of this function.
    unsafe { widened(displacements, entries(count)?, "array_of_displacements") }
}

/// Reads the lengths and displacements of `count` blocks.
///
/// # Safety
/// Both arrays are arguments of the caller with `count` elements.
unsafe fn blocks<C: IntoI64, D: IntoI64>(
    count: C,
    lengths: *const C,
    places: *const D,
) -> Result<(Vec<i64>, Vec<i64>), Failure> {
    // SAFETY: `lengths` and `places` are valid by the `# Safety` contract of this function.
    unsafe {
        let lengths = widened(lengths, entries(count)?, "array_of_blocklengths")?;
        Ok((lengths, displacements(count, places)?))
    }
}

/// Creates a datatype of blocks with individual datatypes, and gives it a handle.
///
/// # Safety
/// `types` is an array of the caller with an element for each block, `newtype` an output argument.
unsafe fn structure(
    (lengths, displacements): (Vec<i64>, Vec<i64>),
    types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
    form: Form,
) -> Outcome {
    // SAFETY: `types` is valid by the `# Safety` contract of this function.
    let types = unsafe { slice(types, lengths.len(), "array_of_types")? };
    let types: Vec<_> = (types.iter().map(|t| state::datatype(*t))).collect::<Result<_, _>>()?;
    let new = Datatype::structure(&lengths, &displacements, &types)?.with_form(form);
    // SAFETY: `newtype` is null or writable: `# Safety` of this function.
    unsafe { out(newtype, register(new)?, "newtype") }
}

pub unsafe fn MPI_Type_commit(datatype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: `datatype` is null or readable: the C binding of MPI_Type_commit requires it of the caller.
    let handle = unsafe { read(datatype, "datatype")? };
    Ok(state::datatype(handle)?.commit()?)
}

pub unsafe fn MPI_Type_free(datatype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: `datatype` is null or readable: the C binding of MPI_Type_free requires it of the caller.
    let handle = unsafe { read(datatype, "datatype")? };
    object(handle)?.owner(handle).delete_all()?;
    remove(handle)?;
    // SAFETY: `datatype` is null or writable: the C binding of MPI_Type_free requires it of the caller.
    unsafe { out(datatype, MPI_DATATYPE_NULL, "datatype") }
}

pub unsafe fn MPI_Type_dup(oldtype: MPI_Datatype, newtype: *mut MPI_Datatype) -> Outcome {
    let old = object(oldtype)?;
    let handle = register(old.datatype.dup()?)?;
    let new = object(handle)?;
    if let Err(failure) = old.owner(oldtype).copy_all(&new.owner(handle)) {
        // Attributes copied so far are deleted again; the failure to report is that of the copy function.
        let _ = new.owner(handle).delete_all();
        remove(handle)?;
        return Err(failure);
    }
    // SAFETY: `newtype` is null or writable: the C binding of MPI_Type_dup requires it of the caller.
    unsafe { out(newtype, handle, "newtype") }
}

pub unsafe fn MPI_Type_contiguous(
    count: c_int,
    oldtype: MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_contiguous requires of its caller.
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
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_contiguous_c requires of its caller.
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
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_vector requires of its caller.
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
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_vector_c requires of its caller.
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
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_hvector requires of its caller.
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
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_hvector_c requires of its caller.
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
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    // SAFETY: the arrays `lengths` and `places`, and `newtype`, are valid as the C binding of MPI_Type_indexed requires of its caller.
    unsafe {
        let blocks = blocks(count, lengths, places)?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::indexed(&blocks.0, &blocks.1, old)
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
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    // SAFETY: the arrays `lengths` and `places`, and `newtype`, are valid as the C binding of MPI_Type_indexed_c requires of its caller.
    unsafe {
        let blocks = blocks(count, lengths, places)?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::indexed(&blocks.0, &blocks.1, old)
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
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    // SAFETY: the arrays `lengths` and `places`, and `newtype`, are valid as the C binding of MPI_Type_create_hindexed requires of its caller.
    unsafe {
        let blocks = blocks(count, lengths, places)?;
        derive(oldtype, newtype, Form::Int, |old| {
            Datatype::hindexed(&blocks.0, &blocks.1, old)
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
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    // SAFETY: the arrays `lengths` and `places`, and `newtype`, are valid as the C binding of MPI_Type_create_hindexed_c requires of its caller.
    unsafe {
        let blocks = blocks(count, lengths, places)?;
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::hindexed(&blocks.0, &blocks.1, old)
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
    // SAFETY: `array_of_displacements` and `newtype` are valid as the C binding of MPI_Type_create_indexed_block requires of its caller.
    unsafe {
        let displacements = displacements(count, array_of_displacements)?;
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
    // SAFETY: `array_of_displacements` and `newtype` are valid as the C binding of MPI_Type_create_indexed_block_c requires of its caller.
    unsafe {
        let displacements = displacements(count, array_of_displacements)?;
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
    // SAFETY: `array_of_displacements` and `newtype` are valid as the C binding of MPI_Type_create_hindexed_block requires of its caller.
    unsafe {
        let displacements = displacements(count, array_of_displacements)?;
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
    // SAFETY: `array_of_displacements` and `newtype` are valid as the C binding of MPI_Type_create_hindexed_block_c requires of its caller.
    unsafe {
        let displacements = displacements(count, array_of_displacements)?;
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
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    // SAFETY: the arrays `lengths`, `places` and `array_of_types`, and `newtype`, are valid as the C binding of MPI_Type_create_struct requires of its caller.
    unsafe {
        let blocks = blocks(count, lengths, places)?;
        structure(blocks, array_of_types, newtype, Form::Int)
    }
}

pub unsafe fn MPI_Type_create_struct_c(
    count: MPI_Count,
    array_of_blocklengths: *const MPI_Count,
    array_of_displacements: *const MPI_Count,
    array_of_types: *const MPI_Datatype,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    // SAFETY: the arrays `lengths`, `places` and `array_of_types`, and `newtype`, are valid as the C binding of MPI_Type_create_struct_c requires of its caller.
    unsafe {
        let blocks = blocks(count, lengths, places)?;
        structure(blocks, array_of_types, newtype, Form::Count)
    }
}

pub unsafe fn MPI_Type_create_resized(
    oldtype: MPI_Datatype,
    lb: MPI_Aint,
    extent: MPI_Aint,
    newtype: *mut MPI_Datatype,
) -> Outcome {
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_resized requires of its caller.
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
    // SAFETY: `newtype` is valid as the C binding of MPI_Type_create_resized_c requires of its caller.
    unsafe {
        derive(oldtype, newtype, Form::Count, |old| {
            Datatype::resized(lb.wide(), extent.wide(), old)
        })
    }
}
