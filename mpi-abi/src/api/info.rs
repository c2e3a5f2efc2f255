//! Info objects (chapter 10).

use super::args::{length, out, read, string, write_string};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use mpi_base::text;
use std::ffi::{c_char, c_int};

/// Reads a key argument.
///
/// # Safety
/// `key` is a string of the caller or null.
unsafe fn key_of(key: *const c_char) -> Result<String, Failure> {
    // SAFETY: `key` is null or NUL-terminated: `# Safety` of this function.
    let key = unsafe { string(key, MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY, "key")? };
    if key.is_empty() {
        return Err(Failure::new(MPI_ERR_INFO_KEY, "key is an empty string"));
    }
    Ok(key)
}

pub unsafe fn MPI_Info_create(info: *mut MPI_Info) -> Outcome {
    // SAFETY: `info` is null or writable: the C binding of MPI_Info_create requires it of the caller.
    unsafe { out(info, info::create(Hints::default())?, "info") }
}

pub unsafe fn MPI_Info_create_env(
    _argc: c_int,
    _argv: *mut *mut c_char,
    info: *mut MPI_Info,
) -> Outcome {
    // The arguments may be zero and null; the process knows its own command line.
    // SAFETY: `info` is null or writable: the C binding of MPI_Info_create_env requires it of the caller.
    unsafe { out(info, info::create(info::hints(MPI_INFO_ENV)?)?, "info") }
}

pub unsafe fn MPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> Outcome {
    let copy = info::read(info, Hints::clone)?;
    // SAFETY: `newinfo` is null or writable: the C binding of MPI_Info_dup requires it of the caller.
    unsafe { out(newinfo, info::create(copy)?, "newinfo") }
}

pub unsafe fn MPI_Info_free(info: *mut MPI_Info) -> Outcome {
    // SAFETY: `info` is valid as the C binding of MPI_Info_free requires of its caller.
    unsafe {
        info::free(read(info, "info")?)?;
        out(info, MPI_INFO_NULL, "info")
    }
}

pub unsafe fn MPI_Info_set(info: MPI_Info, key: *const c_char, value: *const c_char) -> Outcome {
    // SAFETY: `key` and `value` are valid as the C binding of MPI_Info_set requires of its caller.
    let (key, value) = unsafe {
        let value = string(value, MPI_MAX_INFO_VAL, MPI_ERR_INFO_VALUE, "value");
        (key_of(key)?, value?)
    };
    info::change(info, |hints| hints.set(key, value))
}

pub unsafe fn MPI_Info_delete(info: MPI_Info, key: *const c_char) -> Outcome {
    // SAFETY: `key` is valid as the C binding of MPI_Info_delete requires of its caller.
    let key = unsafe { key_of(key)? };
    if info::change(info, |hints| hints.delete(&key))? {
        Ok(())
    } else {
        Err(Failure::new(
            MPI_ERR_INFO_NOKEY,
            format!("the info object has no key `{key}`"),
        ))
    }
}

pub unsafe fn MPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> Outcome {
    let count = info::read(info, Hints::len)?;
    // SAFETY: `nkeys` is null or writable: the C binding of MPI_Info_get_nkeys requires it of the caller.
    unsafe { out(nkeys, count as c_int, "nkeys") }
}

pub unsafe fn MPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> Outcome {
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
    let mut ignored = 0;
    // SAFETY: `key` has MPI_MAX_INFO_KEY bytes: the C binding of MPI_Info_get_nthkey requires it of the caller.
    unsafe { write_string(key, &mut ignored, &found, MPI_MAX_INFO_KEY, "key") }
}

/// Returns the value of a key, if it is set.
///
/// # Safety
/// `key` is a string of the caller or null.
unsafe fn value_of(info: MPI_Info, key: *const c_char) -> Result<Option<String>, Failure> {
    // SAFETY: `key` is valid by the `# Safety` contract of this function.
    let key = unsafe { key_of(key)? };
    info::read(info, |hints| hints.get(&key).map(str::to_string))
}

pub unsafe fn MPI_Info_get(
    info: MPI_Info,
    key: *const c_char,
    valuelen: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Outcome {
    // SAFETY: `key` is valid as the C binding of MPI_Info_get requires of its caller.
    let found = unsafe { value_of(info, key)? };
    let room = length(valuelen, "valuelen")? as c_int;
    // SAFETY: `value` is null or writable for `valuelen` characters and the NUL, and `flag` is null or writable: the C binding of MPI_Info_get requires it of the caller.
    unsafe {
        if let Some(text) = &found {
            let mut ignored = 0;
            write_string(value, &mut ignored, text, room.saturating_add(1), "value")?;
        }
        out(flag, found.is_some().into(), "flag")
    }
}

pub unsafe fn MPI_Info_get_valuelen(
    info: MPI_Info,
    key: *const c_char,
    valuelen: *mut c_int,
    flag: *mut c_int,
) -> Outcome {
    // SAFETY: `key`, `valuelen` and `flag` are valid as the C binding of MPI_Info_get_valuelen requires of its caller.
    unsafe {
        let found = value_of(info, key)?;
        if let Some(text) = &found {
            out(valuelen, text::to_bytes(text).len() as c_int, "valuelen")?;
        }
        out(flag, found.is_some().into(), "flag")
    }
}

pub unsafe fn MPI_Info_get_string(
    info: MPI_Info,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Outcome {
    // SAFETY: `key`, `buflen`, `value` (for `*buflen` bytes) and `flag` are valid as the C binding of MPI_Info_get_string requires of its caller.
    unsafe {
        let found = value_of(info, key)?;
        let room = length(read(buflen, "buflen")?, "buflen")? as c_int;
        if let Some(text) = &found {
            if room > 0 {
                let mut ignored = 0;
                write_string(value, &mut ignored, text, room, "value")?;
            }
            // `buflen` counts the terminating NUL.
            out(buflen, text::to_bytes(text).len() as c_int + 1, "buflen")?;
        }
        out(flag, found.is_some().into(), "flag")
    }
}
