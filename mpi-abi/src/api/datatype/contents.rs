//! Envelope and contents of derived datatypes (section 5.1.13).

use crate::abi::*;
use crate::api::args::{InOutArray, Out};
use crate::error::{Failure, Outcome};
use crate::registry::datatype::{kind_handle, register};
use crate::state;
use mpi_core::datatype::{Combiner, Contents, Datatype};
use std::ffi::c_int;

pub fn MPI_Type_get_envelope(
    datatype: MPI_Datatype,
    num_integers: Out<c_int>,
    num_addresses: Out<c_int>,
    num_datatypes: Out<c_int>,
    combiner: Out<c_int>,
) -> Outcome {
    let envelope = state::datatype(datatype)?.envelope();
    if envelope.counts > 0 {
        return Err(made_with_large_counts());
    }
    num_integers.set(envelope.integers as c_int, "num_integers")?;
    num_addresses.set(envelope.addresses as c_int, "num_addresses")?;
    num_datatypes.set(envelope.types as c_int, "num_datatypes")?;
    combiner.set(envelope.combiner as c_int, "combiner")
}

pub fn MPI_Type_get_envelope_c(
    datatype: MPI_Datatype,
    num_integers: Out<MPI_Count>,
    num_addresses: Out<MPI_Count>,
    num_large_counts: Out<MPI_Count>,
    num_datatypes: Out<MPI_Count>,
    combiner: Out<c_int>,
) -> Outcome {
    let envelope = state::datatype(datatype)?.envelope();
    num_integers.set(envelope.integers as MPI_Count, "num_integers")?;
    num_addresses.set(envelope.addresses as MPI_Count, "num_addresses")?;
    num_large_counts.set(envelope.counts as MPI_Count, "num_large_counts")?;
    num_datatypes.set(envelope.types as MPI_Count, "num_datatypes")?;
    combiner.set(envelope.combiner as c_int, "combiner")
}

fn made_with_large_counts() -> Failure {
    Failure::new(
        MPI_ERR_TYPE,
        "the datatype was made with large counts, which only the _c form of this function returns",
    )
}

/// Returns the arguments with which the constructor was called.
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

/// Stores a list in the caller's array of `max` elements.
fn store<T, U>(
    to: InOutArray<U>,
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
    let buffer = to.up_to(list.len()).get(name)?;
    for (place, value) in buffer.iter_mut().zip(list) {
        *place = convert(value)?;
    }
    Ok(())
}

/// Returns a handle for an input datatype of a constructor.
/// For a derived datatype, the handle is new and the program frees it.
fn handle(datatype: Datatype) -> Result<MPI_Datatype, Failure> {
    match datatype.as_named() {
        Some(named) => Ok(MPI_Datatype(named.info().handle as usize)),
        None if datatype.fortran_kind().is_some() => kind_handle(&datatype),
        None => register(datatype),
    }
}

pub fn MPI_Type_get_contents(
    datatype: MPI_Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    array_of_integers: InOutArray<c_int>,
    array_of_addresses: InOutArray<MPI_Aint>,
    array_of_datatypes: InOutArray<MPI_Datatype>,
) -> Outcome {
    let contents = contents(datatype)?;
    if !contents.counts.is_empty() {
        return Err(made_with_large_counts());
    }
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

pub fn MPI_Type_get_contents_c(
    datatype: MPI_Datatype,
    max_integers: MPI_Count,
    max_addresses: MPI_Count,
    max_large_counts: MPI_Count,
    max_datatypes: MPI_Count,
    array_of_integers: InOutArray<c_int>,
    array_of_addresses: InOutArray<MPI_Aint>,
    array_of_large_counts: InOutArray<MPI_Count>,
    array_of_datatypes: InOutArray<MPI_Datatype>,
) -> Outcome {
    let contents = contents(datatype)?;
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
