//! How far the job is: running, asked to end, or killed; and the exit status that it will have.
//!
//! The first thing that goes wrong decides the status.

use std::time::{Duration, Instant};

/// After SIGKILL a process can live on only inside the kernel; it is not waited for longer than this.
const GIVE_UP: Duration = Duration::from_secs(5);

pub(super) struct Course {
    status: i32,
    ending: Ending,
    /// When the time of the job is over, if that has not been told yet.
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    No,
    Asked { until: Instant },
    Killed { until: Instant },
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
        self.ending = Ending::Asked {
            until: Instant::now() + grace,
        };
    }

    /// The ranks have been killed.
    pub(super) fn was_killed(&mut self) {
        self.ending = Ending::Killed {
            until: Instant::now() + GIVE_UP,
        };
    }

    /// Whether the ranks have been asked, and not been killed.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.ending, Ending::Asked { .. })
    }

    /// Whether the ranks have been asked and their time is over.
    pub(super) fn is_patience_over(&self, now: Instant) -> bool {
        matches!(self.ending, Ending::Asked { until } if now >= until)
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
        match self.ending {
            Ending::No => self.deadline,
            Ending::Asked { until } | Ending::Killed { until } => Some(until),
        }
    }
}
