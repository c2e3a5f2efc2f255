//! Constructors of derived datatypes (section 5.1).
//!
//! A constructor and its large-count variant differ in the width of their integers and in what
//! `MPI_Type_get_contents` returns. Both functions call one helper.

use crate::abi::*;
use crate::api::args::{InArray, InOut, IntoI64, Out};
use crate::error::{Failure, Outcome};
use crate::registry::datatype::{object, register, remove};
use crate::state;
use mpi_core::datatype::{Datatype, Form, TypeError};
use std::ffi::c_int;

/// Creates a datatype derived from `oldtype`, and registers a handle for it.
pub(super) fn derive(
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
    form: Form,
    make: impl FnOnce(&Datatype) -> Result<Datatype, TypeError>,
) -> Outcome {
    let new = make(&state::datatype(oldtype)?)?.with_form(form);
    newtype.set(register(new)?, "newtype")
}

/// Checks a count argument that is the length of array arguments.
fn entries(count: impl IntoI64) -> Outcome {
    let count = count.wide();
    if count < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("count is {count}, which is negative"),
        ));
    }
    Ok(())
}

/// Reads the displacements of `count` blocks.
fn displacements<D: IntoI64>(
    count: impl IntoI64,
    displacements: InArray<D>,
) -> Result<Vec<i64>, Failure> {
    entries(count)?;
    displacements.widened("array_of_displacements")
}

/// Reads the lengths and displacements of `count` blocks.
fn blocks<C: IntoI64, D: IntoI64>(
    count: C,
    lengths: InArray<C>,
    places: InArray<D>,
) -> Result<(Vec<i64>, Vec<i64>), Failure> {
    entries(count)?;
    let lengths = lengths.widened("array_of_blocklengths")?;
    Ok((lengths, displacements(count, places)?))
}

/// Creates a struct datatype and registers a handle for it.
fn structure(
    (lengths, displacements): (Vec<i64>, Vec<i64>),
    types: InArray<MPI_Datatype>,
    newtype: Out<MPI_Datatype>,
    form: Form,
) -> Outcome {
    let types = types.get("array_of_types")?;
    let types: Vec<_> = (types.iter().map(|t| state::datatype(*t))).collect::<Result<_, _>>()?;
    let new = Datatype::structure(&lengths, &displacements, &types)?.with_form(form);
    newtype.set(register(new)?, "newtype")
}

pub fn MPI_Type_commit(datatype: InOut<MPI_Datatype>) -> Outcome {
    let handle = datatype.get("datatype")?;
    Ok(state::datatype(handle)?.commit()?)
}

pub fn MPI_Type_free(datatype: InOut<MPI_Datatype>) -> Outcome {
    let handle = datatype.get("datatype")?;
    object(handle)?.owner(handle).delete_all()?;
    remove(handle)?;
    datatype.set(MPI_DATATYPE_NULL, "datatype")
}

pub fn MPI_Type_dup(oldtype: MPI_Datatype, newtype: Out<MPI_Datatype>) -> Outcome {
    let old = object(oldtype)?;
    let handle = register(old.datatype.dup()?)?;
    let new = object(handle)?;
    if let Err(failure) = old.owner(oldtype).copy_all(&new.owner(handle)) {
        // Deletes the attributes copied so far. The reported failure is that of the copy callback.
        let _ = new.owner(handle).delete_all();
        remove(handle)?;
        return Err(failure);
    }
    newtype.set(handle, "newtype")
}

pub fn MPI_Type_contiguous(
    count: c_int,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::contiguous(count.wide(), old)
    })
}

pub fn MPI_Type_contiguous_c(
    count: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::contiguous(count.wide(), old)
    })
}

pub fn MPI_Type_vector(
    count: c_int,
    blocklength: c_int,
    stride: c_int,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::vector(count.wide(), blocklength.wide(), stride.wide(), old)
    })
}

pub fn MPI_Type_vector_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    stride: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::vector(count.wide(), blocklength.wide(), stride.wide(), old)
    })
}

pub fn MPI_Type_create_hvector(
    count: c_int,
    blocklength: c_int,
    stride: MPI_Aint,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::hvector(count.wide(), blocklength.wide(), stride.wide(), old)
    })
}

pub fn MPI_Type_create_hvector_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    stride: MPI_Count,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::hvector(count.wide(), blocklength.wide(), stride.wide(), old)
    })
}

pub fn MPI_Type_indexed(
    count: c_int,
    array_of_blocklengths: InArray<c_int>,
    array_of_displacements: InArray<c_int>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    let blocks = blocks(count, lengths, places)?;
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::indexed(&blocks.0, &blocks.1, old)
    })
}

pub fn MPI_Type_indexed_c(
    count: MPI_Count,
    array_of_blocklengths: InArray<MPI_Count>,
    array_of_displacements: InArray<MPI_Count>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    let blocks = blocks(count, lengths, places)?;
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::indexed(&blocks.0, &blocks.1, old)
    })
}

pub fn MPI_Type_create_hindexed(
    count: c_int,
    array_of_blocklengths: InArray<c_int>,
    array_of_displacements: InArray<MPI_Aint>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    let blocks = blocks(count, lengths, places)?;
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::hindexed(&blocks.0, &blocks.1, old)
    })
}

pub fn MPI_Type_create_hindexed_c(
    count: MPI_Count,
    array_of_blocklengths: InArray<MPI_Count>,
    array_of_displacements: InArray<MPI_Count>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    let blocks = blocks(count, lengths, places)?;
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::hindexed(&blocks.0, &blocks.1, old)
    })
}

pub fn MPI_Type_create_indexed_block(
    count: c_int,
    blocklength: c_int,
    array_of_displacements: InArray<c_int>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let displacements = displacements(count, array_of_displacements)?;
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::indexed_block(blocklength.wide(), &displacements, old)
    })
}

pub fn MPI_Type_create_indexed_block_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    array_of_displacements: InArray<MPI_Count>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let displacements = displacements(count, array_of_displacements)?;
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::indexed_block(blocklength.wide(), &displacements, old)
    })
}

pub fn MPI_Type_create_hindexed_block(
    count: c_int,
    blocklength: c_int,
    array_of_displacements: InArray<MPI_Aint>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let displacements = displacements(count, array_of_displacements)?;
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::hindexed_block(blocklength.wide(), &displacements, old)
    })
}

pub fn MPI_Type_create_hindexed_block_c(
    count: MPI_Count,
    blocklength: MPI_Count,
    array_of_displacements: InArray<MPI_Count>,
    oldtype: MPI_Datatype,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let displacements = displacements(count, array_of_displacements)?;
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::hindexed_block(blocklength.wide(), &displacements, old)
    })
}

pub fn MPI_Type_create_struct(
    count: c_int,
    array_of_blocklengths: InArray<c_int>,
    array_of_displacements: InArray<MPI_Aint>,
    array_of_types: InArray<MPI_Datatype>,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    let blocks = blocks(count, lengths, places)?;
    structure(blocks, array_of_types, newtype, Form::Int)
}

pub fn MPI_Type_create_struct_c(
    count: MPI_Count,
    array_of_blocklengths: InArray<MPI_Count>,
    array_of_displacements: InArray<MPI_Count>,
    array_of_types: InArray<MPI_Datatype>,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    let (lengths, places) = (array_of_blocklengths, array_of_displacements);
    let blocks = blocks(count, lengths, places)?;
    structure(blocks, array_of_types, newtype, Form::Count)
}

pub fn MPI_Type_create_resized(
    oldtype: MPI_Datatype,
    lb: MPI_Aint,
    extent: MPI_Aint,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Int, |old| {
        Datatype::resized(lb.wide(), extent.wide(), old)
    })
}

pub fn MPI_Type_create_resized_c(
    oldtype: MPI_Datatype,
    lb: MPI_Count,
    extent: MPI_Count,
    newtype: Out<MPI_Datatype>,
) -> Outcome {
    derive(oldtype, newtype, Form::Count, |old| {
        Datatype::resized(lb.wide(), extent.wide(), old)
    })
}
