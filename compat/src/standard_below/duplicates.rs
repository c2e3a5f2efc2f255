//! Nonblocking duplication. The backend delivers the new handle by a callback at completion.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::{HandleOut, code_out, of};
use crate::family::{Kind, OnStandard};
use std::ffi::{c_int, c_void};

/// The callback, which stores the new handle for the program. `place` is the program's argument.
unsafe extern "C-unwind" fn deliver<F: OnStandard>(place: *mut c_void, comm: usize) {
    // SAFETY: the standard requires that the output argument is valid until the request completes.
    unsafe {
        place
            .cast::<F::Handle>()
            .write(F::handle_out(Kind::Comm, comm))
    }
}

unsafe fn start<F: OnStandard>(
    comm: F::Handle,
    info: usize,
    made: *mut F::Handle,
    request: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let comm = F::handle_in(Kind::Comm, comm);
        let mut started = HandleOut::<F, of::Request>::new(request);
        let code =
            (backend::duplicate())(comm, info, deliver::<F>, made.cast(), started.argument());
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Comm_idup<F: OnStandard>(
    comm: F::Handle,
    made: *mut F::Handle,
    request: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { start::<F>(comm, Kind::Info.null(), made, request) }
}

pub unsafe fn MPI_Comm_idup_with_info<F: OnStandard>(
    comm: F::Handle,
    info: F::Handle,
    made: *mut F::Handle,
    request: *mut F::Handle,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe { start::<F>(comm, F::handle_in(Kind::Info, info), made, request) }
}
