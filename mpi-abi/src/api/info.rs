//! Info objects (chapter 10).

use super::args::{InOut, Out, SizedText, Strings, Text, TextOut, length};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use mpi_base::text;
use std::ffi::c_int;

/// Checks a key argument, and returns the key.
fn key_of(key: Text) -> Result<String, Failure> {
    let key = key.string(MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY, "key")?;
    if key.is_empty() {
        return Err(Failure::new(MPI_ERR_INFO_KEY, "key is an empty string"));
    }
    Ok(key)
}

pub fn MPI_Info_create(info: Out<MPI_Info>) -> Outcome {
    info.set(info::create(Hints::default())?, "info")
}

pub fn MPI_Info_create_env(_argc: c_int, _argv: Strings, info: Out<MPI_Info>) -> Outcome {
    // `argc` and `argv` may be 0 and null: the process knows its own command line.
    info.set(info::create(info::hints(MPI_INFO_ENV)?)?, "info")
}

pub fn MPI_Info_dup(info: MPI_Info, newinfo: Out<MPI_Info>) -> Outcome {
    let copy = info::read(info, Hints::clone)?;
    newinfo.set(info::create(copy)?, "newinfo")
}

pub fn MPI_Info_free(info: InOut<MPI_Info>) -> Outcome {
    info::free(info.get("info")?)?;
    info.set(MPI_INFO_NULL, "info")
}

pub fn MPI_Info_set(info: MPI_Info, key: Text, value: Text) -> Outcome {
    let (key, value) = {
        let value = value.string(MPI_MAX_INFO_VAL, MPI_ERR_INFO_VALUE, "value");
        (key_of(key)?, value?)
    };
    info::change(info, |hints| hints.set(key, value))
}

pub fn MPI_Info_delete(info: MPI_Info, key: Text) -> Outcome {
    let key = key_of(key)?;
    if info::change(info, |hints| hints.delete(&key))? {
        Ok(())
    } else {
        Err(Failure::new(
            MPI_ERR_INFO_NOKEY,
            format!("the info object has no key `{key}`"),
        ))
    }
}

pub fn MPI_Info_get_nkeys(info: MPI_Info, nkeys: Out<c_int>) -> Outcome {
    let count = info::read(info, Hints::len)?;
    nkeys.set(count as c_int, "nkeys")
}

pub fn MPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: TextOut) -> Outcome {
    let at = length(n, "n")?;
    let found = info::read(info, |hints| {
        hints.nth_key(at).map(str::to_string).ok_or(hints.len())
    })?;
    let found = found.map_err(|keys| {
        Failure::new(
            MPI_ERR_ARG,
            format!("n is {n}, but the info object has {keys} keys"),
        )
    })?;
    key.set(&found, "key").map(|_| ())
}

/// Returns the value of a key, or `None` if the key is not set.
fn value_of(info: MPI_Info, key: Text) -> Result<Option<String>, Failure> {
    let key = key_of(key)?;
    info::read(info, |hints| hints.get(&key).map(str::to_string))
}

pub fn MPI_Info_get(
    info: MPI_Info,
    key: Text,
    valuelen: c_int,
    value: TextOut,
    flag: Out<c_int>,
) -> Outcome {
    let found = value_of(info, key)?;
    length(valuelen, "valuelen")?;
    if let Some(text) = &found {
        value.set(text, "value")?;
    }
    flag.set(found.is_some().into(), "flag")
}

pub fn MPI_Info_get_valuelen(
    info: MPI_Info,
    key: Text,
    valuelen: Out<c_int>,
    flag: Out<c_int>,
) -> Outcome {
    let found = value_of(info, key)?;
    if let Some(text) = &found {
        valuelen.set(text::to_bytes(text).len() as c_int, "valuelen")?;
    }
    flag.set(found.is_some().into(), "flag")
}

pub fn MPI_Info_get_string(
    info: MPI_Info,
    key: Text,
    value: SizedText,
    flag: Out<c_int>,
) -> Outcome {
    let found = value_of(info, key)?;
    let space = length(value.size("buflen")?, "buflen")?;
    if let Some(text) = &found {
        if space > 0 {
            value.buffer().set(text, "value")?;
        }
        // `buflen` counts the terminating NUL.
        value
            .length()
            .set(text::to_bytes(text).len() as c_int + 1, "buflen")?;
    }
    flag.set(found.is_some().into(), "flag")
}
