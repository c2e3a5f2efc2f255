//! The fast path: the most common send and the most common receive, without a request.
//!
//! A short contiguous message to a peer whose queue is empty is passed to the transport at once and needs no further state.
//! A blocking receive into a contiguous buffer waits in a separate slot, if no unexpected message
//! matches the receive, and no posted receive accepts any message that this receive accepts.
//! All other messages take the general path, which alone handles datatypes, modes and errors.
//!
//! Matching order is kept: the slot is used only while its context has no posted receive for any message that it accepts.
//! A receive that is posted later matches later,
//! because an arriving message is offered to the slot first.
//!
//! Protocol: [`Slot::begin`] fills the slot, an arrival advances its stage, [`Slot::end`] empties it.
//! The slot takes one blocking receive at a time; a receive of a second thread takes the general path.
//! After the first loss of a peer the slot stays closed. Every receive then takes the general path,
//! which checks whether the receive's sender is lost.

use super::links::Links;
use super::matching::{Key, Matching};
use super::recv_body::RecvBody;
use super::wire;
use crate::btl::{Payload, ProcId};
use crate::datatype::RecvBytes;
use crate::pml::envelope::Context;
use crate::pml::error::PmlError;
use crate::request::{Body, Outcome, Req, Status, Table};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Sends a short message at once. Returns false if nothing was sent and the general path must send the message.
#[inline(always)]
pub(super) fn try_send(
    links: &Links,
    context: Context,
    source: i32,
    proc: ProcId,
    tag: i32,
    data: &[u8],
) -> bool {
    let Some(peer) = links.known(proc) else {
        return false;
    };
    data.len() < peer.credit().eager_below()
        && peer.lets_through(data.len())
        && peer
            .send(
                wire::EAGER,
                wire::match_header(context, source, tag),
                Payload::Bytes(data),
            )
            .is_ok()
}

/// The slot of the blocking receive.
pub(super) struct Slot {
    stage: Cell<Stage>,
    /// The stage between two receives: `Free` until the slot is closed, then `Closed`.
    resting: Cell<Stage>,
    /// True if the stage is `Here`; the one byte that a waiting receive polls.
    landed: Cell<bool>,
    /// The key of the message in the buffer, and its length in bytes.
    message: Cell<(Key, u64)>,
    /// The arguments of the receive; valid while the receive waits.
    context: Cell<Context>,
    key: Cell<Key>,
    /// The receiver's rank in the communicator, for error texts.
    receiver: Cell<i32>,
    buf: Cell<RecvBytes>,
    /// The request into which a rendezvous has converted the receive.
    moved: RefCell<Option<Req>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Waiting,
    /// The message is in the buffer, truncated to the buffer's length.
    Here,
    /// The general path has taken over the receive.
    Moved,
    /// The slot accepts no further receive.
    Closed,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            stage: Cell::new(Stage::Free),
            resting: Cell::new(Stage::Free),
            landed: Cell::new(false),
            message: Cell::new((Key::new(0, 0), 0)),
            context: Cell::new(Context(0)),
            key: Cell::new(Key::new(0, 0)),
            receiver: Cell::new(0),
            buf: Cell::new(RecvBytes::empty()),
            moved: RefCell::new(None),
        }
    }
}

impl Slot {
    /// Closes the slot to further receives.
    pub(super) fn close(&self) {
        self.resting.set(Stage::Closed);
        if self.stage.get() == Stage::Free {
            self.stage.set(Stage::Closed);
        }
    }

    /// Returns true if the slot has never been closed.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.resting.get() == Stage::Free
    }

    /// Returns true if the waiting receive accepts a message of this key.
    #[inline]
    pub(super) fn takes(&self, context: Context, message: Key) -> bool {
        self.stage.get() == Stage::Waiting
            && self.context.get() == context
            && self.key.get().accepts(message)
    }

    /// Begins a blocking receive. Returns false if the general path must execute the receive.
    #[inline(always)]
    pub(super) fn begin(
        &self,
        matching: &Matching,
        receiver: i32,
        key: Key,
        buf: RecvBytes,
    ) -> bool {
        if self.stage.get() != Stage::Free || !matching.is_next(key) {
            return false;
        }
        self.context.set(matching.context());
        self.key.set(key);
        self.receiver.set(receiver);
        self.buf.set(buf);
        self.stage.set(Stage::Waiting);
        true
    }

    /// Returns true if the receive has completed.
    #[inline(always)]
    pub(super) fn is_here(&self) -> bool {
        self.landed.get() || self.stage.get() == Stage::Moved && self.moved_is_complete()
    }

    #[cold]
    fn moved_is_complete(&self) -> bool {
        let moved = self.moved.borrow();
        moved.as_ref().is_none_or(|req| req.is_complete())
    }

    /// Returns the outcome of the receive and frees the slot.
    #[inline(always)]
    pub(super) fn end(&self, requests: &Table) -> Outcome {
        self.landed.set(false);
        if self.stage.replace(self.resting.get()) != Stage::Here {
            return self.end_moved(requests);
        }
        let (key, bytes) = self.message.get();
        let capacity = self.buf.get().len() as u64;
        if bytes > capacity {
            return Err(PmlError::truncated(
                self.receiver.get(),
                key.source(),
                key.tag(),
                bytes,
                capacity,
            )
            .into());
        }
        Ok(key.status(bytes))
    }

    #[cold]
    fn end_moved(&self, requests: &Table) -> Outcome {
        match self.moved.take() {
            Some(req) => requests.finish(&req),
            None => Ok(Status::EMPTY),
        }
    }

    /// Returns what the receive waits for and the size of its buffer, for the state page.
    pub(super) fn about(&self) -> (Context, Key, u64) {
        (self.context.get(), self.key.get(), self.capacity())
    }

    /// Returns the values of [`Slot::about`] if a receive waits in the slot, otherwise `None`.
    pub(super) fn waiting(&self) -> Option<(Context, Key, u64)> {
        (self.stage.get() == Stage::Waiting).then(|| self.about())
    }

    /// Returns the size of the receive buffer in bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.buf.get().len() as u64
    }

    /// Delivers a short message to the slot.
    #[inline]
    pub(super) fn land(&self, key: Key, data: &[u8]) {
        self.buf.get().fill(data);
        self.message.set((key, data.len() as u64));
        self.stage.set(Stage::Here);
        self.landed.set(true);
    }

    /// Converts the receive into a request for a long message.
    #[cold]
    pub(super) fn move_on(&self, requests: &Table, matching: &Rc<Matching>) -> Req {
        let body = RecvBody::matched(
            self.buf.get().into(),
            self.key.get(),
            self.receiver.get(),
            matching.clone(),
        );
        let req = requests.begin(Body::Recv(body));
        *self.moved.borrow_mut() = Some(req.clone());
        self.stage.set(Stage::Moved);
        req
    }
}
