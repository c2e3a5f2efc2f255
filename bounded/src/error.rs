//! Errors of child processes, with the output that the process has written.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

/// The reason why a program failed.
#[derive(Debug)]
pub enum ProcessError {
    /// The program could not be started.
    Start {
        /// The path or name of the program.
        program: String,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// The output files could not be created, or waiting for the program failed.
    Output {
        /// The path or name of the program.
        program: String,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// The program exceeded its time limit, and its process group was killed.
    TimedOut {
        /// The path or name of the program.
        program: String,
        /// The time from the start of the program to the limit.
        after: Duration,
        /// The standard output that the program had written.
        stdout: String,
        /// The standard error that the program had written.
        stderr: String,
    },
    /// The program ended with a status other than 0.
    Failed {
        /// The path or name of the program.
        program: String,
        /// The exit code, or the signal that ended the program.
        status: ExitStatus,
        /// The standard error of the program.
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

/// Returns the last 15 lines of an output, after the heading `how`; nothing if the output is empty.
fn quoted(how: &str, output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(15)..];
    if last.is_empty() {
        String::new()
    } else {
        format!("\n{how}:\n{}", last.join("\n"))
    }
}
