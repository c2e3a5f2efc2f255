//! Peers that cannot be reached any more, and what an operation with one is told.

use super::matching::{Key, Matching};
use crate::btl::ProcId;
use crate::pml::error::PmlError;
use mpi_types::status::ANY_SOURCE;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// What is kept of a lost peer: the transport's sentence.
type Reason = Arc<str>;

#[derive(Default)]
pub(super) struct Losses {
    reasons: RefCell<HashMap<ProcId, Reason>>,
    /// Whether the job goes on when a peer is lost.
    survives: Cell<bool>,
}

impl Losses {
    /// A peer is lost; the first reason is the cause of those that come later.
    pub(super) fn declare(&self, peer: ProcId, why: &str) {
        let mut reasons = self.reasons.borrow_mut();
        reasons.entry(peer).or_insert_with(|| why.into());
    }

    /// Forgets a process of another job.
    pub(super) fn forget(&self, peer: ProcId) {
        self.reasons.borrow_mut().remove(&peer);
    }

    /// From now on receives from any source do not end when the last peer is lost.
    pub(super) fn survive(&self) {
        self.survives.set(true);
    }

    /// Whether no peer is lost.
    pub(super) fn is_empty(&self) -> bool {
        self.reasons.borrow().is_empty()
    }

    pub(super) fn has(&self, peer: ProcId) -> bool {
        self.reasons.borrow().contains_key(&peer)
    }

    /// Why an operation with a peer cannot be completed.
    #[cold]
    pub(super) fn gone(&self, peer: ProcId, tag: i32, bytes: u64) -> PmlError {
        PmlError::PeerGone {
            peer,
            tag,
            bytes,
            why: self.reasons.borrow().get(&peer).cloned(),
        }
    }

    /// The error of waiting for a message of which every possible sender is lost, if that is so.
    ///
    /// What this process, `me`, could send to itself it has sent before it waits, so it does not count.
    pub(super) fn no_sender(&self, matching: &Matching, key: Key, me: ProcId) -> Option<PmlError> {
        let reasons = self.reasons.borrow();
        if reasons.is_empty() {
            return None;
        }
        let lost = match (matching.names(key), key.source()) {
            (Some(peer), _) => vec![reasons.get(&peer)?.clone()],
            (None, ANY_SOURCE) if !self.survives.get() => {
                let all = matching.of_all_but(me, |proc| reasons.get(&proc).cloned());
                all.filter(|all| !all.is_empty())?
            }
            _ => return None,
        };
        Some(PmlError::NoSender {
            tag: key.tag(),
            lost,
        })
    }
}
