//! Reading and writing what C passes by pointer.
//!
//! Each function checks for null and says which argument was; what else a pointer must satisfy is the caller's promise.

use crate::abi::*;
use crate::error::{Failure, Outcome};
use std::ffi::{CStr, c_char, c_int};

/// The failure of a null pointer.
#[cold]
fn null(name: &str) -> Failure {
    Failure::new(MPI_ERR_ARG, format!("{name} is a null pointer"))
}

/// Stores a result.
///
/// # Safety
/// A pointer that is not null is valid for writing.
#[inline]
pub unsafe fn out<T>(to: *mut T, value: T, name: &str) -> Outcome {
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Reads an argument that is passed by pointer.
///
/// # Safety
/// A pointer that is not null is valid for reading.
#[inline]
pub unsafe fn read<T: Copy>(from: *const T, name: &str) -> Result<T, Failure> {
    if from.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    Ok(unsafe { *from })
}

/// An array argument; a null pointer is an empty array.
///
/// # Safety
/// A pointer that is not null is valid for reading `len` elements for as long as the result is used.
#[inline]
pub unsafe fn slice<'a, T>(from: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    match (from.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        // SAFETY: not null, and otherwise valid by the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(from, len) }),
    }
}

/// An array that is written.
///
/// # Safety
/// A pointer that is not null is valid for reading and writing `len` elements for as long as the result is used, by nothing else.
#[inline]
pub unsafe fn slice_mut<'a, T>(
    from: *mut T,
    len: usize,
    name: &str,
) -> Result<&'a mut [T], Failure> {
    match (from.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(null(name)),
        // SAFETY: not null, and otherwise valid by the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(from, len) }),
    }
}

/// The length of an array argument, which must not be negative.
#[inline]
pub fn length(value: c_int, name: &str) -> Result<usize, Failure> {
    usize::try_from(value)
        .map_err(|_| Failure::new(MPI_ERR_ARG, format!("{name} is {value}, which is negative")))
}

/// A string argument shorter than `max` bytes, whose violation is an error of `class`.
///
/// # Safety
/// A pointer that is not null leads to a string that ends with a zero byte.
pub unsafe fn string(
    from: *const c_char,
    max: c_int,
    class: c_int,
    name: &str,
) -> Result<String, Failure> {
    if from.is_null() {
        return Err(Failure::new(class, format!("{name} is a null pointer")));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    let text = unsafe { CStr::from_ptr(from) };
    let len = text.count_bytes();
    if len >= max.unsigned_abs() as usize {
        return Err(Failure::new(
            class,
            format!(
                "{name} has {len} characters, but at most {} are allowed",
                max - 1
            ),
        ));
    }
    Ok(text.to_string_lossy().into_owned())
}

/// Stores a string and its length, cut to the room of `max` bytes with the terminating zero.
///
/// # Safety
/// Pointers that are not null are valid for writing, `to` for `max` bytes.
pub unsafe fn write_string(
    to: *mut c_char,
    len: *mut c_int,
    text: &str,
    max: c_int,
    name: &str,
) -> Outcome {
    if to.is_null() {
        return Err(null(name));
    }
    let bytes = text.as_bytes();
    let kept = bytes.len().min((max.max(1) - 1) as usize);
    // SAFETY: room for `kept` bytes and the zero by the caller's promise; the source is another object.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, kept);
        to.add(kept).write(0);
        out(len, kept as c_int, "resultlen")
    }
}
