//! Announced messages that were dropped unmatched when their communicator was freed.
//!
//! Their senders may cancel them later, as happens to active operations on a revoked communicator:
//! one member frees the communicator while another one's CANCEL is still on its way.

use crate::btl::ProcId;
use crate::request::ReqId;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The maximum number of stored messages. Freeing a communicator with unmatched messages is an error of the program, so its cost in memory is bounded.
const MOST: usize = 4096;

#[derive(Default)]
pub(super) struct Forgotten(RefCell<VecDeque<(ProcId, ReqId)>>);

impl Forgotten {
    /// Stores a message by its sender and the sender's request.
    pub(super) fn put(&self, from: ProcId, sender: ReqId) {
        let mut all = self.0.borrow_mut();
        all.push_back((from, sender));
        if all.len() > MOST {
            all.pop_front();
        }
    }

    /// Returns true if this message was dropped, and forgets it.
    pub(super) fn take(&self, from: ProcId, sender: ReqId) -> bool {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|known| *known == (from, sender));
        at.and_then(|at| all.remove(at)).is_some()
    }
}
