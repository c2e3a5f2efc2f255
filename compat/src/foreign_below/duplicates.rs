//! Nonblocking duplication and shrinking: the backend writes the handle at any time before the operation is complete.
//!
//! It writes to the program's variable. A dynamic handle is equal on both sides except for its width, and the other bytes of
//! the program's variable are cleared before; so the program finds the handle whenever it is written.

use super::Foreign;
use crate::backend;
use crate::convert::{HandleOut, code_out, of};
use crate::family::Kind;
use std::ffi::c_int;

/// Clears the program's variable.
unsafe fn clear<F: Foreign>(made: *mut usize) -> *mut F::Below {
    const { assert!(cfg!(target_endian = "little")) };
    if !made.is_null() {
        // SAFETY: this is an output argument of the program, valid by the standard.
        unsafe { made.write(0) };
    }
    made.cast()
}

/// Writes the null handle if the backend has not written yet.
unsafe fn fill(made: *mut usize) {
    // SAFETY: an output argument of the program, valid by the standard, not null when it is read.
    unsafe {
        if !made.is_null() && made.read() == 0 {
            made.write(Kind::Comm.null());
        }
    }
}

/// Starts an operation that creates a communicator.
///
/// # Safety
/// `made` and `request` are output arguments of the program, for a communicator and for a request.
unsafe fn start<F: Foreign>(
    made: *mut usize,
    request: *mut usize,
    call: impl FnOnce(*mut F::Below, *mut F::Below) -> c_int,
) -> c_int {
    // SAFETY: both are output arguments of the program (contract of this function).
    unsafe {
        let mut started = HandleOut::<F, of::Request>::new(request);
        let code = call(clear::<F>(made), started.argument());
        fill(made);
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Comm_idup<F: Foreign>(
    comm: usize,
    made: *mut usize,
    request: *mut usize,
) -> c_int {
    let comm = F::handle_in(Kind::Comm, comm);
    // SAFETY: the arguments are those of the exported function, which the standard obliges the program to make valid.
    unsafe {
        start::<F>(made, request, |made, request| {
            (backend::MPI_Comm_idup::<F>())(comm, made, request)
        })
    }
}

pub unsafe fn MPI_Comm_idup_with_info<F: Foreign>(
    comm: usize,
    info: usize,
    made: *mut usize,
    request: *mut usize,
) -> c_int {
    let comm = F::handle_in(Kind::Comm, comm);
    let info = F::handle_in(Kind::Info, info);
    // SAFETY: the arguments are those of the exported function, which the standard obliges the program to make valid.
    unsafe {
        start::<F>(made, request, |made, request| {
            (backend::MPI_Comm_idup_with_info::<F>())(comm, info, made, request)
        })
    }
}

pub unsafe fn MPIX_Comm_ishrink<F: Foreign>(
    comm: usize,
    made: *mut usize,
    request: *mut usize,
) -> c_int {
    let comm = F::handle_in(Kind::Comm, comm);
    // SAFETY: the arguments are those of the exported function, which the standard obliges the program to make valid.
    unsafe {
        start::<F>(made, request, |made, request| {
            (backend::MPIX_Comm_ishrink::<F>())(comm, made, request)
        })
    }
}
