//! Permission for other processes to access this process's memory, for single-copy messages.
//!
//! If the kernel's Yama module restricts such accesses, it allows one exception per process.
//! The exception is set before the other ranks of the node get this process's id, and only if the
//! node has other ranks.
//! The exception is removed when MPI is not in use.

use mpi_base::cma::{self, Tracers};
use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_base::{environment, privilege};
use mpi_core::btl;

/// Selects the processes that may access this process's memory.
pub static PTRACER: Param<String> = Param::new(
    "mpi",
    "base",
    "ptracer",
    "launcher",
    Level::USER,
    "Which processes of the user the kernel's Yama module lets read this one's memory for single copies: launcher (mpirun and what it started), any, none",
);

/// The environment variable with the id of the process that started all ranks of this host.
const LAUNCHER: &str = "PORTCULLIS_LAUNCHER";

/// Grants the permission that the parameters allow, if neighbours may copy from this process.
pub fn give(params: &Params, neighbours: bool) -> Result<(), ParamError> {
    if neighbours && btl::may_copy_once(params)? {
        cma::allow(wanted(params)?);
    }
    Ok(())
}

/// Revokes the permission.
pub fn take_back(params: &Params) {
    // An invalid value has already made initialization fail.
    if wanted(params).is_ok_and(|tracers| tracers != Tracers::None) {
        cma::allow(Tracers::None);
    }
}

fn wanted(params: &Params) -> Result<Tracers, ParamError> {
    // The kernel protects the memory of a privileged program from its user's other processes.
    // So no Yama exception is set for such a program.
    if privilege::is_raised() {
        return Ok(Tracers::None);
    }
    let launcher = environment::text(LAUNCHER).and_then(|pid| pid.parse().ok());
    Ok(match (params.get(&PTRACER)?.as_str(), launcher) {
        ("none", _) => Tracers::None,
        ("launcher", Some(launcher)) => Tracers::StartedBy(launcher),
        // Other launchers do not publish the process that started the ranks of this host.
        _ => Tracers::Any,
    })
}
