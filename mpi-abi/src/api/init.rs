//! Initialization, finalization and abort (sections 11.2 to 11.4).

use super::args::out;
use crate::abi::*;
use crate::abort::abort;
use crate::error::Outcome;
use crate::{init, phase, state};
use std::ffi::{c_char, c_int};

pub unsafe fn MPI_Init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Outcome {
    init::initialize(MPI_THREAD_SINGLE).map(|_| ())
}

pub unsafe fn MPI_Init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Outcome {
    // SAFETY: `provided` is null or writable: the C binding of MPI_Init_thread requires it of the caller.
    unsafe { out(provided, init::initialize(required)?, "provided") }
}

pub unsafe fn MPI_Initialized(flag: *mut c_int) -> Outcome {
    // SAFETY: `flag` is null or writable: the C binding of MPI_Initialized requires it of the caller.
    unsafe { out(flag, phase::initialized().into(), "flag") }
}

pub unsafe fn MPI_Finalized(flag: *mut c_int) -> Outcome {
    // SAFETY: `flag` is null or writable: the C binding of MPI_Finalized requires it of the caller.
    unsafe { out(flag, phase::finalized().into(), "flag") }
}

pub unsafe fn MPI_Finalize() -> Outcome {
    init::finalize()
}

pub unsafe fn MPI_Query_thread(provided: *mut c_int) -> Outcome {
    state::engine()?;
    // SAFETY: `provided` is null or writable: the C binding of MPI_Query_thread requires it of the caller.
    unsafe { out(provided, phase::thread_level(), "provided") }
}

pub unsafe fn MPI_Is_thread_main(flag: *mut c_int) -> Outcome {
    state::engine()?;
    // SAFETY: `flag` is null or writable: the C binding of MPI_Is_thread_main requires it of the caller.
    unsafe { out(flag, phase::is_main_thread().into(), "flag") }
}

pub unsafe fn MPI_Abort(_comm: MPI_Comm, errorcode: c_int) -> Outcome {
    // The standard requires a best attempt on the group of the communicator and allows more (section 9.3.1).
    abort(errorcode, "it called MPI_Abort")
}

pub unsafe fn MPI_Comm_get_parent(parent: *mut MPI_Comm) -> Outcome {
    state::engine()?;
    // SAFETY: `parent` is null or writable: the C binding of MPI_Comm_get_parent requires it of the caller.
    unsafe { out(parent, MPI_COMM_NULL, "parent") }
}
