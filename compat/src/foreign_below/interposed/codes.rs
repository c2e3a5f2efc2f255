//! Error classes that the backend does not have, and a registry of codes that the program added.
//!
//! A class that the backend does not have becomes a code outside the range of the backend's codes
//! ([`crate::convert::own_class_in`]), which no library returns.
//! This module returns the class and the text of such a code.
//! The program's error handler receives the class; the backend is called with `MPI_ERR_OTHER`.
//! The registry shows what may be removed: classes without codes, and codes without texts.

use super::{original, put_in_front};
use crate::convert::own_class_out;
use crate::family::Word;
use crate::foreign_below::Foreign;
use crate::foreign_below::error_handlers::with_code;
use crate::foreign_below::fortran::class_below;
use crate::foreign_below::standard::class;
use crate::lock::lock;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard};

/// The texts of error classes that older libraries lack: `MPI_ERR_PROC_ABORTED` to `MPI_ERR_ABI`.
const TEXTS: [(c_int, &CStr); 5] = [
    (58, c"operation failed because a peer process has aborted"),
    (59, c"value is too large to store"),
    (60, c"invalid session argument"),
    (61, c"invalid error handler handle"),
    (62, c"error related to the application binary interface"),
];
const NO_TEXT: &CStr = c"an error class that the library below does not have";

/// An error class or code that the program has added. For a class, `class` is `None`.
struct Added {
    code: c_int,
    class: Option<c_int>,
    has_text: bool,
}

static ADDED: Mutex<Vec<Added>> = Mutex::new(Vec::new());

fn added() -> MutexGuard<'static, Vec<Added>> {
    lock(&ADDED)
}

/// Removes an added class or code from the registry. Returns 0 or the code of `MPI_ERR_ARG`.
pub fn remove<F: Foreign>(code: c_int, is_class: bool) -> c_int {
    let mut added = added();
    let is_used = added
        .iter()
        .any(|other| other.class == Some(code) || (other.code == code && other.has_text));
    let place = added
        .iter()
        .position(|known| known.code == code && known.class.is_none() == is_class);
    match place {
        Some(place) if !is_used => {
            added.swap_remove(place);
            0
        }
        _ => class_below::<F>(class::ARG),
    }
}

/// Makes the text of an added class or code empty. Returns 0 or an error code.
///
/// # Safety
/// MPI is initialized and not finalized.
pub unsafe fn remove_text<F: Foreign>(code: c_int) -> c_int {
    let mut added = added();
    match added
        .iter_mut()
        .find(|known| known.code == code && known.has_text)
    {
        Some(known) => {
            known.has_text = false;
            // SAFETY: the program has added this code, and the text is an empty C string.
            unsafe { original!(MPI_Add_error_string)(code, c"".as_ptr()) }
        }
        None => class_below::<F>(class::ARG),
    }
}

// SAFETY of all functions below: the exported functions call them, not the backend's functions.
// The arguments are the program's, which the standard requires to be valid.

unsafe extern "C-unwind" fn MPI_Add_error_class<F: Foreign>(class: *mut c_int) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code = original!(MPI_Add_error_class)(class);
        if code == 0 {
            added().push(Added {
                code: *class,
                class: None,
                has_text: false,
            });
        }
        code
    }
}

unsafe extern "C-unwind" fn MPI_Add_error_code<F: Foreign>(
    class: c_int,
    made: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code = original!(MPI_Add_error_code)(class, made);
        if code == 0 {
            added().push(Added {
                code: *made,
                class: Some(class),
                has_text: false,
            });
        }
        code
    }
}

unsafe extern "C-unwind" fn MPI_Add_error_string<F: Foreign>(
    of: c_int,
    text: *const c_char,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code = original!(MPI_Add_error_string)(of, text);
        if let Some(known) = added()
            .iter_mut()
            .find(|known| code == 0 && known.code == of)
        {
            known.has_text = true;
        }
        code
    }
}

unsafe extern "C-unwind" fn MPI_Error_class<F: Foreign>(code: c_int, class: *mut c_int) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if own_class_out(code).is_some() {
            class.write(code);
            return 0;
        }
        let result = original!(MPI_Error_class)(code, class);
        if result == 0
            && *class == F::word_in(Word::Error, class::UNKNOWN)
            && newer::<F>(code).is_some()
        {
            class.write(code);
        }
        result
    }
}

/// Returns the class of `code` if the class is one of [`TEXTS`], which older libraries lack.
fn newer<F: Foreign>(code: c_int) -> Option<c_int> {
    let class = F::word_out(Word::Error, code);
    TEXTS
        .iter()
        .any(|(known, _)| *known == class)
        .then_some(class)
}

unsafe extern "C-unwind" fn MPI_Error_string<F: Foreign>(
    code: c_int,
    text: *mut c_char,
    length: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    // The text buffer of every library is longer than these texts.
    unsafe {
        let mut found = 0;
        let mut is_unknown = || {
            original!(MPI_Error_class)(code, &raw mut found) == 0
                && found == F::word_in(Word::Error, class::UNKNOWN)
        };
        let class = own_class_out(code).or_else(|| newer::<F>(code).filter(|_| is_unknown()));
        let Some(class) = class else {
            return original!(MPI_Error_string)(code, text, length);
        };
        let known = TEXTS.iter().find(|(known, _)| *known == class);
        let known = known
            .map_or(NO_TEXT, |(_, known)| *known)
            .to_bytes_with_nul();
        std::ptr::copy_nonoverlapping(known.as_ptr(), text.cast(), known.len());
        length.write(known.len() as c_int - 1);
    }
    0
}

macro_rules! callers {
    ($($name:ident($object:ty))*) => { $(
        unsafe extern "C-unwind" fn $name<F: Foreign>(object: $object, code: c_int) -> c_int {
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                match own_class_out(code) {
                    Some(class) => {
                        with_code(class, || original!($name)(object, class_below::<F>(class::OTHER)))
                    }
                    None => original!($name)(object, code),
                }
            }
        }
    )* };
}

callers! {
    MPI_Comm_call_errhandler(F::Below)
    MPI_Win_call_errhandler(F::Below)
    MPI_File_call_errhandler(usize)
}

/// Interposes the functions of this module. Runs before all MPI calls.
/// `removes` is true if the backend can remove codes.
pub fn prepare<F: Foreign>(removes: bool) {
    put_in_front! {
        MPI_Error_class MPI_Error_string
        MPI_Comm_call_errhandler MPI_Win_call_errhandler MPI_File_call_errhandler
    }
    if !removes {
        put_in_front! { MPI_Add_error_class MPI_Add_error_code MPI_Add_error_string }
    }
}
