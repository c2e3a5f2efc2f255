//! The tool interface (section 15.3).
//!
//! The functions return error codes, and call no error handler.

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

/// Stores a required result. A null pointer is an error.
fn result<T>(to: Out<T>, value: T, name: &str) -> Outcome {
    match to.put(value) {
        true => Ok(()),
        false => Err(null(name)),
    }
}

/// Stores an optional result. A tool passes a null pointer to skip it.
fn wanted<T>(to: Out<T>, value: T) {
    to.put(value);
}

/// Returns the failure for a null pointer.
fn null(name: &str) -> Failure {
    Failure::new(MPI_T_ERR_INVALID, format!("{name} is a null pointer"))
}

/// Stores a string as section 15.3.3 requires: truncated to the buffer.
/// The size argument is replaced by the full length with the NUL.
fn text(to: SizedText, text: &str) {
    if to.is_wanted() {
        // The buffer is not null, so `set` succeeds.
        let _ = to.buffer().set(text, "");
    }
    to.length().put(int(text.len() + 1));
}

/// Stores the index of a name in the list `names`. An unknown name is an error.
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

/// Converts a length or an index to int; a larger value saturates.
fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}
