//! What the front end serves while it waits for hosts that save or restore their processes:
//! signals of the user, requests of `mpi-ctl`, time limits, and signs of life to other hosts.
//!
//! A signal that ends the job ends the checkpoint or the restart: no further step begins, and a step that has begun
//! has [`PATIENCE`] to end, because a killed CRIU leaves damaged processes. A second such signal ends the wait.
//! Other signals are for the ranks, and are passed on afterwards.

use super::requests::{Requests, Wants};
use super::work::{Work, timespec};
use crate::launch::ends_the_job;
use crate::launch::limits::Limits;
use crate::launch::sys::{self, Signal};
use crate::launch::wire::Failure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::io;
use std::time::{Duration, Instant};

/// The time that a step has to end after a signal that ends the job.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time by which the limit of a step in the front end exceeds that in the guard, which knows the cause.
const MARGIN: Duration = Duration::from_secs(10);

/// The time limits of a checkpoint or a restart; zero is no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The limit of each step.
    pub step: Duration,
    /// The limits of other hosts' messages.
    pub limits: Limits,
}

pub(super) struct Attention {
    signals: OwnedFd,
    times: Times,
    /// The requests of `mpi-ctl`; none during a restart.
    requests: Option<Requests>,
    /// The signal that requests a checkpoint. One that arrives while a checkpoint is taken does not cause another one.
    request: Option<Signal>,
    /// Signals to pass on when the job runs again.
    later: Vec<Signal>,
    /// The signal that ends the job, and the time at which the wait for the present step ends.
    end: Option<(Signal, Instant)>,
    last_sign: Instant,
}

impl Attention {
    pub(super) fn new(
        signals: &OwnedFd,
        times: Times,
        requests: Option<Requests>,
    ) -> io::Result<Attention> {
        Ok(Attention {
            signals: signals.try_clone()?,
            times,
            requests,
            request: None,
            later: Vec::new(),
            end: None,
            last_sign: Instant::now(),
        })
    }

    /// Sets the signal that requests a checkpoint.
    pub(super) fn set_request(&mut self, signal: Option<Signal>) {
        self.request = signal;
    }

    /// Gives the steps that follow the time to end, also after a signal that ends the job.
    pub(super) fn give_time(&mut self) {
        self.end = self
            .end
            .map(|(signal, _)| (signal, Instant::now() + PATIENCE));
    }

    /// Returns the signal that ends the job, if one has arrived.
    pub(super) fn end(&mut self) -> Option<Signal> {
        self.serve();
        self.end.map(|(signal, _)| signal)
    }

    /// Returns the limit of each step.
    pub(super) fn step(&self) -> Duration {
        self.times.step
    }

    /// Sets the limit of the steps that follow; zero is no limit.
    pub(super) fn limit_steps(&mut self, step: Duration) {
        self.times.step = step;
    }

    /// Ends the service. Returns the signals to pass on, and the requests of `mpi-ctl`.
    pub(super) fn close(mut self) -> (Vec<Signal>, Option<Requests>) {
        self.serve();
        let end = self.end.map(|(signal, _)| signal);
        (self.later.into_iter().chain(end).collect(), self.requests)
    }

    /// Says what the front end waits for, for `mpi-ctl status`.
    pub(super) fn waits_for(&mut self, what: String) {
        if let Some(requests) = &mut self.requests {
            requests.waits_for(what);
        }
    }

    /// Returns the reason why a host is not waited for any longer. `heard` is the time of its last message;
    /// `None` if it has not sent its greeting.
    pub(super) fn overdue(&self, heard: Option<Instant>, begun: Instant) -> Option<String> {
        let passed = |since: Instant, limit: Duration| !limit.is_zero() && since.elapsed() >= limit;
        let Limits { greeting, silence } = self.times.limits;
        if self.end.is_some_and(|(_, until)| Instant::now() >= until) {
            return Some("it has not answered before the user's signal ended the wait".into());
        }
        let Some(heard) = heard else {
            return passed(begun, greeting).then(|| {
                let seconds = greeting.as_secs_f64();
                format!("it has not answered for {seconds} s (the parameter mpirun_greeting)")
            });
        };
        if passed(heard.max(begun), silence) {
            let seconds = silence.as_secs_f64();
            return Some(format!("it has sent nothing for {seconds} s"));
        }
        let step = self.times.step;
        let is_late = !step.is_zero() && begun.elapsed() >= step + MARGIN;
        is_late.then(|| {
            let seconds = step.as_secs_f64();
            format!("it took more than {seconds} s; --mca crs_criu_limit sets another limit")
        })
    }

    /// Returns true if work of this host is not waited for any longer.
    pub(super) fn is_overdue(&self, begun: Instant) -> bool {
        let is_ended = self.end.is_some_and(|(_, until)| Instant::now() >= until);
        is_ended || (!self.times.step.is_zero() && begun.elapsed() >= self.times.step)
    }

    /// Returns true if a sign of life to the other hosts is due.
    pub(super) fn takes_sign(&mut self) -> bool {
        let silence = self.times.limits.silence;
        let is_due = !silence.is_zero() && self.last_sign.elapsed() >= silence / 3;
        if is_due {
            self.last_sign = Instant::now();
        }
        is_due
    }

    /// Waits until one of `fds` can be read, or a request has arrived or a time limit has passed; serves requests.
    pub(super) fn wait(&mut self, fds: &[BorrowedFd<'_>], begun: Instant) {
        let mut polled: Vec<PollFd<'_>> = fds
            .iter()
            .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
            .collect();
        polled.push(PollFd::new(&self.signals, PollFlags::IN));
        if let Some(requests) = &self.requests {
            polled.extend(
                requests
                    .fds()
                    .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
        }
        if poll(&mut polled, Some(&timespec(self.pause(begun)))).is_err() {
            // The kernel lacks memory for a moment, or a signal has arrived.
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(polled);
        self.serve();
    }

    /// Waits for work of this host alone.
    pub(super) fn complete<T: 'static>(&mut self, work: Work<T>) -> Result<T, Failure> {
        let begun = Instant::now();
        while !work.is_done() {
            if self.is_overdue(begun) {
                return Err(work.give_up(self.times.step));
            }
            let fd = work.fd();
            self.wait(fd.as_slice(), begun);
        }
        work.finish()
    }

    /// Sleeps between two attempts.
    pub(super) fn sleep(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while self.end.is_none() && Instant::now() < until {
            std::thread::sleep(time.min(Duration::from_millis(20)));
            self.serve();
        }
    }

    /// Returns a time within which something may become due.
    fn pause(&self, begun: Instant) -> Duration {
        let (step, silence) = (self.times.step, self.times.limits.silence);
        let steps = [silence / 6, step.saturating_sub(begun.elapsed())];
        let end = self
            .end
            .map(|(_, until)| until.saturating_duration_since(Instant::now()));
        let times = steps.into_iter().filter(|time| !time.is_zero()).chain(end);
        let pause = times.min().unwrap_or(Duration::from_secs(1));
        pause.clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    fn serve(&mut self) {
        // The front end collects its children itself, after the checkpoint.
        while let Some(signal) = sys::next_request(self.signals.as_fd()) {
            self.take(signal);
        }
        let wants = self
            .requests
            .as_mut()
            .map(Requests::serve)
            .unwrap_or_default();
        for Wants(signal) in wants {
            // A request to stop is not one for a checkpoint, whichever signal asks for those.
            self.take_other(signal);
        }
    }

    fn take(&mut self, signal: Signal) {
        if self.request != Some(signal) {
            self.take_other(signal);
        }
    }

    /// Takes a signal that does not request a checkpoint.
    fn take_other(&mut self, signal: Signal) {
        if !ends_the_job(signal) {
            return self.later.push(signal);
        }
        let patience = match self.end {
            Some(_) => Duration::ZERO,
            None => PATIENCE,
        };
        self.end = Some((signal, Instant::now() + patience));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd as Fd;

    fn attention(step: Duration) -> Attention {
        let flags = rustix::pipe::PipeFlags::NONBLOCK;
        let (signals, _): (Fd, Fd) = rustix::pipe::pipe_with(flags).expect("a pipe");
        let silence = Duration::ZERO;
        let limits = Limits {
            greeting: silence,
            silence,
        };
        Attention::new(&signals, Times { step, limits }, None).expect("made")
    }

    #[test]
    fn a_step_without_a_limit_is_never_late() {
        let begun = Instant::now();
        assert!(attention(Duration::from_nanos(1)).is_overdue(begun));
        let mut other = attention(Duration::ZERO);
        assert!(!other.is_overdue(begun));
        assert_eq!(other.overdue(Some(begun), begun), None);
        other.limit_steps(Duration::from_nanos(1));
        assert!(other.is_overdue(begun));
    }

    #[test]
    fn a_signal_that_requests_checkpoints_does_not_end_the_present_one() {
        let mut attention = attention(Duration::ZERO);
        attention.set_request(Some(libc::SIGHUP));
        attention.take(libc::SIGHUP);
        attention.take(libc::SIGUSR2);
        attention.take_other(crate::launch::hold::HANG);
        assert_eq!(attention.end(), None);
        attention.set_request(None);
        attention.take(libc::SIGHUP);
        assert_eq!(attention.end(), Some(libc::SIGHUP));
        let signals = attention.close().0;
        let hang = crate::launch::hold::HANG;
        assert_eq!(signals, [libc::SIGUSR2, hang, libc::SIGHUP]);
    }
}
