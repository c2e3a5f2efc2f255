//! The initial error handler of a process (MPI 5.0, sections 11.5 and 11.8.4).
//!
//! `mpirun --initial-errhandler` selects the handler for the launched job.
//! The info key `mpi_initial_errhandler` selects the handler for a spawned job.

use crate::abi::*;
use crate::error::Failure;
use crate::{phase, state};
use mpi_base::param::{Kind, Level, Param, Params, Value};

/// The parameter behind `mpirun --initial-errhandler`.
pub static INITIAL_HANDLER: Param<InitialHandler> = Param::new(
    "mpi",
    "initial",
    "errhandler",
    "mpi_errors_are_fatal",
    Level::USER,
    "The error handler with which MPI_COMM_WORLD and MPI_COMM_SELF begin: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return; what mpirun --initial-errhandler sets. Jobs that are spawned have an info key for it",
);

/// A predefined error handler. Its name is case-insensitive.
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
    /// Returns the name of the handler, which [`Value::parse`] accepts.
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

    /// Sets this error handler on `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    fn set(self) -> Result<(), Failure> {
        for comm in [MPI_COMM_WORLD, MPI_COMM_SELF] {
            state::comm(comm)?.attached.set_errhandler(self.handle())?;
        }
        Ok(())
    }
}

/// Sets the handler requested by mpirun or by the parent.
/// A spawned job does not inherit the initial handler of its parent job.
pub(crate) fn set_chosen(params: &Params, left_by_parent: &str) -> Result<(), Failure> {
    let launcher = phase::launcher();
    let chosen = match launcher.filter(|launcher| launcher.identity().spawned) {
        Some(launcher) => {
            let name = launcher.left_by_parent(left_by_parent);
            name.and_then(|name| InitialHandler::parse(&name).ok())
        }
        // An invalid value has already made initialization fail.
        None => params.get(&INITIAL_HANDLER).ok(),
    };
    // The default handler is not set explicitly: a handler that was set on `MPI_COMM_SELF`
    // replaces that of `MPI_COMM_WORLD` for errors without an object.
    let chosen = chosen.filter(|handler| *handler != InitialHandler::AreFatal);
    chosen.map_or(Ok(()), InitialHandler::set)
}
