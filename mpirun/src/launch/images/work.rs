//! Work of this host that takes long: a run of CRIU, the sync of images, a step of the keeper.
//!
//! A process does the work while the front end or the guard polls, so that they serve signals and send
//! signs of life. Work that exceeds its time limit is killed.

use crate::launch::sys::{self, Forked};
use crate::launch::wire::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal as Kill, pidfd_open};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

/// The maximum time in which a killed process ends; one that waits for a disk may take longer, and is left behind.
const END: Duration = Duration::from_secs(2);

/// Work that has begun, and its outcome.
pub(super) enum Work<T> {
    Done(Result<T, Failure>),
    Begun(Begun<T>),
}

pub(super) struct Begun<T> {
    /// Readable when the work is done.
    ready: OwnedFd,
    /// The process that does the work, a child of this process.
    process: i32,
    finish: Box<dyn FnOnce() -> Result<T, Failure>>,
    /// Makes the error about work that has exceeded this time limit.
    late: Box<dyn FnOnce(Duration) -> Failure>,
}

impl<T: 'static> Work<T> {
    /// Returns the work of a child process. `finish` is called when `ready` is readable, or when the process has ended
    /// if there is no `ready`; it must not block for long.
    pub(super) fn of(
        process: i32,
        ready: Option<OwnedFd>,
        finish: impl FnOnce() -> Result<T, Failure> + 'static,
        late: impl FnOnce(Duration) -> Failure + 'static,
    ) -> Work<T> {
        let ready = match ready {
            Some(ready) => Ok(ready),
            None => ended(process),
        };
        match ready {
            Ok(ready) => Work::Begun(Begun {
                ready,
                process,
                finish: Box::new(finish),
                late: Box::new(late),
            }),
            // Without a descriptor to poll, the work blocks.
            Err(_) => Work::Done(finish()),
        }
    }

    /// Does the work in a forked process, which ends with this one. `doing` completes a sentence.
    pub(super) fn in_a_child(
        doing: &'static str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Work<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let failed = move |error: &io::Error| Failure::of(format!("{doing} failed: {error}"));
        let begun = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
        let parent = rustix::process::getpid();
        let begun = begun.and_then(|(from, to)| match sys::fork()? {
            Forked::Child => {
                drop(from);
                let _ = rustix::process::set_parent_process_death_signal(Some(Kill::KILL));
                // The parent has no number in the PID namespace of a restored job.
                if rustix::process::getppid().is_some_and(|now| now != parent) {
                    sys::exit_now(1);
                }
                let outcome = postcard::to_stdvec(&work()).unwrap_or_default();
                let mut rest = outcome.as_slice();
                while let (false, Ok(written)) = (rest.is_empty(), rustix::io::write(&to, rest)) {
                    rest = &rest[written..];
                }
                sys::exit_now(0)
            }
            Forked::Parent(process) => Ok((process, from)),
        });
        let (process, from) = match begun {
            Ok(begun) => begun,
            Err(error) => return Work::Done(Err(failed(&error))),
        };
        let ready = from.try_clone().ok();
        let finish = move || {
            let mut bytes = Vec::new();
            let read = File::from(from).read_to_end(&mut bytes);
            let _ = sys::wait_for(process);
            read.map_err(|error| failed(&error))?;
            let outcome = postcard::from_bytes::<Result<T, String>>(&bytes);
            let outcome = outcome.map_err(|_| Failure::of(format!("{doing} was killed")))?;
            outcome.map_err(Failure::of)
        };
        Work::of(process, ready, finish, move |limit| {
            Failure::of(format!(
                "{doing} took more than {} s; --mca crs_criu_limit sets another limit",
                limit.as_secs_f64()
            ))
        })
    }

    /// Returns the work with another outcome.
    pub(super) fn map<U: 'static>(self, change: impl FnOnce(T) -> U + 'static) -> Work<U> {
        match self {
            Work::Done(outcome) => Work::Done(outcome.map(change)),
            Work::Begun(begun) => {
                let finish = begun.finish;
                Work::Begun(Begun {
                    ready: begun.ready,
                    process: begun.process,
                    finish: Box::new(move || finish().map(change)),
                    late: begun.late,
                })
            }
        }
    }

    /// Returns the descriptor that is readable when the work is done; `None` if it is done.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Work::Done(_) => None,
            Work::Begun(begun) => Some(begun.ready.as_fd()),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.fd().is_none_or(|fd| is_readable(fd, Duration::ZERO))
    }

    /// Returns the outcome of work that is done.
    pub(super) fn finish(self) -> Result<T, Failure> {
        match self {
            Work::Done(outcome) => outcome,
            Work::Begun(begun) => (begun.finish)(),
        }
    }

    /// Kills the process that does the work, which has exceeded its time limit. Returns the error.
    pub(super) fn give_up(self, limit: Duration) -> Failure {
        let begun = match self {
            Work::Done(Err(failure)) => return failure,
            Work::Done(Ok(_)) => return Failure::of("the work was done too late"),
            Work::Begun(begun) => begun,
        };
        let is_ended = ended(begun.process);
        sys::signal_process(begun.process, libc::SIGKILL);
        if is_ended.is_ok_and(|end| is_readable(end.as_fd(), END)) {
            let _ = sys::wait_for(begun.process);
        }
        (begun.late)(limit)
    }

    /// Waits until the work is done, at most for `limit` (zero: without a limit). Calls `tick` after each `pause`
    /// (zero: never); if it returns false, the work is given up.
    pub(super) fn wait(
        self,
        limit: Duration,
        pause: Duration,
        mut tick: impl FnMut() -> bool,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        while let Some(fd) = self.fd() {
            let left = (!limit.is_zero()).then(|| limit.saturating_sub(begun.elapsed()));
            let pauses = [left, (!pause.is_zero()).then_some(pause)];
            let next = pauses.into_iter().flatten().min();
            if is_readable(fd, next.unwrap_or(Duration::from_secs(3600))) {
                break;
            }
            if left.is_some_and(|left| left.is_zero()) || !tick() {
                return Err(self.give_up(limit));
            }
        }
        self.finish()
    }
}

/// Returns a descriptor that is readable when a process has ended.
fn ended(process: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Waits until a descriptor is readable, at most for this time.
fn is_readable(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let limit = timespec(limit);
    poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Returns a time for `poll`, rounded up to milliseconds so that a loop does not spin before its end.
pub(super) fn timespec(time: Duration) -> Timespec {
    let milliseconds = time.as_micros().div_ceil(1000);
    Timespec {
        tv_sec: i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX),
        tv_nsec: (milliseconds % 1000) as i64 * 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(100);

    /// Returns the work of a command, which is done when the command has ended.
    fn command(seconds: &str) -> Work<u32> {
        let child = std::process::Command::new("sleep").arg(seconds).spawn();
        let process = child.expect("started").id() as i32;
        let finish = move || {
            sys::wait_for(process).expect("a child");
            Ok(2)
        };
        Work::of(process, None, finish, |limit| {
            Failure::of(format!("{} s", limit.as_secs_f64()))
        })
    }

    #[test]
    fn the_outcome_of_work_arrives_when_its_process_has_ended() {
        let work = command("0.02").map(|two| two + 1);
        assert_eq!(work.wait(LIMIT, Duration::ZERO, || true), Ok(3));
    }

    #[test]
    fn work_that_takes_too_long_is_killed_and_so_is_work_that_is_given_up() {
        let late = command("1000").wait(Duration::from_millis(20), Duration::ZERO, || true);
        assert_eq!(late, Err(Failure::of("0.02 s")));
        let mut ticks = 0;
        let left = command("1000").wait(LIMIT, Duration::from_millis(5), || {
            ticks += 1;
            ticks < 3
        });
        assert!(left.is_err());
        assert_eq!(ticks, 3);
    }
}
