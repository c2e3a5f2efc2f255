//! Lifecycle of the job (running, asked to end, killed) and its exit status.
//!
//! The first failure decides the exit status.

use super::super::sys::Signal;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time from a signal that asks ranks to end to the message about the ranks still alive.
const ANNOUNCED: Duration = Duration::from_secs(1);

/// The maximum wait for the ends of killed ranks.
/// After SIGKILL a process remains only if it is stuck inside the kernel.
const GIVE_UP: Duration = Duration::from_secs(5);

pub(super) struct Lifecycle {
    status: i32,
    ending: Ending,
    /// The end of the job's time limit; `None` if there is no limit or it has been reported.
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum Ending {
    No,
    /// The steps with their times, in order; the last step is to kill.
    Asked(VecDeque<(Instant, Due)>),
    Killed {
        until: Instant,
    },
}

/// A step in the termination of ranks that were asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Kill the ranks that have no handler for this signal.
    KillWithoutHandler(Signal),
    /// Print which ranks are still alive, and the time they have left.
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

    /// Returns the exit status, which is 0 until the first failure.
    pub(super) fn status(&self) -> i32 {
        self.status
    }

    /// Records a failure with exit status `status`.
    /// Returns true if this is the first failure; only the first failure sets the exit status.
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

    /// Records that a signal has asked the ranks to end.
    /// Ranks that do not handle the signal are killed after `short`, all others after `long`.
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

    /// Returns true if the ranks have been asked to end but have not been killed.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.ending, Ending::Asked(_))
    }

    /// Removes and returns the step that is due now for ranks that have been asked to end.
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

    /// Returns true if the wait for the ends of killed ranks has timed out.
    pub(super) fn has_given_up(&self) -> bool {
        matches!(self.ending, Ending::Killed { until } if Instant::now() >= until)
    }

    /// Returns true only in the first call after the job's time limit.
    pub(super) fn take_deadline(&mut self, now: Instant) -> bool {
        let over = self.is_running() && self.deadline.is_some_and(|deadline| now >= deadline);
        if over {
            self.deadline = None;
        }
        over
    }

    /// Returns the time of the next step or of the time limit.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.ending {
            Ending::No => self.deadline,
            Ending::Asked(due) => due.front().map(|(at, _)| *at),
            Ending::Killed { until } => Some(*until),
        }
    }
}
