//! Initialization, finalization and abort (sections 11.2 to 11.4).

use super::args::Out;
use crate::abi::*;
use crate::abort::abort;
use crate::error::Outcome;
use crate::{init, phase, state};
use std::ffi::{c_char, c_int};

pub fn MPI_Init(_argc: Out<c_int>, _argv: *mut *mut *mut c_char) -> Outcome {
    init::initialize(MPI_THREAD_SINGLE).map(|_| ())
}

pub fn MPI_Init_thread(
    _argc: Out<c_int>,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: Out<c_int>,
) -> Outcome {
    provided.set(init::initialize(required)?, "provided")
}

pub fn MPI_Initialized(flag: Out<c_int>) -> Outcome {
    flag.set(phase::initialized().into(), "flag")
}

pub fn MPI_Finalized(flag: Out<c_int>) -> Outcome {
    flag.set(phase::finalized().into(), "flag")
}

pub fn MPI_Finalize() -> Outcome {
    init::finalize()
}

pub fn MPI_Query_thread(provided: Out<c_int>) -> Outcome {
    state::engine()?;
    provided.set(phase::thread_level(), "provided")
}

pub fn MPI_Is_thread_main(flag: Out<c_int>) -> Outcome {
    state::engine()?;
    flag.set(phase::is_main_thread().into(), "flag")
}

pub fn MPI_Abort(_comm: MPI_Comm, errorcode: c_int) -> Outcome {
    // The standard requires at least an attempt to abort the group (section 9.3.1).
    abort(errorcode, "it called MPI_Abort")
}

pub fn MPI_Comm_get_parent(parent: Out<MPI_Comm>) -> Outcome {
    state::engine()?;
    parent.set(MPI_COMM_NULL, "parent")
}
