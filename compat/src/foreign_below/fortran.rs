//! `MPI_Abi_` functions: the ABI version and the Fortran information (MPI standard, chapter 20).

use super::Foreign;
use super::standard::class;
use crate::backend;
use crate::convert::code_out;
use crate::family::{Kind, Word};
use crate::lock::lock;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, MutexGuard};

pub unsafe fn MPI_Abi_get_version<F: Foreign>(major: *mut c_int, minor: *mut c_int) -> c_int {
    if major.is_null() || minor.is_null() {
        return class::ARG;
    }
    // SAFETY: these are output arguments of the program, valid by the standard and not null.
    unsafe {
        major.write(1);
        minor.write(0);
    }
    0
}

/// Creates an info object in the backend with these keys and values, for the program.
unsafe fn info_of<F: Foreign>(entries: &[(CString, CString)], place: *mut usize) -> c_int {
    if place.is_null() {
        return class::ARG;
    }
    let mut made = F::null(Kind::Info);
    // SAFETY: keys and values are C strings.
    // `place` is an output argument of the program, not null.
    unsafe {
        let mut code = (backend::MPI_Info_create::<F>())(&raw mut made);
        for (key, value) in entries {
            if code == 0 {
                code = (backend::MPI_Info_set::<F>())(made, key.as_ptr(), value.as_ptr());
            }
        }
        place.write(F::handle_out(Kind::Info, made));
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Abi_get_info<F: Foreign>(info: *mut usize) -> c_int {
    let eight = || c"8".to_owned();
    let entries = [
        (c"mpi_aint_size".to_owned(), eight()),
        (c"mpi_count_size".to_owned(), eight()),
        (c"mpi_offset_size".to_owned(), eight()),
    ];
    // SAFETY: `info` is an output argument of the program, valid by the standard.
    unsafe { info_of::<F>(&entries, info) }
}

/// The info entries and logical values that the program's Fortran layer has set.
struct Fortran {
    entries: Option<Vec<(CString, CString)>>,
    booleans: Option<(Vec<u8>, Vec<u8>)>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran {
    entries: None,
    booleans: None,
});

fn fortran() -> MutexGuard<'static, Fortran> {
    lock(&FORTRAN)
}

pub unsafe fn MPI_Abi_get_fortran_info<F: Foreign>(info: *mut usize) -> c_int {
    let entries = fortran().entries.clone();
    match entries {
        // SAFETY: `info` is an output argument of the program, valid by the standard.
        Some(entries) => unsafe { info_of::<F>(&entries, info) },
        None if info.is_null() => class::ARG,
        None => {
            // SAFETY: `info` is an output argument of the program, valid and not null.
            unsafe { info.write(Kind::Info.null()) };
            0
        }
    }
}

pub unsafe fn MPI_Abi_set_fortran_info<F: Foreign>(info: usize) -> c_int {
    let info = F::handle_in(Kind::Info, info);
    let (mut count, mut entries) = (0, Vec::new());
    // SAFETY: the buffers have the maximum length of keys and values of all libraries.
    // `info` is the program's, valid by the standard.
    unsafe {
        let code = (backend::MPI_Info_get_nkeys::<F>())(info, &mut count);
        if code != 0 {
            return code_out::<F>(code);
        }
        for n in 0..count {
            let (mut key, mut value, mut there) = (vec![0u8; 1024], vec![0u8; 4096], 0);
            let mut code = (backend::MPI_Info_get_nthkey::<F>())(info, n, key.as_mut_ptr().cast());
            if code == 0 {
                let space = 1023;
                let value = value.as_mut_ptr().cast();
                let key = key.as_ptr().cast();
                code = (backend::MPI_Info_get::<F>())(info, key, space, value, &mut there);
            }
            if code != 0 {
                return code_out::<F>(code);
            }
            let text = |bytes: &[u8]| {
                std::ffi::CStr::from_bytes_until_nul(bytes)
                    .map(std::borrow::ToOwned::to_owned)
                    .unwrap_or_default()
            };
            entries.push((text(&key), text(&value)));
        }
    }
    let mut fortran = fortran();
    if fortran.entries.is_some() {
        return class::ABI;
    }
    fortran.entries = Some(entries);
    0
}

fn logical(size: c_int) -> Option<usize> {
    matches!(size, 1 | 2 | 4 | 8 | 16).then_some(size as usize)
}

pub unsafe fn MPI_Abi_set_fortran_booleans<F: Foreign>(
    size: c_int,
    yes: *mut c_void,
    no: *mut c_void,
) -> c_int {
    let Some(size) = logical(size).filter(|_| !yes.is_null() && !no.is_null()) else {
        return class::ARG;
    };
    let mut fortran = fortran();
    if fortran.booleans.is_some() {
        return class::ABI;
    }
    // SAFETY: the program's values have `size` bytes, as the standard requires.
    let bytes = |value: *mut c_void| unsafe {
        std::slice::from_raw_parts(value.cast::<u8>(), size).to_vec()
    };
    fortran.booleans = Some((bytes(yes), bytes(no)));
    0
}

pub unsafe fn MPI_Abi_get_fortran_booleans<F: Foreign>(
    size: c_int,
    yes: *mut c_void,
    no: *mut c_void,
    is_set: *mut c_int,
) -> c_int {
    let Some(size) = logical(size).filter(|_| !is_set.is_null()) else {
        return class::ARG;
    };
    let fortran = fortran();
    let known = fortran.booleans.as_ref().filter(|(y, _)| y.len() == size);
    // SAFETY: these are output arguments of the program, valid by the standard.
    // The logical values have `size` bytes.
    unsafe {
        if let Some((y, n)) = known {
            if yes.is_null() || no.is_null() {
                return class::ARG;
            }
            std::ptr::copy_nonoverlapping(y.as_ptr(), yes.cast(), size);
            std::ptr::copy_nonoverlapping(n.as_ptr(), no.cast(), size);
        }
        is_set.write(known.is_some().into());
    }
    0
}

/// Returns the backend's error code for an error class of the standard.
/// Fallbacks return such codes.
pub(super) fn class_below<F: Foreign>(class: c_int) -> c_int {
    F::word_in(Word::Error, class)
}
