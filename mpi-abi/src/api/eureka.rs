//! Eureka, early termination of a parallel search, an extension to MPI 5.0.
//!
//! Any rank may raise one global flag, and every rank may test it.
//! The semantics are documented in [`mpi_core::comm`], module `eureka`, and in `docs/eureka.md`.

use super::args::Out;
use crate::abi::*;
use crate::error::Outcome;
use crate::state;
use std::ffi::c_int;

pub fn MPIX_Eureka_begin(comm: MPI_Comm) -> Outcome {
    Ok(state::comm(comm)?.comm.eureka().begin()?)
}

pub fn MPIX_Eureka_raise(comm: MPI_Comm) -> Outcome {
    state::comm(comm)?.comm.eureka().raise()?;
    Ok(())
}

pub fn MPIX_Eureka_test(comm: MPI_Comm, flag: Out<c_int>, first: Out<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    let (found, is_first) = object.comm.eureka().test()?;
    // A program may test in a loop, so the requests of other ranks must progress here.
    state::engine()?.poll_once();
    flag.set(found.into(), "flag")?;
    first.set(is_first.into(), "first")
}

pub fn MPIX_Eureka_end(comm: MPI_Comm, rank: Out<c_int>) -> Outcome {
    let first = state::comm(comm)?.comm.eureka().end()?;
    let first = first.map_or(MPI_UNDEFINED, |first| first as c_int);
    rank.set(first, "rank")
}
