//! The exported symbols `MPI_*` and `PMPI_*`, which the build script generates.
//!
//! `MPI_X` only calls `PMPI_X`, so a profiling tool can override `MPI_X` and call `PMPI_X`.
#![allow(unsafe_code)]
// SAFETY of every unsafe block in the generated text: the C arguments are forwarded unchanged.
// The callee's contract is the MPI standard's requirement on the caller of the C function.
// The library itself does not call these symbols.
// A function without pointers has a safe implementation, but its wrapper has an `unsafe` block.
#![allow(unused_unsafe)]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::too_many_arguments
)]
#![allow(non_snake_case)]

use crate::abi::*;
use crate::api::args::{
    In, InArray, InOut, InOutArray, Out, RecvBlocks, RecvMem, SendBlocks, SendMem, SizedOut,
    SizedText, Strings, Text, TextOut, Uncounted, UncountedOut, Untyped,
};
use crate::call::{
    BuffersUntil, call_creating, call_entered_by, call_in_lane, call_with_buffers,
    call_with_buffers_entered_by, reset_handle, tool_call,
};
// Some conversions may be unused: the set depends on which functions are implemented.
#[allow(unused_imports)]
use crate::convert::{read_scalar, scalar, write_scalar};
// Used only in the wrappers of functions that are not implemented.
#[allow(unused_imports)]
use crate::error::Failure;
use crate::error::Target;
use crate::thrown::pass_on;
use std::ffi::{c_char, c_double, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
