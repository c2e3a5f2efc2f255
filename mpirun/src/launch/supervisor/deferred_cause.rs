//! A deferred failure: it may be the consequence of a death that has not been reported yet.

use super::super::ending::Cause;
use crate::pmi::Proc;
use std::time::{Duration, Instant};

/// The time for which an abort is held back.
/// Reports of other hosts, or the end of a dying rank of this host, may arrive in that time.
const DELAY: Duration = Duration::from_millis(50);

/// The maximum wait for a dying rank, whose memory the kernel may take long to release.
const DYING: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct DeferredCause(Option<Deferred>);

#[derive(Debug)]
struct Deferred {
    until: Instant,
    since: Instant,
    failure: Failure,
    /// All ranks that have aborted since `since`; their later ends are not the failure's cause.
    asked: Vec<Proc>,
}

/// A failure of a rank that ends the job.
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

    /// Returns true if the rank has aborted and its failure is held back.
    pub(super) fn is_of(&self, proc: Proc) -> bool {
        (self.0.as_ref()).is_some_and(|held| held.asked.contains(&proc))
    }

    /// Holds a failure back. Of several failures, the first with the greatest weight is kept.
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

    /// Returns the failure if no other failure has explained it in time.
    /// `is_dying` returns true if a rank other than the given ones has begun to die.
    pub(super) fn take_due(&mut self, is_dying: impl Fn(&[Proc]) -> bool) -> Option<Failure> {
        let now = Instant::now();
        let held = self.0.as_mut().filter(|held| now >= held.until)?;
        if now < held.since + DYING && is_dying(&held.asked) {
            held.until = now + DELAY;
            return None;
        }
        self.0.take().map(|held| held.failure)
    }

    /// Drops the held failure, since another failure is the cause.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns the time at which the held failure is due.
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

    /// Returns the rank that is named as the cause if ranks 0, 1, ... have ended in this order
    /// and no other rank is dying.
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
