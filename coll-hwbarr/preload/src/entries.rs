//! The functions that stand in front of the library's, in C and in Fortran, written by the build from `build/watched.rs`.
#![allow(unsafe_code, non_snake_case)]
// SAFETY of every unsafe block in the generated text: arguments go on as they came; what they must satisfy is what the MPI
// standard asks of the caller.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::multiple_unsafe_ops_per_block
)]

use crate::next::{Next, absent, too_large};
use crate::watch;
use crate::watch::record;
use crate::watch::said::{Integers, Message, Place, Requests, Round, Said, Statuses, Way};
use coll_hwbarr_foreign::library::Handle;
use mpi_core::coll::CallId;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

macro_rules! message {
    ($count:expr, $datatype:expr, $peer:expr, $tag:expr, $comm:expr) => {
        Message {
            count: $count,
            datatype: $datatype,
            peer: $peer as c_int,
            tag: $tag as c_int,
            comm: $comm,
        }
    };
}

macro_rules! round {
    ($call:ident, $comm:expr) => {
        Round::new(CallId::$call, $comm)
    };
}

/// A number of Fortran.
///
/// # Safety
/// It is readable.
unsafe fn integer(at: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { at.cast::<c_int>().read() }
}

/// Calls with a place for the error, which may be absent, and reads it.
///
/// # Safety
/// `error` is null or an integer of the program that may be written.
unsafe fn told_in_fortran(error: *mut c_int, call: impl FnOnce(*mut c_int)) -> c_int {
    let mut code: c_int = 0;
    call(&raw mut code);
    if !error.is_null() {
        // SAFETY: the caller's promise, and it is not null.
        unsafe { error.write(code) };
    }
    code
}

/// What a function of Fortran gives that the library below does not have.
///
/// # Safety
/// `error` is null or an integer of the program that may be written.
unsafe fn absent_in_fortran(name: &CStr, error: *mut c_int) {
    let code = absent(name);
    if !error.is_null() {
        // SAFETY: the caller's promise, and it is not null.
        unsafe { error.write(code) };
    }
}

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
