//! The tool interface (section 15.3), whose functions return their errors and never raise them.

pub mod category;
pub mod cvar;
pub mod enumeration;
pub mod event;
pub mod pvar;

use crate::abi::*;
use crate::api::args::{Out, SizedText, Text};
use crate::error::{Failure, Outcome};
use crate::tool::{self, unknown};
use std::ffi::c_int;

pub fn MPI_T_init_thread(required: c_int, provided: Out<c_int>) -> Outcome {
    if provided.is_null() {
        return Err(null("provided"));
    }
    result(provided, tool::begin(required), "provided")
}

pub fn MPI_T_finalize() -> Outcome {
    tool::end()
}

/// Stores the result of a call.
fn result<T>(to: Out<T>, value: T, name: &str) -> Outcome {
    match to.put(value) {
        true => Ok(()),
        false => Err(null(name)),
    }
}

/// Stores one of several results, which a tool skips with a null pointer.
fn wanted<T>(to: Out<T>, value: T) {
    to.put(value);
}

/// The failure of a null pointer.
fn null(name: &str) -> Failure {
    Failure::new(MPI_T_ERR_INVALID, format!("{name} is a null pointer"))
}

/// Stores a string by the convention of section 15.3.3: truncated to the buffer, whose size is replaced by the full length.
fn text(to: SizedText, text: &str) {
    if to.is_wanted() {
        // A buffer is present, so this cannot fail.
        let _ = to.buffer().set(text, "");
    }
    to.length().put(int(text.len() + 1));
}

/// Stores the index of a name in a list, for the functions that look one up.
fn look_up<'a>(
    name: Text,
    mut names: impl Iterator<Item = &'a str>,
    what: &str,
    index: Out<c_int>,
) -> Outcome {
    let name = name.get().ok_or_else(|| null("name"))?.to_string_lossy();
    let found = names.position(|n| n == name);
    let found = found.ok_or_else(|| unknown(&name, what))?;
    result(index, int(found), "the index")
}

/// Converts a length or an index to int.
fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}
