//! Child processes with a time limit, which leave no process running.
//!
//! A program runs in its own process group, and writes its output to memory files.
//! A pidfd reports the program's end, so the measured time is as precise as the kernel's scheduling.
//! Every wait has a time limit, after which the process group receives SIGTERM and then SIGKILL.
//! Users of this package: `cargo xtask`, the tests, and `mpi-bench`, which starts other launchers.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod programs;
mod running;

pub use error::ProcessError;
pub use programs::{copy_program, set_folder_mode, write_program};
pub use running::Running;

use std::ffi::OsStr;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// Exit status, output and running time of a program.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code, or the signal that ended the program.
    pub status: ExitStatus,
    /// The standard output of the program, with invalid UTF-8 replaced.
    pub stdout: String,
    /// The standard error of the program, with invalid UTF-8 replaced.
    pub stderr: String,
    /// The time from the start of the program to its end, which a pidfd reports.
    pub took: Duration,
}

/// Returns the command line as text, for error messages.
pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs the command with this process's input and output. Returns an error unless it succeeds.
pub fn run(command: &mut Command) -> Result<(), ProcessError> {
    let program = spelled(command);
    let status = command.status().map_err(|reason| ProcessError::Start {
        program: program.clone(),
        reason,
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(ProcessError::Failed {
            program,
            status,
            stderr: String::new(),
        })
    }
}

/// Runs the command and captures its output.
/// Returns an error unless the command succeeds within `limit`.
pub fn output(command: &mut Command, limit: Duration) -> Result<Outcome, ProcessError> {
    let program = spelled(command);
    let outcome = Running::start(command)?.wait(limit)?;
    if outcome.status.success() {
        Ok(outcome)
    } else {
        Err(ProcessError::Failed {
            program,
            status: outcome.status,
            stderr: outcome.stderr,
        })
    }
}

/// Returns a standard input that is never readable and stays open until the program ends.
/// The caller must keep the [`Child`](std::process::Child), as [`Running`] does.
///
/// MPICH's `mpiexec.hydra` requires such an input.
/// Hydra reads its input as soon as it has started its proxy, and
/// forwards even the end of the input to the proxy, through a socket pair.
/// If a short job has already ended, as on a busy host, the proxy's end of the pair is closed,
/// and SIGPIPE ends hydra before it has printed the job's output.
/// With an input that is never readable, hydra forwards nothing.
pub fn silence() -> Stdio {
    Stdio::piped()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn silence_lasts_as_long_as_the_program() {
        for (input, said) in [(silence(), "124\n"), (Stdio::null(), "0\n")] {
            let mut command = shell("timeout 0.2 cat; echo $?");
            let running = Running::start(command.stdin(input)).unwrap();
            let outcome = running.wait(Duration::from_secs(60)).unwrap();
            assert_eq!(outcome.stdout, said);
        }
    }

    #[test]
    fn both_outputs_and_the_status_are_kept() {
        let outcome = Running::start(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
        let outcome = outcome.wait(Duration::from_secs(10)).unwrap();
        assert_eq!(
            (outcome.stdout.as_str(), outcome.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(outcome.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_a_process_has_open_for_writing_is_waited_for() {
        let path = std::env::temp_dir().join(format!("bounded-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"#!/bin/sh\necho written\n").unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o755))
            .unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(file);
        });
        let outcome = Running::start(&mut Command::new(&path))
            .and_then(|running| running.wait(Duration::from_secs(10)));
        std::fs::remove_file(&path).unwrap();
        writer.join().unwrap();
        assert_eq!(outcome.unwrap().stdout, "written\n");
    }

    #[test]
    fn reading_along_does_not_disturb_the_writer() {
        let running = Running::start(&mut shell("echo one; sleep 0.2; echo two")).unwrap();
        while running.stdout_so_far().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            running.wait(Duration::from_secs(10)).unwrap().stdout,
            "one\ntwo\n"
        );
    }

    #[test]
    fn a_stray_that_holds_the_output_does_not_keep_us_waiting() {
        let running = Running::start(&mut shell("sleep 30 & echo $!")).unwrap();
        let outcome = running.wait(Duration::from_secs(10)).unwrap();
        assert!(outcome.took < Duration::from_secs(10));
        let _ = run(&mut shell(&format!("kill {}", outcome.stdout.trim())));
    }

    #[test]
    fn what_takes_too_long_is_stopped_and_quoted() {
        let running = Running::start(&mut shell("echo started; sleep 60")).unwrap();
        let sentence = running
            .wait(Duration::from_millis(200))
            .unwrap_err()
            .to_string();
        assert!(
            sentence.contains("started") && sentence.contains("stopped after"),
            "{sentence}"
        );
    }

    #[test]
    fn a_child_that_does_not_listen_is_stopped_with_its_parent() {
        let script =
            "(trap '' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 1; done) & wait";
        let running = Running::start(&mut shell(script)).unwrap();
        while running.stdout_so_far().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let deaf = running.stdout_so_far();
        running.wait(Duration::ZERO).unwrap_err();
        let status = std::fs::read_to_string(format!("/proc/{}/stat", deaf.trim()));
        // The process has ended: it does not exist, or it is a zombie that init will reap.
        assert!(
            status.as_ref().map_or(true, |s| s.contains(") Z")),
            "{deaf}: {status:?}"
        );
    }
}
