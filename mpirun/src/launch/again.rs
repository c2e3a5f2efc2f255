//! The restart of a job by mpirun itself after the death of a rank (`--restart-on-death`).
//!
//! When all processes of the job have ended, this process executes mpirun again with the same arguments
//! and the number of restarts so far. So the restart does what a user would do with `--restart`.

use super::frontend::Done;
use super::images::restored::Restart;
use super::program::Plan;
use super::sys;
use mpi_core::crs::store::Store;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The option with the number of restarts so far.
const RESTARTED: &str = "--restarted";

/// What a job needs for its restart.
pub struct Again<'a> {
    dir: &'a Path,
    /// The number of restarts that are left.
    left: u32,
    is_quiet: bool,
}

impl<'a> Again<'a> {
    /// Returns `None` for a job without checkpoints.
    pub fn of_plan(plan: &'a Plan) -> Option<Again<'a>> {
        let checkpoints = plan.checkpoints.as_ref()?;
        Some(Again {
            dir: &checkpoints.dir,
            left: checkpoints.restarts,
            is_quiet: plan.quiet,
        })
    }

    /// Returns the settings of a job that was restored from images.
    pub fn of_restart(restart: &'a Restart) -> Again<'a> {
        Again {
            dir: &restart.dir,
            left: restart.restarts,
            is_quiet: restart.is_quiet,
        }
    }
}

/// Restarts a job that the death of a rank has ended, if it may be restarted and has a checkpoint.
/// Returns the exit code of a job that is not restarted.
pub fn unless_restarted(done: Done, again: Option<Again<'_>>) -> i32 {
    let Some(again) = again.filter(|again| done.by_death && again.left > 0) else {
        return done.code;
    };
    if Store::new(again.dir).newest().is_err() {
        printable::eprintln!("mpirun: the job has no complete checkpoint to be restarted from");
        return done.code;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let before = match arguments.first().is_some_and(|first| first == RESTARTED) {
        true => {
            let before = arguments.drain(..2).nth(1);
            before.and_then(|text| text.to_str()?.parse::<u32>().ok())
        }
        false => None,
    };
    let number = before.unwrap_or(0).saturating_add(1);
    if !again.is_quiet {
        let left = again.left - 1;
        printable::eprintln!(
            "mpirun: the job is restarted after a death: restart {number}, {left} more may follow"
        );
    }
    let program = std::env::current_exe().unwrap_or_else(|_| "mpirun".into());
    sys::unblock_signals();
    // The namespace of a job that was restored has ended with it.
    // Without the capability to make one, this process has made none.
    let _ = sys::leave_pid_namespace();
    let mut command = Command::new(program);
    let command = command.arg(RESTARTED).arg(number.to_string());
    let error = command.args(arguments).exec();
    printable::eprintln!("mpirun: the job cannot be restarted: {error}");
    done.code
}
