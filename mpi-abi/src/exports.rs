//! The exported symbols `MPI_*` and `PMPI_*`, made from `api/functions.txt` by the build script.
//!
//! `MPI_X` only calls `PMPI_X`, so a profiling tool may replace `MPI_X` and reach the library through `PMPI_X`.
#![allow(unsafe_code)]
// SAFETY of every unsafe block in the generated text: the arguments are passed on unchanged, and what they must satisfy is
// what the MPI standard asks of the caller of the C function; nothing in the library calls these symbols.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::too_many_arguments
)]
#![allow(non_snake_case)]

use crate::abi::*;
use crate::call::{call, call_making, tool_call, unmake};
// Which conversions are needed depends on what is implemented.
#[allow(unused_imports)]
use crate::convert::{read_scalar, scalar, write_scalar};
// Only a function that is not there yet fails by itself.
#[allow(unused_imports)]
use crate::error::Failure;
use crate::error::Target;
use crate::thrown::pass_on;
use std::ffi::{c_char, c_double, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/exports.rs"));
