//! A failure that may be the consequence of a death that has still to be heard of.

use super::super::ending::Cause;
use crate::pmi::Proc;
use std::time::{Duration, Instant};

/// How long an abort waits for news from other hosts, and for the end of a rank of this host that has begun to die.
const HEARSAY: Duration = Duration::from_millis(50);

/// A rank that has begun to die is waited for no longer than this: giving back much memory takes the system that long.
const DYING: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct HeldCause(Option<Held>);

#[derive(Debug)]
struct Held {
    until: Instant,
    since: Instant,
    failure: Failure,
    /// All ranks that have asked for the end since; their own ends are no news.
    asked: Vec<Proc>,
}

/// Why a rank wants the job to end.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) proc: Proc,
    pub(super) cause: Cause,
    pub(super) code: i32,
}

impl HeldCause {
    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a rank has asked for the end for a reason that is held.
    pub(super) fn is_of(&self, proc: Proc) -> bool {
        (self.0.as_ref()).is_some_and(|held| held.asked.contains(&proc))
    }

    /// Holds a failure. If one is held already, the first rank that has a reason of its own is believed.
    pub(super) fn hold(&mut self, failure: Failure) {
        match &mut self.0 {
            Some(held) => {
                held.asked.push(failure.proc);
                if held.failure.cause.is_another_s_end() && !failure.cause.is_another_s_end() {
                    held.failure = failure;
                }
            }
            None => {
                let now = Instant::now();
                self.0 = Some(Held {
                    until: now + HEARSAY,
                    since: now,
                    asked: vec![failure.proc],
                    failure,
                });
            }
        }
    }

    /// The failure, if nothing else has explained it in time; `is_dying` says whether a rank other than those that asked has begun to die.
    pub(super) fn take_due(&mut self, is_dying: impl Fn(&[Proc]) -> bool) -> Option<Failure> {
        let now = Instant::now();
        let held = self.0.as_mut().filter(|held| now >= held.until)?;
        if now < held.since + DYING && is_dying(&held.asked) {
            held.until = now + HEARSAY;
            return None;
        }
        self.0.take().map(|held| held.failure)
    }

    /// Another failure is believed.
    pub(super) fn drop_it(&mut self) {
        self.0 = None;
    }

    /// When it is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.as_ref().map(|held| held.until)
    }
}
