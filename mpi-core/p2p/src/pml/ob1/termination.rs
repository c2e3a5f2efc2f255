//! Early termination of operations: after the loss of a peer, on communicators with failed members, and of abandoned requests.

use super::core::Core;
use super::matching::{Key, Matching};
use super::recv::{self, Receiver};
use super::{interrupt, peer_failure, send};
use crate::Error;
use crate::pml::envelope::Context;
use crate::pml::error::PmlError;
use crate::request::Req;

/// Terminates operations early, before their messages complete.
#[derive(Clone, Copy)]
pub struct Termination<'a> {
    core: &'a Core,
    receiver: &'a Receiver,
}

impl<'a> Termination<'a> {
    pub(super) fn of(core: &'a Core, receiver: &'a Receiver) -> Self {
        Termination { core, receiver }
    }

    /// Returns the error of a receive or probe whose possible senders are all lost; `None` if one is left.
    pub fn no_sender(self, matching: &Matching, key: Key) -> Option<PmlError> {
        peer_failure::no_sender(self.core, matching, key)
    }

    /// Prepares for a job that continues after losses: every receive takes the general path, which checks for losses.
    /// A receive from any source then fails only if its communicator is interrupted, and not when the last peer is lost.
    pub fn survive_losses(self) {
        self.receiver.slot().close();
        self.core.losses().survive();
    }

    /// Completes with `error` the communicator's unmatched `MPI_ANY_SOURCE` receives of user
    /// messages, because no process that could send such a message is left.
    pub fn end_any_source(self, context: Context, error: &Error) {
        interrupt::end_any_source(self.core, context, error);
    }

    /// Interrupts the communicator's unmatched `MPI_ANY_SOURCE` receives of user messages.
    pub fn interrupt_any_source(self, context: Context, error: &Error) {
        interrupt::interrupt_any_source(self.core, context, error);
    }

    /// Resumes the communicator's `MPI_ANY_SOURCE` receives, after the program has acknowledged
    /// the failures that interrupted them.
    pub fn resume_any_source(self, context: Context) {
        interrupt::resume_any_source(self.core, context);
    }

    /// Aborts the program's active operations on the communicator with the ID `number`.
    /// Each completes with `error`.
    pub fn give_up_all(self, number: u64, error: &Error) {
        self.receiver.give_up_slot(self.core, number, error);
        interrupt::give_up_all(self.core, number, error);
    }

    /// Aborts one active operation. It completes when the library no longer accesses its buffer.
    pub fn give_up(self, req: &Req, error: &Error) {
        interrupt::give_up(self.core, req, error);
    }

    /// Abandons a request. After the call no process accesses its buffer.
    pub fn abandon(self, req: &Req) {
        recv::abandon(self.core, req);
        send::streams::stop(self.core, req);
        self.core.requests().release(req);
    }
}
