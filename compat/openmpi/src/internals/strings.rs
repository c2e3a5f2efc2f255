//! Conversion between Fortran strings, which are padded with blanks, and C strings.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)]

use super::{OUT_OF_MEMORY, SUCCESS};
use std::ffi::{c_char, c_int};

/// Returns a copy of a Fortran string without surrounding blanks.
/// The caller releases it with `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_fortran_string_f2c(
    text: *const c_char,
    len: c_int,
    copy: *mut *mut c_char,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: the Fortran library passes a string of this length.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let blank = |byte: &u8| *byte == b' ';
    let begin = text.iter().position(|byte| !blank(byte)).unwrap_or(len);
    let end = text
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(begin, |at| at + 1);
    let text = &text[begin..end];
    // SAFETY: `malloc` has allocated memory for the text and its NUL.
    // `place` is an output argument of the caller.
    unsafe {
        let buffer: *mut u8 = libc::malloc(text.len() + 1).cast();
        if buffer.is_null() {
            return OUT_OF_MEMORY;
        }
        buffer.copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
        copy.write(buffer.cast());
    }
    SUCCESS
}

/// Copies a C string to a Fortran variable, padded with blanks.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_fortran_string_c2f(
    text: *const c_char,
    place: *mut c_char,
    len: c_int,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: the Fortran library passes a C string and a variable of this length.
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

/// Copies Fortran strings at intervals of `advance` bytes to a null-terminated array of C strings.
/// Copies `count` strings, or all strings before the first blank one.
unsafe fn strings(
    mut text: *const c_char,
    count: Option<c_int>,
    len: c_int,
    advance: c_int,
) -> Result<*mut *mut c_char, c_int> {
    let mut all: Vec<*mut c_char> = Vec::new();
    while count.is_none_or(|count| all.len() < usize::try_from(count).unwrap_or(0)) {
        let mut one = std::ptr::null_mut();
        // SAFETY: `text` is the address of the next string in the caller's array.
        // The copy is a C string.
        let blank = unsafe {
            match ompi_fortran_string_f2c(text, len, &raw mut one) {
                SUCCESS => {}
                error => return Err(error),
            }
            one.read() == 0
        };
        if blank && count.is_none() {
            // SAFETY: the copy was allocated by `malloc` and is not used afterwards.
            unsafe { libc::free(one.cast()) };
            break;
        }
        all.push(one);
        // SAFETY: the caller's strings are `advance` bytes apart.
        text = unsafe { text.offset(advance as isize) };
    }
    all.push(std::ptr::null_mut());
    // SAFETY: the memory has space for these pointers, and `opal_argv_free` releases it.
    unsafe {
        let buffer: *mut *mut c_char = libc::malloc(size_of_val(&all[..])).cast();
        if buffer.is_null() {
            return Err(OUT_OF_MEMORY);
        }
        buffer.copy_from_nonoverlapping(all.as_ptr(), all.len());
        Ok(buffer)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_fortran_argv_blank_f2c(
    array: *const c_char,
    len: c_int,
    advance: c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the Fortran library passes an array of such strings and a valid output argument.
    unsafe { give(argv, strings(array, None, len, advance)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_fortran_argv_count_f2c(
    array: *const c_char,
    count: c_int,
    len: c_int,
    advance: c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: the Fortran library passes an array of such strings and a valid output argument.
    unsafe { give(argv, strings(array, Some(count), len, advance)) }
}

/// Converts the Fortran argument strings of several commands to C.
/// Consecutive arguments of one command are `commands` strings apart.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_fortran_multiple_argvs_f2c(
    commands: c_int,
    array: *const c_char,
    len: c_int,
    argvs: *mut *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(commands).unwrap_or(0);
    // SAFETY: the Fortran library passes an array of such strings.
    // `malloc` allocates memory for all pointers.
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
            // SAFETY: the Fortran library passes a valid pointer as its output argument.
            unsafe { place.write(made) };
            SUCCESS
        }
        Err(error) => error,
    }
}

/// Frees an array made by `strings`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn opal_argv_free(argv: *mut *mut c_char) {
    if argv.is_null() {
        return;
    }
    // SAFETY: the array was made by `strings`: C strings from `malloc`, and a terminating null.
    unsafe {
        let mut next = argv;
        while !next.read().is_null() {
            libc::free(next.read().cast());
            next = next.add(1);
        }
        libc::free(argv.cast());
    }
}
