//! The restart of a job by mpirun itself after the death of a rank (`--restart-on-death`).
//!
//! When all processes of the job have ended, this process executes mpirun again with the same arguments,
//! the number of restarts so far, and the newest checkpoint before the first start.
//! So the restart does what a user would do with `--restart`.
//!
//! A job is only restarted from a checkpoint of its own: one that was written after the first start,
//! or the one that the user gave by `--restart`. The folder may contain checkpoints of an earlier job.

use super::frontend::Done;
use super::images::restored::Restart;
use super::program::Plan;
use super::sys;
use mpi_core::crs::store::Store;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

/// The option with a [`Restarted`].
const RESTARTED: &str = "--restarted";

/// What a restarted mpirun knows of the first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// The number of restarts so far.
    pub count: u32,
    /// The number of the newest complete checkpoint before the first start; 0 if there was none.
    pub before: u64,
}

impl FromStr for Restarted {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Restarted, &'static str> {
        let (count, before) = text.split_once(':').ok_or("two numbers are expected")?;
        let wrong = "a number is expected";
        Ok(Restarted {
            count: count.parse().map_err(|_| wrong)?,
            before: before.parse().map_err(|_| wrong)?,
        })
    }
}

impl fmt::Display for Restarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.count, self.before)
    }
}

/// Returns the number of the newest complete checkpoint in a folder; 0 if there is none.
pub fn newest(dir: &Path) -> u64 {
    let found = Store::new(dir).newest();
    found.map_or(0, |found| found.manifest.number)
}

/// What a job needs for its restart.
pub struct Again<'a> {
    dir: &'a Path,
    /// The number of restarts that are left.
    left: u32,
    /// The number of the newest checkpoint at the start of this mpirun.
    newest: u64,
    /// True if this start has itself begun from a checkpoint.
    has_origin: bool,
    is_quiet: bool,
}

impl<'a> Again<'a> {
    /// Returns `None` for a job without checkpoints.
    pub fn of_plan(plan: &'a Plan) -> Option<Again<'a>> {
        let checkpoints = plan.checkpoints.as_ref()?;
        Some(Again {
            dir: &checkpoints.dir,
            left: checkpoints.restarts,
            newest: newest(&checkpoints.dir),
            has_origin: checkpoints.has_origin,
            is_quiet: plan.quiet,
        })
    }

    /// Returns the settings of a job that was restored from images.
    pub fn of_restart(restart: &'a Restart) -> Again<'a> {
        Again {
            dir: &restart.dir,
            left: restart.restarts,
            newest: newest(&restart.dir),
            has_origin: true,
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
    if !again.has_origin && newest(again.dir) <= again.newest {
        printable::eprintln!("mpirun: the job has no complete checkpoint to be restarted from");
        return done.code;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let earlier: Option<Restarted> = match arguments.first().is_some_and(|first| first == RESTARTED)
    {
        true => {
            let earlier = arguments.drain(..2).nth(1);
            earlier.and_then(|text| text.to_str()?.parse().ok())
        }
        false => None,
    };
    let next = Restarted {
        count: earlier.map_or(0, |earlier| earlier.count).saturating_add(1),
        before: earlier.map_or(again.newest, |earlier| earlier.before),
    };
    let number = next.count;
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
    let command = command.arg(RESTARTED).arg(next.to_string());
    let error = command.args(arguments).exec();
    printable::eprintln!("mpirun: the job cannot be restarted: {error}");
    done.code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_of_a_restarted_mpirun_is_read_as_written() {
        let restarted = Restarted {
            count: 2,
            before: 17,
        };
        assert_eq!(restarted.to_string().parse(), Ok(restarted));
        for wrong in ["", "2", "2:", ":3", "a:1", "1:-1"] {
            assert!(wrong.parse::<Restarted>().is_err(), "{wrong}");
        }
    }
}
