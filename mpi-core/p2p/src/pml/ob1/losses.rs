//! The lost peers, and the errors of operations with them.

use super::matching::{Key, Matching};
use crate::btl::ProcId;
use crate::pml::error::PmlError;
use mpi_types::status::ANY_SOURCE;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

/// The text with which a transport explains the loss of a peer.
type Reason = Arc<str>;

#[derive(Default)]
pub(super) struct Losses {
    reasons: RefCell<HashMap<ProcId, Reason>>,
    /// True if the job continues after the loss of a peer.
    survives: Cell<bool>,
}

impl Losses {
    /// Records the loss of a peer. Only the first reason is stored, because it is the cause of later losses.
    pub(super) fn declare(&self, peer: ProcId, why: &str) {
        let mut reasons = self.reasons.borrow_mut();
        reasons.entry(peer).or_insert_with(|| why.into());
    }

    /// Removes the record of a lost peer that belongs to another job.
    pub(super) fn forget(&self, peer: ProcId) {
        self.reasons.borrow_mut().remove(&peer);
    }

    /// Sets `survives`: receives from any source then stay posted when the last peer is lost.
    pub(super) fn survive(&self) {
        self.survives.set(true);
    }

    /// Returns true if no peer is lost.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.reasons.borrow().is_empty()
    }

    pub(super) fn has(&self, peer: ProcId) -> bool {
        self.reasons.borrow().contains_key(&peer)
    }

    /// Returns the error of an operation with a lost peer.
    #[cold]
    pub(super) fn gone(&self, peer: ProcId, tag: i32, bytes: u64) -> PmlError {
        PmlError::PeerGone {
            peer,
            tag,
            bytes,
            why: self.reasons.borrow().get(&peer).cloned(),
        }
    }

    /// Returns the error of a receive that cannot complete because every possible sender is lost.
    ///
    /// This process, `me`, is not a possible sender: a process has sent all messages to itself before it waits.
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
