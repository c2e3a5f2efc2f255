//! Hint in the info argument with which the backend returns port names of up to 1024 characters.
//!
//! A program of the standard ABI has a buffer for 1024 characters (`MPI_MAX_PORT_NAME`).
//! MPICH's own limit is 256 characters, unless the hint `port_name_size` allows more.
//! MPICH's port names over UCX (InfiniBand and others) are longer than 256 characters.
//! So each call that returns a port name passes the hint. Other libraries ignore unknown hints.

use super::{original, put_in_front};
use crate::backend;
use crate::family::Kind;
use crate::foreign_below::Foreign;
use std::ffi::{CStr, c_char, c_int};

const HINT: &CStr = c"port_name_size";
/// The value of the hint: `MPI_MAX_PORT_NAME` of the standard ABI.
const LENGTH: &CStr = c"1024";

/// Interposes the functions of this module. Runs before all MPI calls.
pub fn prepare<F: Foreign>() {
    put_in_front! { MPI_Open_port MPI_Lookup_name }
}

/// Calls `call` with a copy of the program's info that has the hint `port_name_size` too.
///
/// # Safety
/// MPI is initialized and not finalized. `info` is the program's info or the null handle.
unsafe fn with_room<F: Foreign>(info: F::Below, call: impl FnOnce(F::Below) -> c_int) -> c_int {
    let mut hints = F::null(Kind::Info);
    // SAFETY: MPI is initialized and `info` is valid, by contract.
    // The copy is freed below.
    let mut code = unsafe {
        match info == hints {
            true => (backend::MPI_Info_create::<F>())(&raw mut hints),
            false => (backend::MPI_Info_dup::<F>())(info, &raw mut hints),
        }
    };
    if code != 0 {
        return code;
    }
    // SAFETY: `hints` is the copy created above.
    unsafe {
        code = (backend::MPI_Info_set::<F>())(hints, HINT.as_ptr(), LENGTH.as_ptr());
        if code == 0 {
            code = call(hints);
        }
        (backend::MPI_Info_free::<F>())(&raw mut hints);
    }
    code
}

unsafe extern "C-unwind" fn MPI_Open_port<F: Foreign>(
    info: F::Below,
    port_name: *mut c_char,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { with_room::<F>(info, |info| original!(MPI_Open_port)(info, port_name)) }
}

unsafe extern "C-unwind" fn MPI_Lookup_name<F: Foreign>(
    service_name: *const c_char,
    info: F::Below,
    port_name: *mut c_char,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with_room::<F>(info, |info| {
            original!(MPI_Lookup_name)(service_name, info, port_name)
        })
    }
}
