//! Announced messages that no receive had matched when their communicator was freed.
//!
//! Their senders may cancel them later, as happens to active operations on a revoked communicator:
//! one member frees the communicator before the CANCEL of another member has arrived.

use crate::btl::ProcId;
use crate::request::ReqId;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The maximum number of stored messages.
/// Freeing a communicator with unmatched messages is an error of the program, so the memory for it is limited.
const MOST: usize = 4096;

#[derive(Default)]
pub(super) struct Forgotten(RefCell<VecDeque<(ProcId, ReqId)>>);

impl Forgotten {
    /// Stores a message, identified by its sender and the sender's request.
    pub(super) fn put(&self, from: ProcId, sender: ReqId) {
        let mut all = self.0.borrow_mut();
        all.push_back((from, sender));
        if all.len() > MOST {
            all.pop_front();
        }
    }

    /// Returns true if this message is stored, and removes it.
    pub(super) fn take(&self, from: ProcId, sender: ReqId) -> bool {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|known| *known == (from, sender));
        at.and_then(|at| all.remove(at)).is_some()
    }
}
