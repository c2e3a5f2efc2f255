//! Fallbacks for functions with info arguments or results, implemented with older functions.

use super::Foreign;
use crate::backend;
use std::ffi::{c_char, c_int};

pub unsafe extern "C-unwind" fn MPI_Info_get_string<F: Foreign>(
    info: F::Below,
    key: *const c_char,
    length: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    let mut full = 0;
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    // The buffer holds the whole value.
    unsafe {
        let code = (backend::MPI_Info_get_valuelen::<F>())(info, key, &mut full, flag);
        if code != 0 || *flag == 0 {
            return code;
        }
        let space = usize::try_from(*length).unwrap_or(0);
        length.write(full + 1);
        if space == 0 {
            return 0;
        }
        let mut whole: Vec<c_char> = vec![0; usize::try_from(full).unwrap_or(0) + 1];
        let code = (backend::MPI_Info_get::<F>())(info, key, full, whole.as_mut_ptr(), flag);
        if code == 0 && *flag != 0 {
            let kept = (whole.len() - 1).min(space - 1);
            std::ptr::copy_nonoverlapping(whole.as_ptr(), value, kept);
            value.add(kept).write(0);
        }
        code
    }
}

/// Returns an info with the key `command` if `argv` is not empty, otherwise without keys.
/// This library has no other information about how the program was started.
pub unsafe extern "C-unwind" fn MPI_Info_create_env<F: Foreign>(
    argc: c_int,
    argv: *mut *mut c_char,
    info: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code = (backend::MPI_Info_create::<F>())(info);
        if code == 0 && argc > 0 && !argv.is_null() && !(*argv).is_null() {
            return (backend::MPI_Info_set::<F>())(*info, c"command".as_ptr(), *argv);
        }
        code
    }
}

/// Returns an info without keys, which the standard allows.
pub unsafe extern "C-unwind" fn MPI_Get_hw_resource_info<F: Foreign>(info: *mut F::Below) -> c_int {
    // SAFETY: `info` is an output argument of the program, valid by the standard.
    unsafe { (backend::MPI_Info_create::<F>())(info) }
}

/// Duplicates the communicator without the hints in the info, which the standard allows.
pub unsafe extern "C-unwind" fn MPI_Comm_idup_with_info<F: Foreign>(
    comm: F::Below,
    _info: F::Below,
    made: *mut F::Below,
    request: *mut F::Below,
) -> c_int {
    // SAFETY: the arguments are the program's, valid by the standard.
    unsafe { (backend::MPI_Comm_idup::<F>())(comm, made, request) }
}
