//! Rate limit of polls that are system calls.
//!
//! A poll by a system call takes longer than the whole transfer of a message through shared memory.
//! So the BML polls these transports in each call only after [`CALM`] polls of shared memory without a message (about 2 us).
//! Otherwise it polls them once per [`PAUSE`],
//! so that continuous traffic through shared memory does not delay the other transports indefinitely.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Number of consecutive polls without a message after which shared memory counts as idle.
const CALM: u32 = 256;
/// Interval between two polls by system calls while shared memory is busy. One poll takes about a hundredth of this time.
const PAUSE: Duration = Duration::from_micros(20);
/// The clock is read in every `READ`th poll.
const READ: u32 = 32;

/// State of the rate limit; only the BML uses it.
pub struct PollThrottle {
    /// Number of consecutive polls without a message through shared memory.
    calm: Cell<u32>,
    /// Number of polls until the clock is read again.
    unread: Cell<u32>,
    last: Cell<Instant>,
}

impl Default for PollThrottle {
    fn default() -> PollThrottle {
        PollThrottle {
            calm: Cell::new(CALM),
            unread: Cell::new(READ),
            last: Cell::new(Instant::now()),
        }
    }
}

impl PollThrottle {
    /// Returns true if polls by system calls are due, after a poll of shared memory that delivered `delivered` messages.
    #[inline]
    pub fn is_due(&self, delivered: usize) -> bool {
        if delivered > 0 {
            self.calm.set(0);
        } else if self.calm.get() >= CALM {
            return true;
        } else {
            self.calm.set(self.calm.get() + 1);
        }
        self.unread.set(self.unread.get().wrapping_sub(1));
        self.unread.get() == 0 && self.is_overdue()
    }

    #[cold]
    fn is_overdue(&self) -> bool {
        self.unread.set(READ);
        let now = Instant::now();
        let overdue = now.duration_since(self.last.get()) >= PAUSE;
        if overdue {
            self.last.set(now);
        }
        overdue
    }

    /// Makes polls by system calls due in every call until shared memory delivers a message.
    #[inline]
    pub fn attend(&self) {
        self.calm.set(CALM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(throttle: &PollThrottle, looks: u32, delivered: usize) -> u32 {
        (0..looks)
            .map(|_| u32::from(throttle.is_due(delivered)))
            .sum()
    }

    #[test]
    fn an_idle_shared_memory_leaves_all_polls_to_the_other_transports() {
        let throttle = PollThrottle::default();
        assert_eq!(due(&throttle, 1000, 0), 1000);
    }

    #[test]
    fn busy_memory_leaves_them_few_and_never_none() {
        let throttle = PollThrottle::default();
        assert!(due(&throttle, 10_000, 1) <= 10_000 / READ);
        let limit = Instant::now() + Duration::from_secs(10);
        while due(&throttle, READ, 1) == 0 {
            assert!(Instant::now() < limit, "steady traffic starves the others");
        }
    }

    #[test]
    fn after_a_message_they_wait_until_memory_is_calm_or_somebody_attends() {
        let throttle = PollThrottle::default();
        throttle.is_due(1);
        assert!(due(&throttle, CALM, 0) <= CALM / READ);
        assert_eq!(due(&throttle, 100, 0), 100);
        throttle.is_due(1);
        throttle.attend();
        assert_eq!(due(&throttle, 100, 0), 100);
    }
}
