//! Which processes may read and write this one's memory while MPI runs, for messages that are copied once.
//!
//! The kernel's Yama module, where it restricts that, has one exception for each process.
//! It is made before the neighbours learn of this process, if there are any, and taken back when MPI is not in use.

use mpi_base::cma::{self, Tracers};
use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_base::{environment, privilege};
use mpi_core::btl;

/// Which processes may read this process's memory.
pub static PTRACER: Param<String> = Param::new(
    "mpi",
    "base",
    "ptracer",
    "launcher",
    Level::USER,
    "Which processes of the user the kernel's Yama module lets read this one's memory for single copies: launcher (mpirun and what it started), any, none",
);

/// Where mpirun says which process of this host has started all ranks.
const LAUNCHER: &str = "PORTCULLIS_LAUNCHER";

/// Allows what the parameters say, if there are neighbours that may copy.
pub fn give(params: &Params, neighbours: bool) -> Result<(), ParamError> {
    if neighbours && btl::may_copy_once(params)? {
        cma::allow(wanted(params)?);
    }
    Ok(())
}

/// Takes it back.
pub fn take_back(params: &Params) {
    // A value that cannot be read has stopped initialization.
    if wanted(params).is_ok_and(|tracers| tracers != Tracers::None) {
        cma::allow(Tracers::None);
    }
}

fn wanted(params: &Params) -> Result<Tracers, ParamError> {
    // The kernel refuses a user's processes the memory of a program with more rights; Yama must not be what is left open.
    if privilege::is_raised() {
        return Ok(Tracers::None);
    }
    let launcher = environment::text(LAUNCHER).and_then(|pid| pid.parse().ok());
    Ok(match (params.get(&PTRACER)?.as_str(), launcher) {
        ("none", _) => Tracers::None,
        ("launcher", Some(launcher)) => Tracers::StartedBy(launcher),
        // Other launchers do not say which process started all ranks of a host.
        _ => Tracers::Any,
    })
}
