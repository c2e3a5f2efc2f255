//! Errors of child processes, with their output.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a program failed.
#[derive(Debug)]
pub enum ProcessError {
    /// It could not be started.
    Start {
        /// Its path or name.
        program: String,
        /// The system's error.
        reason: std::io::Error,
    },
    /// Its output files could not be created, or it could not be waited for.
    Output {
        /// Its path or name.
        program: String,
        /// The system's error.
        reason: std::io::Error,
    },
    /// It exceeded its time limit and was killed with its whole process group.
    TimedOut {
        /// Its path or name.
        program: String,
        /// The elapsed time.
        after: Duration,
        /// Its standard output so far.
        stdout: String,
        /// Its standard error so far.
        stderr: String,
    },
    /// It ended with a status other than 0.
    Failed {
        /// Its path or name.
        program: String,
        /// Its exit code, or the signal that ended it.
        status: ExitStatus,
        /// Its standard error.
        stderr: String,
    },
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { program, reason } => write!(f, "cannot start {program}: {reason}"),
            Self::Output { program, reason } => {
                write!(f, "cannot keep the output of {program}: {reason}")
            }
            Self::TimedOut {
                program,
                after,
                stdout,
                stderr,
            } => write!(
                f,
                "{program} was stopped after {:.1} s{}{}",
                after.as_secs_f64(),
                quoted("it printed", stdout),
                quoted("it complained", stderr)
            ),
            Self::Failed {
                program,
                status,
                stderr,
            } => {
                write!(
                    f,
                    "{program} ended with {status}{}",
                    quoted("it complained", stderr)
                )
            }
        }
    }
}

impl std::error::Error for ProcessError {}

/// Returns the last 15 lines of an output with a heading, or nothing.
fn quoted(how: &str, output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(15)..];
    if last.is_empty() {
        String::new()
    } else {
        format!("\n{how}:\n{}", last.join("\n"))
    }
}
