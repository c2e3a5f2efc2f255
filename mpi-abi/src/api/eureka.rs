//! Eureka: early termination of a parallel search. Any rank may raise one global flag. Not part of MPI 5.0.
//!
//! The semantics are documented in [`mpi_core::comm`], module `eureka`, and for users in `docs/eureka.md`.
#![allow(unsafe_code)]

use super::args::out;
use crate::abi::*;
use crate::error::Outcome;
use crate::state;
use std::ffi::c_int;

pub unsafe fn MPIX_Eureka_begin(comm: MPI_Comm) -> Outcome {
    Ok(state::comm(comm)?.comm.eureka().begin()?)
}

pub unsafe fn MPIX_Eureka_raise(comm: MPI_Comm) -> Outcome {
    state::comm(comm)?.comm.eureka().raise()?;
    Ok(())
}

pub unsafe fn MPIX_Eureka_test(comm: MPI_Comm, flag: *mut c_int, first: *mut c_int) -> Outcome {
    let object = state::comm(comm)?;
    let (found, is_first) = object.comm.eureka().test()?;
    // A program that polls in a loop is inside MPI, so requests of other ranks must progress.
    state::engine()?.poll_once();
    // SAFETY: `flag` and `first` are null or writable: the C binding of MPIX_Eureka_test requires it of the caller.
    unsafe {
        out(flag, found.into(), "flag")?;
        out(first, is_first.into(), "first")
    }
}

pub unsafe fn MPIX_Eureka_end(comm: MPI_Comm, rank: *mut c_int) -> Outcome {
    let first = state::comm(comm)?.comm.eureka().end()?;
    let first = first.map_or(MPI_UNDEFINED, |first| first as c_int);
    // SAFETY: `rank` is null or writable: the C binding of MPIX_Eureka_end requires it of the caller.
    unsafe { out(rank, first, "rank") }
}
