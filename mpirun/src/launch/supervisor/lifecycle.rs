//! The job's lifecycle (running, asked to end, or killed) and its exit status.
//!
//! The first failure decides the status.

use super::super::sys::Signal;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Ranks that still run this long after a signal asked them to end are announced.
const ANNOUNCED: Duration = Duration::from_secs(1);

/// After SIGKILL a process can live on only inside the kernel; it is waited for no longer than this.
const GIVE_UP: Duration = Duration::from_secs(5);

pub(super) struct Lifecycle {
    status: i32,
    ending: Ending,
    /// When the time of the job is over, if that has not been reported yet.
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum Ending {
    No,
    /// The due steps with their times, in order; the last is to kill.
    Asked(VecDeque<(Instant, Due)>),
    Killed {
        until: Instant,
    },
}

/// A due step for ranks that were asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Kill the ranks that do not handle this signal.
    KillWithoutHandler(Signal),
    /// Announce which ranks still run, and how much time they have left.
    Announce {
        signal: Signal,
        left: Duration,
    },
    Kill,
}

impl Lifecycle {
    /// Creates the state of a running job with a time limit.
    pub(super) fn new(limit: Option<Duration>) -> Lifecycle {
        Lifecycle {
            status: 0,
            ending: Ending::No,
            deadline: limit.map(|limit| Instant::now() + limit),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.ending, Ending::No)
    }

    /// The exit status; 0 while nothing has failed.
    pub(super) fn status(&self) -> i32 {
        self.status
    }

    /// Records a failure whose exit status is `status`. Returns true if it is the job's first, which determines the exit status.
    pub(super) fn fail(&mut self, status: i32) -> bool {
        let first = self.status == 0;
        if first {
            self.status = status;
        }
        first
    }

    /// Records that the ranks have been asked to end, and starts the grace period.
    pub(super) fn begin_ending(&mut self, grace: Duration) {
        self.ending = Ending::Asked([(Instant::now() + grace, Due::Kill)].into());
    }

    /// Records that a signal has asked the ranks to end: those that do not handle it have `short` time, the others `long`.
    pub(super) fn begin_ending_by_signal(
        &mut self,
        signal: Signal,
        short: Duration,
        long: Duration,
    ) {
        let now = Instant::now();
        let mut due = VecDeque::from([(now + short, Due::KillWithoutHandler(signal))]);
        if long > ANNOUNCED.max(short) {
            let at = ANNOUNCED.max(short);
            let left = long - at;
            due.push_back((now + at, Due::Announce { signal, left }));
        }
        due.push_back((now + long.max(short), Due::Kill));
        self.ending = Ending::Asked(due);
    }

    /// Records that the ranks have been killed.
    pub(super) fn note_killed(&mut self) {
        self.ending = Ending::Killed {
            until: Instant::now() + GIVE_UP,
        };
    }

    /// Returns true if the ranks have been asked to end, and not been killed.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.ending, Ending::Asked(_))
    }

    /// Returns the step that is due now for ranks that have been asked to end; each step once.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        let Ending::Asked(due) = &mut self.ending else {
            return None;
        };
        let is_due = due.front().is_some_and(|(at, _)| now >= *at);
        is_due
            .then(|| due.pop_front())
            .flatten()
            .map(|(_, due)| due)
    }

    /// Returns true if ranks that were killed are not waited for any more.
    pub(super) fn has_given_up(&self) -> bool {
        matches!(self.ending, Ending::Killed { until } if Instant::now() >= until)
    }

    /// Returns true once, when the time of the job is over.
    pub(super) fn take_deadline(&mut self, now: Instant) -> bool {
        let over = self.is_running() && self.deadline.is_some_and(|deadline| now >= deadline);
        if over {
            self.deadline = None;
        }
        over
    }

    /// Returns when the next step or the deadline is due.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.ending {
            Ending::No => self.deadline,
            Ending::Asked(due) => due.front().map(|(at, _)| *at),
            Ending::Killed { until } => Some(*until),
        }
    }
}
