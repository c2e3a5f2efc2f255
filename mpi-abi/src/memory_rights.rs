//! Permission for other processes to read and write this one's memory while MPI runs, for single-copy messages.
//!
//! The kernel's Yama module, where it restricts that, allows one exception for each process.
//! The exception is set before the neighbours learn of this process, if there are any, and removed when MPI is not in use.

use mpi_base::cma::{self, Tracers};
use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_base::{environment, privilege};
use mpi_core::btl;

/// The processes that may read this process's memory.
pub static PTRACER: Param<String> = Param::new(
    "mpi",
    "base",
    "ptracer",
    "launcher",
    Level::USER,
    "Which processes of the user the kernel's Yama module lets read this one's memory for single copies: launcher (mpirun and what it started), any, none",
);

/// The environment variable in which mpirun passes the process of this host that started all ranks.
const LAUNCHER: &str = "PORTCULLIS_LAUNCHER";

/// Grants what the parameters allow, if neighbours exist that may copy.
pub fn give(params: &Params, neighbours: bool) -> Result<(), ParamError> {
    if neighbours && btl::may_copy_once(params)? {
        cma::allow(wanted(params)?);
    }
    Ok(())
}

/// Revokes the permission.
pub fn take_back(params: &Params) {
    // A value that cannot be parsed has made initialization fail.
    if wanted(params).is_ok_and(|tracers| tracers != Tracers::None) {
        cma::allow(Tracers::None);
    }
}

fn wanted(params: &Params) -> Result<Tracers, ParamError> {
    // The kernel denies a user's processes the memory of a privileged program; this must not relax Yama for it.
    if privilege::is_raised() {
        return Ok(Tracers::None);
    }
    let launcher = environment::text(LAUNCHER).and_then(|pid| pid.parse().ok());
    Ok(match (params.get(&PTRACER)?.as_str(), launcher) {
        ("none", _) => Tracers::None,
        ("launcher", Some(launcher)) => Tracers::StartedBy(launcher),
        // Other launchers do not announce the process that started all ranks of a host.
        _ => Tracers::Any,
    })
}
