//! Strings: of fixed length and padded with blanks in Fortran, ended by a zero byte in C.
#![allow(unsafe_code)]

use fortran_sections::Descriptor;
use std::ffi::CString;

/// The characters of a string without the blanks at its end.
///
/// # Safety
/// `text` has `length` characters.
pub unsafe fn trimmed<'t>(text: *const u8, length: usize) -> &'t [u8] {
    if text.is_null() || length == 0 {
        return b"";
    }
    // SAFETY: the caller states the number of characters.
    let all = unsafe { std::slice::from_raw_parts(text, length) };
    let end = all
        .iter()
        .rposition(|c| *c != b' ')
        .map_or(0, |last| last + 1);
    &all[..end]
}

/// A string for C, without the blanks at its end. A zero byte ends it.
///
/// # Safety
/// `text` has `length` characters.
pub unsafe fn input(text: *const u8, length: usize) -> CString {
    // SAFETY: the caller states the number of characters.
    to_c(unsafe { trimmed(text, length) })
}

/// The same without the blanks in front either: keys and values of info objects.
///
/// # Safety
/// `text` has `length` characters.
pub unsafe fn input_both_sides(text: *const u8, length: usize) -> CString {
    // SAFETY: the caller states the number of characters.
    let characters = unsafe { trimmed(text, length) };
    let start = characters.iter().position(|c| *c != b' ').unwrap_or(0);
    to_c(&characters[start..])
}

/// Characters as a string of C; a zero byte ends it.
pub fn to_c(characters: &[u8]) -> CString {
    let end = characters
        .iter()
        .position(|c| *c == 0)
        .unwrap_or(characters.len());
    CString::new(&characters[..end]).unwrap_or_default()
}

/// The same of a string with a descriptor.
///
/// # Safety
/// The descriptor is one that a compiler has made for a CHARACTER.
pub unsafe fn described(text: *const Descriptor) -> CString {
    // SAFETY: the caller states that it describes characters.
    unsafe { input((*text).base().cast(), (*text).element_size()) }
}

/// Returns a string of C to Fortran if the call succeeded: cut to the variable's length, or padded with blanks.
///
/// # Safety
/// `to` has `length` characters.
pub unsafe fn output(outcome: i32, to: *mut u8, length: usize, from: &[u8]) {
    if outcome != 0 || to.is_null() {
        return;
    }
    let end = from.iter().position(|c| *c == 0).unwrap_or(from.len());
    let copied = end.min(length);
    // SAFETY: the caller states the number of characters of the variable.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr(), to, copied);
        std::ptr::write_bytes(to.add(copied), b' ', length - copied);
    }
}
