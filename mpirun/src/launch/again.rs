//! The restart of a job by mpirun itself after the death of a rank (`--restart-on-death`).
//!
//! When all processes of the job have ended, this process executes mpirun again with the same arguments,
//! the number of restarts so far, and the newest checkpoint before the first start.
//! So the restart does what a user would do with `--restart`.
//!
//! A job is only restarted from a checkpoint of its own: one that was written after the first start,
//! or the one that the user gave by `--restart`. The folder may contain checkpoints of an earlier job.
//!
//! Ranks on a host that is lost may still run, and write to files. Their daemon ends them when it has heard nothing
//! for some time, and mpirun waits as long before it restarts the job.

use super::frontend::{Done, lower_open_files};
use super::images::guard::patience;
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
use std::time::Duration;

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
    /// The time without a message after which another host gives mpirun up; zero is no limit.
    silence: Duration,
    /// The time between SIGTERM and SIGKILL.
    grace: Duration,
    /// Whether the checkpoints are images of processes, so that the guard of a daemon may be the one that gives mpirun up.
    has_images: bool,
}

/// The time in which killed ranks end.
const ENDING: Duration = Duration::from_secs(10);

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
            silence: plan.remote.limits.silence,
            grace: plan.grace,
            has_images: checkpoints.images.is_some(),
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
            silence: restart.limits.silence,
            grace: restart.grace,
            has_images: true,
        }
    }

    /// Returns the time after which no rank runs any more on a host that is lost; `None` if there is no such time.
    fn overlap(&self) -> Option<Duration> {
        let noticed = match self.has_images {
            true => patience(self.silence),
            // A daemon checks the time six times in each interval.
            false => self.silence * 7 / 6,
        };
        (!self.silence.is_zero()).then(|| noticed + self.grace + ENDING)
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
    // A signal of the user ends this process from here on.
    sys::unblock_signals();
    if done.host_is_lost && !wait_for_lost_ranks(&again) {
        return done.code;
    }
    let number = next.count;
    if !again.is_quiet {
        let left = again.left - 1;
        printable::eprintln!(
            "mpirun: the job is restarted after a death: restart {number}, {left} more may follow"
        );
    }
    let program = std::env::current_exe().unwrap_or_else(|_| "mpirun".into());
    lower_open_files();
    // The namespace of a job that was restored has ended with it.
    // Without the capability to make one, this process has made none.
    let _ = sys::leave_pid_namespace();
    let mut command = Command::new(program);
    let command = command.arg(RESTARTED).arg(next.to_string());
    let error = command.args(arguments).exec();
    printable::eprintln!("mpirun: the job cannot be restarted: {error}");
    done.code
}

/// Waits until no rank runs any more on a host that is lost. Returns false if that would have no end.
fn wait_for_lost_ranks(again: &Again<'_>) -> bool {
    let Some(overlap) = again.overlap() else {
        printable::eprintln!(
            "mpirun: the job is not restarted: its ranks on the lost host may run on without end, since the parameter mpirun_silence is 0"
        );
        return false;
    };
    if !again.is_quiet {
        printable::eprintln!(
            "mpirun: the restart waits {:.0} s, until no rank runs any more on the lost host (the parameter mpirun_silence)",
            overlap.as_secs_f64()
        );
    }
    std::thread::sleep(overlap);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_waits_longer_than_the_ranks_of_a_lost_host_live() {
        let again = |silence, has_images| Again {
            dir: Path::new("/saved"),
            left: 1,
            newest: 0,
            has_origin: false,
            is_quiet: false,
            silence: Duration::from_secs(silence),
            grace: Duration::from_secs(2),
            has_images,
        };
        assert_eq!(again(0, false).overlap(), None);
        assert_eq!(again(30, false).overlap(), Some(Duration::from_secs(47)));
        assert_eq!(again(30, true).overlap(), Some(Duration::from_secs(102)));
    }

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
