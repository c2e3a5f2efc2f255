//! The tool interface (section 15.3), whose functions return their errors and never raise them.

pub mod category;
pub mod cvar;
pub mod none;
pub mod pvar;

use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::tool::{self, unknown};
use std::ffi::{CStr, c_char, c_int};

pub unsafe fn MPI_T_init_thread(required: c_int, provided: *mut c_int) -> Outcome {
    let level = required.clamp(MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE);
    // SAFETY: `provided` is valid as the C binding of MPI_T_init_thread requires of its caller.
    unsafe { result(provided, level, "provided")? };
    tool::begin();
    Ok(())
}

pub unsafe fn MPI_T_finalize() -> Outcome {
    tool::end()
}

/// Stores the result of a call.
///
/// # Safety
/// A pointer that is not null is valid for writing.
unsafe fn result<T>(to: *mut T, value: T, name: &str) -> Outcome {
    if to.is_null() {
        let sentence = format!("{name} is a null pointer");
        return Err(Failure::new(MPI_T_ERR_INVALID, sentence));
    }
    // SAFETY: not null, so valid for writing by the `# Safety` contract of this function.
    unsafe { to.write(value) };
    Ok(())
}

/// Stores one of several results, which a tool skips with a null pointer.
///
/// # Safety
/// A pointer that is not null is valid for writing.
unsafe fn wanted<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, so valid for writing by the `# Safety` contract of this function.
        unsafe { to.write(value) };
    }
}

/// Stores a string by the convention of section 15.3.3: truncated to the buffer size in `len`, which is replaced by its full length.
///
/// # Safety
/// Pointers that are not null are valid for writing, `to` for `*len` characters.
unsafe fn text(to: *mut c_char, len: *mut c_int, text: &str) {
    if len.is_null() {
        return;
    }
    // SAFETY: not null, so valid for reading by the `# Safety` contract of this function.
    let room = usize::try_from(unsafe { len.read() }).unwrap_or(0);
    if !to.is_null() && room > 0 {
        let cut = text.len().min(room - 1);
        // SAFETY: `to` is valid for `*len` characters by the `# Safety` contract of this function, and no more are written.
        unsafe {
            to.copy_from_nonoverlapping(text.as_ptr().cast(), cut);
            to.add(cut).write(0);
        }
    }
    // SAFETY: `len` is not null, so valid for writing by the `# Safety` contract of this function.
    unsafe { len.write(int(text.len() + 1)) };
}

/// Stores the index of a name in a list, for the functions that look one up.
///
/// # Safety
/// A pointer that is not null points to a NUL-terminated string; `index` is an output argument of the caller.
unsafe fn look_up<'a>(
    name: *const c_char,
    mut names: impl Iterator<Item = &'a str>,
    what: &str,
    index: *mut c_int,
) -> Outcome {
    if name.is_null() {
        return Err(Failure::new(MPI_T_ERR_INVALID, "name is a null pointer"));
    }
    // SAFETY: not null, so NUL-terminated by the `# Safety` contract of this function.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let found = names.position(|n| n == name);
    let found = found.ok_or_else(|| unknown(&name, what))?;
    // SAFETY: `index` is valid by the `# Safety` contract of this function.
    unsafe { result(index, int(found), "the index") }
}

/// Converts a length or an index to int.
fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}
