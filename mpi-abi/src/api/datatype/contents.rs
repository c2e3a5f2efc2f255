//! Envelope and contents of derived datatypes (section 5.1.13).

use crate::abi::*;
use crate::api::args::{out, slice_mut};
use crate::error::{Failure, Outcome};
use crate::registry::datatype::{kind_handle, register};
use crate::state;
use mpi_core::datatype::{Combiner, Contents, Datatype};
use std::ffi::c_int;

pub unsafe fn MPI_Type_get_envelope(
    datatype: MPI_Datatype,
    num_integers: *mut c_int,
    num_addresses: *mut c_int,
    num_datatypes: *mut c_int,
    combiner: *mut c_int,
) -> Outcome {
    let envelope = state::datatype(datatype)?.envelope();
    if envelope.counts > 0 {
        return Err(made_with_large_counts());
    }
    // SAFETY: `num_integers`, `num_addresses`, `num_datatypes` and `combiner` are null or writable: the C binding of MPI_Type_get_envelope requires it of the caller.
    unsafe {
        out(num_integers, envelope.integers as c_int, "num_integers")?;
        out(num_addresses, envelope.addresses as c_int, "num_addresses")?;
        out(num_datatypes, envelope.types as c_int, "num_datatypes")?;
        out(combiner, envelope.combiner as c_int, "combiner")
    }
}

pub unsafe fn MPI_Type_get_envelope_c(
    datatype: MPI_Datatype,
    num_integers: *mut MPI_Count,
    num_addresses: *mut MPI_Count,
    num_large_counts: *mut MPI_Count,
    num_datatypes: *mut MPI_Count,
    combiner: *mut c_int,
) -> Outcome {
    let envelope = state::datatype(datatype)?.envelope();
    // SAFETY: `num_integers`, `num_addresses`, `num_large_counts`, `num_datatypes` and `combiner` are null or writable: the C binding of MPI_Type_get_envelope_c requires it of the caller.
    unsafe {
        out(num_integers, envelope.integers as MPI_Count, "num_integers")?;
        out(
            num_addresses,
            envelope.addresses as MPI_Count,
            "num_addresses",
        )?;
        out(
            num_large_counts,
            envelope.counts as MPI_Count,
            "num_large_counts",
        )?;
        out(num_datatypes, envelope.types as MPI_Count, "num_datatypes")?;
        out(combiner, envelope.combiner as c_int, "combiner")
    }
}

fn made_with_large_counts() -> Failure {
    Failure::new(
        MPI_ERR_TYPE,
        "the datatype was made with large counts, which only the _c form of this function returns",
    )
}

/// Returns the arguments of the constructor.
fn contents(datatype: MPI_Datatype) -> Result<Contents, Failure> {
    let datatype = state::datatype(datatype)?;
    if datatype.envelope().combiner == Combiner::Named {
        return Err(Failure::new(
            MPI_ERR_TYPE,
            format!("{datatype} is predefined and has no contents"),
        ));
    }
    Ok(datatype.contents())
}

/// Stores a list in an array of the caller with `max` elements.
///
/// # Safety
/// `to` is an array of the caller with `max` elements.
unsafe fn store<T, U>(
    to: *mut U,
    max: MPI_Count,
    list: Vec<T>,
    name: &str,
    convert: impl Fn(T) -> Result<U, Failure>,
) -> Outcome {
    if (max as i128) < list.len() as i128 {
        return Err(Failure::new(
            MPI_ERR_ARG,
            format!(
                "{name} has room for {max} values, but the datatype has {}",
                list.len()
            ),
        ));
    }
    // SAFETY: `to` is valid by the `# Safety` contract of this function.
    let room = unsafe { slice_mut(to, list.len(), name)? };
    for (place, value) in room.iter_mut().zip(list) {
        *place = convert(value)?;
    }
    Ok(())
}

/// Returns a handle for a datatype that others were derived from; for a derived one it is a new handle that the program frees.
fn handle(datatype: Datatype) -> Result<MPI_Datatype, Failure> {
    match datatype.as_named() {
        Some(named) => Ok(MPI_Datatype(named.info().handle as usize)),
        None if datatype.fortran_kind().is_some() => kind_handle(&datatype),
        None => register(datatype),
    }
}

pub unsafe fn MPI_Type_get_contents(
    datatype: MPI_Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut MPI_Aint,
    array_of_datatypes: *mut MPI_Datatype,
) -> Outcome {
    let contents = contents(datatype)?;
    if !contents.counts.is_empty() {
        return Err(made_with_large_counts());
    }
    // SAFETY: the arrays have the given numbers of elements: the C binding of MPI_Type_get_contents requires it of the caller.
    unsafe {
        store(
            array_of_integers,
            max_integers.into(),
            contents.integers,
            "array_of_integers",
            Ok,
        )?;
        store(
            array_of_addresses,
            max_addresses.into(),
            contents.addresses,
            "array_of_addresses",
            |a| Ok(a as MPI_Aint),
        )?;
        store(
            array_of_datatypes,
            max_datatypes.into(),
            contents.types,
            "array_of_datatypes",
            handle,
        )
    }
}

pub unsafe fn MPI_Type_get_contents_c(
    datatype: MPI_Datatype,
    max_integers: MPI_Count,
    max_addresses: MPI_Count,
    max_large_counts: MPI_Count,
    max_datatypes: MPI_Count,
    array_of_integers: *mut c_int,
    array_of_addresses: *mut MPI_Aint,
    array_of_large_counts: *mut MPI_Count,
    array_of_datatypes: *mut MPI_Datatype,
) -> Outcome {
    let contents = contents(datatype)?;
    // SAFETY: the arrays have the given numbers of elements: the C binding of MPI_Type_get_contents_c requires it of the caller.
    unsafe {
        store(
            array_of_integers,
            max_integers,
            contents.integers,
            "array_of_integers",
            Ok,
        )?;
        store(
            array_of_addresses,
            max_addresses,
            contents.addresses,
            "array_of_addresses",
            |a| Ok(a as MPI_Aint),
        )?;
        store(
            array_of_large_counts,
            max_large_counts,
            contents.counts,
            "array_of_large_counts",
            Ok,
        )?;
        store(
            array_of_datatypes,
            max_datatypes,
            contents.types,
            "array_of_datatypes",
            handle,
        )
    }
}
