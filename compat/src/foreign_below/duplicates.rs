//! Nonblocking duplication and shrinking, whose handle is written when the library below likes, until the operation is complete.
//!
//! It writes where the program said. A handle made at run time is the same on both sides but for its width, and the rest of
//! the program's word is zero before; so whenever it is written, the program finds it.

use super::Foreign;
use crate::below;
use crate::convert::{HandleOut, code_out};
use crate::family::Kind;
use std::ffi::c_int;

/// Prepares the program's place.
unsafe fn clear<F: Foreign>(made: *mut usize) -> *mut F::Below {
    const { assert!(cfg!(target_endian = "little")) };
    if !made.is_null() {
        // SAFETY: an output argument of the program.
        unsafe { made.write(0) };
    }
    made.cast()
}

/// Null where the library has not written yet.
unsafe fn fill(made: *mut usize) {
    // SAFETY: an output argument of the program.
    unsafe {
        if !made.is_null() && made.read() == 0 {
            made.write(Kind::Comm.null());
        }
    }
}

/// Starts an operation that makes a communicator.
///
/// # Safety
/// The places are the program's, for a communicator and for a request.
unsafe fn start<F: Foreign>(
    made: *mut usize,
    request: *mut usize,
    call: impl FnOnce(*mut F::Below, *mut F::Below) -> c_int,
) -> c_int {
    let mut started = HandleOut::<F>::new(Kind::Request, request);
    // SAFETY: passed on.
    unsafe {
        let code = call(clear::<F>(made), started.argument());
        fill(made);
        started.finish(Kind::Request);
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Comm_idup<F: Foreign>(
    comm: usize,
    made: *mut usize,
    request: *mut usize,
) -> c_int {
    let comm = F::handle_in(Kind::Comm, comm);
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        start::<F>(made, request, |made, request| {
            (below::MPI_Comm_idup::<F>())(comm, made, request)
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
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        start::<F>(made, request, |made, request| {
            (below::MPI_Comm_idup_with_info::<F>())(comm, info, made, request)
        })
    }
}

pub unsafe fn MPIX_Comm_ishrink<F: Foreign>(
    comm: usize,
    made: *mut usize,
    request: *mut usize,
) -> c_int {
    let comm = F::handle_in(Kind::Comm, comm);
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        start::<F>(made, request, |made, request| {
            (below::MPIX_Comm_ishrink::<F>())(comm, made, request)
        })
    }
}
