//! A failure that is held back because it may be the consequence of a death that has yet to be reported.

use super::super::ending::Cause;
use crate::pmi::Proc;
use std::time::{Duration, Instant};

/// How long an abort waits for news from other hosts, and for the end of a rank of this host that has begun to die.
const DELAY: Duration = Duration::from_millis(50);

/// The longest wait for a rank that has begun to die: the kernel takes that long to release much memory.
const DYING: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct DeferredCause(Option<Deferred>);

#[derive(Debug)]
struct Deferred {
    until: Instant,
    since: Instant,
    failure: Failure,
    /// All ranks that have asked for the end since; their own ends explain nothing.
    asked: Vec<Proc>,
}

/// A rank's reason for the job to end.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) proc: Proc,
    pub(super) cause: Cause,
    pub(super) code: i32,
}

impl DeferredCause {
    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if a rank has asked for the end for a reason that is held.
    pub(super) fn is_of(&self, proc: Proc) -> bool {
        (self.0.as_ref()).is_some_and(|held| held.asked.contains(&proc))
    }

    /// Holds a failure. If one is held already, the first of those with the greatest weight is kept.
    pub(super) fn hold(&mut self, failure: Failure) {
        match &mut self.0 {
            Some(held) => {
                held.asked.push(failure.proc);
                if failure.cause.weight() > held.failure.cause.weight() {
                    held.failure = failure;
                }
            }
            None => {
                let now = Instant::now();
                self.0 = Some(Deferred {
                    until: now + DELAY,
                    since: now,
                    asked: vec![failure.proc],
                    failure,
                });
            }
        }
    }

    /// Returns the failure if nothing else has explained it in time; `is_dying` returns true if a rank that has not asked has begun to die.
    pub(super) fn take_due(&mut self, is_dying: impl Fn(&[Proc]) -> bool) -> Option<Failure> {
        let now = Instant::now();
        let held = self.0.as_mut().filter(|held| now >= held.until)?;
        if now < held.since + DYING && is_dying(&held.asked) {
            held.until = now + DELAY;
            return None;
        }
        self.0.take().map(|held| held.failure)
    }

    /// Drops the held failure because another one is the cause.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns when the held failure is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.as_ref().map(|held| held.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::sys::Ended;

    const REACTION: Ended = Ended::Exited(mpi_abi::abi::MPI_ERR_PROC_ABORTED);
    const SIGBUS: Ended = Ended::Killed(libc::SIGBUS);

    /// Returns the rank that the report names if ranks 0, 1 ... have ended in these ways, in this order, and no rank is still dying.
    fn named(ends: &[Ended]) -> usize {
        let mut held = DeferredCause::default();
        for (rank, &ended) in ends.iter().enumerate() {
            held.hold(Failure {
                proc: Proc(rank),
                cause: Cause::Died(ended),
                code: ended.code(),
            });
        }
        let due = held.next().expect("something is held");
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        held.take_due(|_| false).expect("it is due").proc.0
    }

    #[test]
    fn a_rank_with_a_reason_of_its_own_is_named_before_one_whose_memory_is_gone() {
        assert_eq!(named(&[SIGBUS, Ended::Exited(3)]), 1);
        assert_eq!(named(&[REACTION, SIGBUS, Ended::Exited(3), SIGBUS]), 2);
        assert_eq!(named(&[Ended::Exited(3), SIGBUS]), 0);
    }

    #[test]
    fn a_rank_whose_memory_is_gone_is_named_if_nothing_explains_it() {
        assert_eq!(named(&[SIGBUS]), 0);
        assert_eq!(named(&[SIGBUS, SIGBUS, REACTION]), 0);
        assert_eq!(named(&[REACTION, SIGBUS]), 1);
    }

    #[test]
    fn what_is_held_waits_while_another_rank_is_dying() {
        let mut held = DeferredCause::default();
        held.hold(Failure {
            proc: Proc(2),
            cause: Cause::Died(SIGBUS),
            code: SIGBUS.code(),
        });
        std::thread::sleep(DELAY);
        assert!(held.take_due(|asked| asked == [Proc(2)]).is_none());
        assert!(held.is_there());
    }
}
