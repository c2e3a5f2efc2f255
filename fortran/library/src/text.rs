//! Strings: padded with blanks in Fortran, terminated by a zero byte in C.
#![allow(unsafe_code)]

use fortran_sections::Descriptor;
use std::ffi::CString;

/// Returns the characters of a string without trailing blanks.
///
/// # Safety
/// `text` has `length` characters.
pub unsafe fn trimmed<'t>(text: *const u8, length: usize) -> &'t [u8] {
    if text.is_null() || length == 0 {
        return b"";
    }
    // SAFETY: `text` has `length` characters by this function's contract.
    let all = unsafe { std::slice::from_raw_parts(text, length) };
    let end = all
        .iter()
        .rposition(|c| *c != b' ')
        .map_or(0, |last| last + 1);
    &all[..end]
}

/// Converts a string for C, without trailing blanks. A zero byte ends the string.
///
/// # Safety
/// `text` has `length` characters.
pub unsafe fn input(text: *const u8, length: usize) -> CString {
    // SAFETY: `text` has `length` characters by this function's contract.
    to_c(unsafe { trimmed(text, length) })
}

/// Converts a key or value of an info object for C, without leading and trailing blanks.
///
/// # Safety
/// `text` has `length` characters.
pub unsafe fn input_both_sides(text: *const u8, length: usize) -> CString {
    // SAFETY: `text` has `length` characters by this function's contract.
    let characters = unsafe { trimmed(text, length) };
    let start = characters.iter().position(|c| *c != b' ').unwrap_or(0);
    to_c(&characters[start..])
}

/// Converts characters to a C string, up to the first zero byte.
pub fn to_c(characters: &[u8]) -> CString {
    let end = characters
        .iter()
        .position(|c| *c == 0)
        .unwrap_or(characters.len());
    CString::new(&characters[..end]).unwrap_or_default()
}

/// Converts a string with a descriptor for C.
///
/// # Safety
/// `text` is a compiler's descriptor of a CHARACTER.
pub unsafe fn described(text: *const Descriptor) -> CString {
    // SAFETY: `text` is a compiler's descriptor of a CHARACTER by this function's contract.
    unsafe { input((*text).base().cast(), (*text).element_size()) }
}

/// Stores a C string in a Fortran variable after a success: truncated, or padded with blanks.
///
/// # Safety
/// `to` has `length` characters.
pub unsafe fn output(outcome: i32, to: *mut u8, length: usize, from: &[u8]) {
    if outcome != 0 || to.is_null() {
        return;
    }
    let end = from.iter().position(|c| *c == 0).unwrap_or(from.len());
    let copied = end.min(length);
    // SAFETY: `to` has `length` characters by this function's contract.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr(), to, copied);
        std::ptr::write_bytes(to.add(copied), b' ', length - copied);
    }
}
