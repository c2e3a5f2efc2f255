//! Argument types of the MPI functions, made by the generated wrappers from the C pointers.
//!
//! The constructors are `unsafe`. Each states what the standard requires of the C caller.
//! All other methods are safe: they check for null pointers, and their errors name the argument.
//! So most MPI functions are safe functions, whose parameters have these types.
//! An MPI function needs `unsafe` for an array whose length depends on an MPI object,
//! such as the size of a communicator.
//! Calls of the program's callbacks also need `unsafe`.
//!
//! * `scalar`: pointers to one scalar, handle or status.
//! * `status`: output statuses; a call may set only some of their fields.
//! * `array`: input and output arrays.
//! * `text`: strings, and buffers for them.
//! * `memory`: send and receive buffers.
//! * `blocks`: buffers with one block for each rank or neighbour.
//! * `untyped`: `void *` arguments of the tool interface.
#![allow(unsafe_code)]

mod array;
mod blocks;
mod memory;
mod scalar;
mod status;
mod text;
mod untyped;

pub use array::{InArray, InOutArray, SizedOut, Uncounted, UncountedOut};
pub use blocks::{RecvBlocks, SendBlocks};
pub use memory::{Blocks, RecvMem, Resolved, SendMem};
pub use scalar::{In, InOut, Later, Out};
pub use text::{SizedText, Strings, Text, TextOut};
pub use untyped::Untyped;

use crate::abi::*;
use crate::error::Failure;
use std::ffi::c_int;

/// Returns the failure for a null pointer argument.
#[cold]
pub fn null(name: &str) -> Failure {
    Failure::new(MPI_ERR_ARG, format!("{name} is a null pointer"))
}

/// Converts the length of an array argument to `usize`; a negative length is an error.
#[inline]
pub fn length(value: c_int, name: &str) -> Result<usize, Failure> {
    usize::try_from(value)
        .map_err(|_| Failure::new(MPI_ERR_ARG, format!("{name} is {value}, which is negative")))
}

/// Returns an input array of `len` elements. The caller takes `len` from an MPI object, such as the size of the communicator.
/// An empty array may be null.
///
/// # Safety
/// A pointer that is not null has `len` readable elements while the result is used.
#[inline]
pub unsafe fn slice<'a, T>(from: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    // SAFETY: `from` is valid for `len` elements by the `# Safety` contract of this function.
    unsafe { InArray::new(from, len as i64) }.get(name)
}

/// Reads an array of counts or displacements, `int` or 64-bit, and widens them to `i64`.
/// The caller takes `len` from an MPI object, such as the size of the communicator.
///
/// # Safety
/// A pointer that is not null is valid for reading `len` elements.
pub unsafe fn widened<T: IntoI64>(
    from: *const T,
    len: usize,
    name: &str,
) -> Result<Vec<i64>, Failure> {
    // SAFETY: `from` is valid for `len` elements by the `# Safety` contract of this function.
    unsafe { InArray::new(from, len as i64) }.widened(name)
}

/// An integer type of counts and displacements.
pub trait IntoI64: Copy {
    fn wide(self) -> i64;
}

impl IntoI64 for c_int {
    #[inline(always)]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl IntoI64 for i64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
}

impl IntoI64 for isize {
    #[inline(always)]
    fn wide(self) -> i64 {
        self as i64
    }
}
