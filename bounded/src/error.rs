//! Why a program did not end well, told with what it said.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a program did not end well.
#[derive(Debug)]
pub enum ProcessError {
    /// It did not begin to run.
    Start {
        /// Its path or name.
        program: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// There was nowhere to keep what it would say.
    Output {
        /// Its path or name.
        program: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// It took longer than it may and was ended, with its whole process group.
    TimedOut {
        /// Its path or name.
        program: String,
        /// The limit.
        after: Duration,
        /// What it had said until then.
        stdout: String,
        /// The same of its other output.
        stderr: String,
    },
    /// It ended by itself, and not with 0.
    Failed {
        /// Its path or name.
        program: String,
        /// Its exit code, or the signal that ended it.
        status: ExitStatus,
        /// What it said about it.
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

/// The last lines of what was said, or nothing.
fn quoted(how: &str, said: &str) -> String {
    let lines: Vec<&str> = said.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(15)..];
    if last.is_empty() {
        String::new()
    } else {
        format!("\n{how}:\n{}", last.join("\n"))
    }
}
