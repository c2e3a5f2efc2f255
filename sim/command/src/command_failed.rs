//! The failure of a command that `hwbarr` has started for the user: its exit status becomes that of `hwbarr`.

use crate::Failure;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// A command has not ended with status 0.
#[derive(Debug)]
pub struct CommandFailed {
    /// The command: "the command of node 1".
    what: String,
    status: ExitStatus,
}

impl CommandFailed {
    /// Returns an error if the command `what` has not ended with status 0.
    pub fn check(what: &str, status: ExitStatus) -> Result<(), Failure> {
        match status.success() {
            true => Ok(()),
            false => Err(Box::new(CommandFailed {
                what: what.into(),
                status,
            })),
        }
    }

    /// Returns the exit status of the command, or 128 + the signal that has killed it, as shells do.
    pub fn exit_code(&self) -> ExitCode {
        let killed = self.status.signal().map(|signal| 128 + signal);
        let code = self.status.code().or(killed);
        let code = code.and_then(|code| u8::try_from(code).ok());
        code.map_or(ExitCode::FAILURE, ExitCode::from)
    }
}

impl fmt::Display for CommandFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.what, self.status)
    }
}

impl std::error::Error for CommandFailed {}
