//! Messages that were announced on a communicator and dropped with it, since no receive had asked for them.
//!
//! Their senders may want them back later, as a program does with what is under way on a communicator that is revoked:
//! one member frees it while another one's wish is still on its way.

use crate::btl::ProcId;
use crate::request::ReqId;
use std::cell::RefCell;
use std::collections::VecDeque;

/// A program that frees communicators on which messages wait for receives is wrong, and costs no more memory than this.
const MOST: usize = 4096;

#[derive(Default)]
pub(super) struct Forgotten(RefCell<VecDeque<(ProcId, ReqId)>>);

impl Forgotten {
    /// Remembers a message by its sender and the sender's request.
    pub(super) fn put(&self, from: ProcId, sender: ReqId) {
        let mut all = self.0.borrow_mut();
        all.push_back((from, sender));
        if all.len() > MOST {
            all.pop_front();
        }
    }

    /// Whether this message was dropped; the answer is given once.
    pub(super) fn take(&self, from: ProcId, sender: ReqId) -> bool {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|known| *known == (from, sender));
        at.and_then(|at| all.remove(at)).is_some()
    }
}
