//! The initial error handler of a process (MPI 5.0, sections 11.5 and 11.8.4).
//!
//! `mpirun --initial-errhandler` sets it for the job that it starts, the info key `mpi_initial_errhandler` for a spawned job.

use crate::abi::*;
use crate::error::Failure;
use crate::{phase, state};
use mpi_base::param::{Kind, Level, Param, Params, Value};

/// Set by `mpirun --initial-errhandler`.
pub static INITIAL_HANDLER: Param<InitialHandler> = Param::new(
    "mpi",
    "initial",
    "errhandler",
    "mpi_errors_are_fatal",
    Level::USER,
    "The error handler with which MPI_COMM_WORLD and MPI_COMM_SELF begin: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return; what mpirun --initial-errhandler sets. Jobs that are spawned have an info key for it",
);

/// A predefined error handler, by its name in lower or upper case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialHandler {
    AreFatal,
    Abort,
    Return,
}

impl Value for InitialHandler {
    const KIND: Kind = Kind::Text;

    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "mpi_errors_are_fatal" => Ok(InitialHandler::AreFatal),
            "mpi_errors_abort" => Ok(InitialHandler::Abort),
            "mpi_errors_return" => Ok(InitialHandler::Return),
            _ => Err("mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return".into()),
        }
    }
}

impl InitialHandler {
    /// Returns its name, which [`Value::parse`] accepts.
    pub fn name(self) -> &'static str {
        match self {
            InitialHandler::AreFatal => "mpi_errors_are_fatal",
            InitialHandler::Abort => "mpi_errors_abort",
            InitialHandler::Return => "mpi_errors_return",
        }
    }

    fn handle(self) -> MPI_Errhandler {
        match self {
            InitialHandler::AreFatal => MPI_ERRORS_ARE_FATAL,
            InitialHandler::Abort => MPI_ERRORS_ABORT,
            InitialHandler::Return => MPI_ERRORS_RETURN,
        }
    }

    /// Sets it on the communicators that exist at the start of a process.
    fn set(self) -> Result<(), Failure> {
        for comm in [MPI_COMM_WORLD, MPI_COMM_SELF] {
            state::comm(comm)?.attached.set_errhandler(self.handle())?;
        }
        Ok(())
    }
}

/// Sets the handler that mpirun or the parent has chosen; a spawned job does not inherit that of its parent job.
pub(crate) fn set_chosen(params: &Params, left_by_parent: &str) -> Result<(), Failure> {
    let launcher = phase::launcher();
    let chosen = match launcher.filter(|launcher| launcher.identity().spawned) {
        Some(launcher) => {
            let name = launcher.left_by_parent(left_by_parent);
            name.and_then(|name| InitialHandler::parse(&name).ok())
        }
        // A value that cannot be parsed has made initialization fail earlier.
        None => params.get(&INITIAL_HANDLER).ok(),
    };
    // The default is left as it is: a handler that was set on MPI_COMM_SELF also gets the errors of calls without an object.
    let chosen = chosen.filter(|handler| *handler != InitialHandler::AreFatal);
    chosen.map_or(Ok(()), InitialHandler::set)
}
