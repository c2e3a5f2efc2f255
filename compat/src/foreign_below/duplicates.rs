//! Nonblocking duplication and shrinking: `MPI_Comm_idup` and similar functions on a backend
//! whose handles may be narrower than the program's.
//!
//! The backend writes to the program's variable at any time before the operation completes.
//! A new (dynamic) handle has the same value in both ABIs, but may have fewer bytes in the backend.
//! The program's variable is cleared at the start, so its other bytes are zero.
//! So the program reads the right handle as soon as the backend has written it.

use super::Foreign;
use crate::backend;
use crate::convert::{HandleOut, code_out, of};
use crate::family::Kind;
use std::ffi::c_int;

/// Clears the program's variable, and returns its address for the backend.
unsafe fn clear<F: Foreign>(made: *mut usize) -> *mut F::Below {
    const { assert!(cfg!(target_endian = "little")) };
    if !made.is_null() {
        // SAFETY: this is an output argument of the program, valid by the standard.
        unsafe { made.write(0) };
    }
    made.cast()
}

/// Stores the null handle if the backend has written nothing yet.
unsafe fn fill(made: *mut usize) {
    // SAFETY: this is an output argument of the program, valid by the standard.
    // `made` is not null when it is read.
    unsafe {
        if !made.is_null() && made.read() == 0 {
            made.write(Kind::Comm.null());
        }
    }
}

/// Starts an operation that creates a communicator. `call` calls the backend's function.
///
/// # Safety
/// `made` and `request` are output arguments of the program, for a communicator and for a request.
unsafe fn start<F: Foreign>(
    made: *mut usize,
    request: *mut usize,
    call: impl FnOnce(*mut F::Below, *mut F::Below) -> c_int,
) -> c_int {
    // SAFETY: both are output arguments of the program, by contract.
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
    // SAFETY: the MPI standard requires that the program passes valid arguments.
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
    // SAFETY: the MPI standard requires that the program passes valid arguments.
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
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        start::<F>(made, request, |made, request| {
            (backend::MPIX_Comm_ishrink::<F>())(comm, made, request)
        })
    }
}
