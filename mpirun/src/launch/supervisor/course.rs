//! How far the job is: running, asked to end, or killed; and the exit status that it will have.
//!
//! The first thing that goes wrong decides the status.

use super::super::sys::Signal;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Ranks that were asked to end by a signal and still run after this are announced.
const ANNOUNCED: Duration = Duration::from_secs(1);

/// After SIGKILL a process can live on only inside the kernel; it is not waited for longer than this.
const GIVE_UP: Duration = Duration::from_secs(5);

pub(super) struct Course {
    status: i32,
    ending: Ending,
    /// When the time of the job is over, if that has not been told yet.
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum Ending {
    No,
    /// What is due when, one after the other; the last is to kill.
    Asked(VecDeque<(Instant, Due)>),
    Killed {
        until: Instant,
    },
}

/// What is due for ranks that were asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// To kill those that do not handle this signal.
    KillDeaf(Signal),
    /// To say which still run, and how long they may.
    Announce {
        signal: Signal,
        left: Duration,
    },
    Kill,
}

impl Course {
    /// A job that may run so long.
    pub(super) fn new(limit: Option<Duration>) -> Course {
        Course {
            status: 0,
            ending: Ending::No,
            deadline: limit.map(|limit| Instant::now() + limit),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.ending, Ending::No)
    }

    /// The exit status; 0 as long as nothing went wrong.
    pub(super) fn status(&self) -> i32 {
        self.status
    }

    /// Something went wrong that alone would give this status; answers whether it is the first.
    pub(super) fn fail(&mut self, status: i32) -> bool {
        let first = self.status == 0;
        if first {
            self.status = status;
        }
        first
    }

    /// The ranks have been asked to end, and have so long.
    pub(super) fn was_asked(&mut self, grace: Duration) {
        self.ending = Ending::Asked([(Instant::now() + grace, Due::Kill)].into());
    }

    /// The ranks have been asked to end by this signal: those that do not handle it have the shorter time, the others the longer.
    pub(super) fn was_asked_by(&mut self, signal: Signal, short: Duration, long: Duration) {
        let now = Instant::now();
        let mut due = VecDeque::from([(now + short, Due::KillDeaf(signal))]);
        if long > ANNOUNCED.max(short) {
            let at = ANNOUNCED.max(short);
            let left = long - at;
            due.push_back((now + at, Due::Announce { signal, left }));
        }
        due.push_back((now + long.max(short), Due::Kill));
        self.ending = Ending::Asked(due);
    }

    /// The ranks have been killed.
    pub(super) fn was_killed(&mut self) {
        self.ending = Ending::Killed {
            until: Instant::now() + GIVE_UP,
        };
    }

    /// Whether the ranks have been asked, and not been killed.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.ending, Ending::Asked(_))
    }

    /// What is due now for ranks that have been asked; each thing once.
    pub(super) fn takes_due(&mut self, now: Instant) -> Option<Due> {
        let Ending::Asked(due) = &mut self.ending else {
            return None;
        };
        let is_due = due.front().is_some_and(|(at, _)| now >= *at);
        is_due
            .then(|| due.pop_front())
            .flatten()
            .map(|(_, due)| due)
    }

    /// Whether ranks that were killed are not waited for any more.
    pub(super) fn has_given_up(&self) -> bool {
        matches!(self.ending, Ending::Killed { until } if Instant::now() >= until)
    }

    /// Whether the time of the job is over; true once.
    pub(super) fn takes_deadline(&mut self, now: Instant) -> bool {
        let over = self.is_running() && self.deadline.is_some_and(|deadline| now >= deadline);
        if over {
            self.deadline = None;
        }
        over
    }

    /// When one of these has to be asked again.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.ending {
            Ending::No => self.deadline,
            Ending::Asked(due) => due.front().map(|(at, _)| *at),
            Ending::Killed { until } => Some(*until),
        }
    }
}
