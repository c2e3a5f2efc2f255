//! Strings of Fortran, which are as long as their variables and end with blanks, as those of C, and back.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)]

use super::{OUT_OF_MEMORY, SUCCESS};
use std::ffi::{c_char, c_int};

/// A copy of a Fortran string without the blanks around it, to be given back by `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_string_f2c(
    text: *const c_char,
    len: c_int,
    copy: *mut *mut c_char,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: a string of the caller, of that length.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let blank = |byte: &u8| *byte == b' ';
    let begin = text.iter().position(|byte| !blank(byte)).unwrap_or(len);
    let end = text
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(begin, |at| at + 1);
    let text = &text[begin..end];
    // SAFETY: memory for the text and its end, an output argument of the caller.
    unsafe {
        let room: *mut u8 = libc::malloc(text.len() + 1).cast();
        if room.is_null() {
            return OUT_OF_MEMORY;
        }
        room.copy_from_nonoverlapping(text.as_ptr(), text.len());
        room.add(text.len()).write(0);
        copy.write(room.cast());
    }
    SUCCESS
}

/// A C string in a Fortran variable, filled up with blanks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_string_c2f(
    text: *const c_char,
    place: *mut c_char,
    len: c_int,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: a C string and a variable of the caller, of that length.
    unsafe {
        let text = std::ffi::CStr::from_ptr(text).to_bytes();
        let here = text.len().min(len);
        place
            .cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), here);
        place.add(here).cast::<u8>().write_bytes(b' ', len - here);
    }
    SUCCESS
}

/// C strings of Fortran's, one every `advance` bytes, with null behind the last: `count` of them, or up to the first that is blank.
unsafe fn strings(
    mut text: *const c_char,
    count: Option<c_int>,
    len: c_int,
    advance: c_int,
) -> Result<*mut *mut c_char, c_int> {
    let mut all: Vec<*mut c_char> = Vec::new();
    while count.is_none_or(|count| all.len() < usize::try_from(count).unwrap_or(0)) {
        let mut one = std::ptr::null_mut();
        // SAFETY: the next string of the caller; the copy is a C string.
        let blank = unsafe {
            match ompi_fortran_string_f2c(text, len, &raw mut one) {
                SUCCESS => {}
                error => return Err(error),
            }
            one.read() == 0
        };
        if blank && count.is_none() {
            // SAFETY: the copy of a moment ago.
            unsafe { libc::free(one.cast()) };
            break;
        }
        all.push(one);
        // SAFETY: the caller's strings follow one another so.
        text = unsafe { text.offset(advance as isize) };
    }
    all.push(std::ptr::null_mut());
    // SAFETY: memory for so many pointers, which `opal_argv_free` gives back.
    unsafe {
        let room: *mut *mut c_char = libc::malloc(size_of_val(&all[..])).cast();
        if room.is_null() {
            return Err(OUT_OF_MEMORY);
        }
        room.copy_from_nonoverlapping(all.as_ptr(), all.len());
        Ok(room)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_argv_blank_f2c(
    array: *const c_char,
    len: c_int,
    advance: c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: arguments of the caller.
    unsafe { give(argv, strings(array, None, len, advance)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_argv_count_f2c(
    array: *const c_char,
    count: c_int,
    len: c_int,
    advance: c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: arguments of the caller.
    unsafe { give(argv, strings(array, Some(count), len, advance)) }
}

/// Arguments of several commands: those of one stand `commands` strings apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_multiple_argvs_f2c(
    commands: c_int,
    array: *const c_char,
    len: c_int,
    argvs: *mut *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(commands).unwrap_or(0);
    // SAFETY: arguments of the caller; memory for as many pointers.
    unsafe {
        let all: *mut *mut *mut c_char =
            libc::malloc(count.max(1) * size_of::<*mut *mut c_char>()).cast();
        if all.is_null() {
            return OUT_OF_MEMORY;
        }
        for command in 0..count {
            let first = array.add(command * usize::try_from(len).unwrap_or(0));
            let one = give(all.add(command), strings(first, None, len, len * commands));
            if one != SUCCESS {
                libc::free(all.cast());
                return one;
            }
        }
        argvs.write(all);
    }
    SUCCESS
}

unsafe fn give(place: *mut *mut *mut c_char, made: Result<*mut *mut c_char, c_int>) -> c_int {
    match made {
        Ok(made) => {
            // SAFETY: an output argument, which the program must pass as a valid pointer.
            unsafe { place.write(made) };
            SUCCESS
        }
        Err(error) => error,
    }
}

/// Gives back what `strings` made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_argv_free(argv: *mut *mut c_char) {
    if argv.is_null() {
        return;
    }
    // SAFETY: made by `strings`: strings and a null behind them.
    unsafe {
        let mut next = argv;
        while !next.read().is_null() {
            libc::free(next.read().cast());
            next = next.add(1);
        }
        libc::free(argv.cast());
    }
}
