//! The fast path: short contiguous sends and blocking contiguous receives, without a request.
//!
//! A short contiguous message to a peer whose queue is empty is passed to the transport immediately and needs no further state.
//! A blocking receive into a contiguous buffer waits in the [`Slot`] instead of the list of posted receives,
//! if no unexpected message matches the receive,
//! and no posted receive accepts a message that this receive accepts.
//! All other messages take the general path; only the general path handles datatypes, modes and errors.
//!
//! Matching order is preserved. While a receive occupies the slot, its context has no earlier receive for the same messages.
//! A receive that is posted later also matches later,
//! because an arriving message is offered to the slot first.
//!
//! Protocol: [`Slot::begin`] stores the receive, an arriving message advances the stage, [`Slot::end`] empties the slot.
//! The slot holds one blocking receive at a time; a concurrent receive of a second thread takes the general path.
//! After the first loss of a peer the slot stays closed. Then every receive takes the general path,
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

/// Sends a short message immediately. Returns false if nothing was sent; the caller must then use the general path.
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

/// The slot: one blocking receive and its state.
pub(super) struct Slot {
    stage: Cell<Stage>,
    /// The value of `stage` while no receive occupies the slot: `Free` until the slot is closed, then `Closed`.
    resting: Cell<Stage>,
    /// True if `stage` is `Here`. A waiting receive polls only this byte.
    landed: Cell<bool>,
    /// The key of the received message, and its length in bytes.
    message: Cell<(Key, u64)>,
    /// The arguments of the receive; valid while a receive occupies the slot.
    context: Cell<Context>,
    key: Cell<Key>,
    /// The receiver's rank in the communicator, for error texts.
    receiver: Cell<i32>,
    buf: Cell<RecvBytes>,
    /// The request to which the receive was converted because a long message matched it.
    moved: RefCell<Option<Req>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Waiting,
    /// The message is in the buffer, truncated to the buffer's length.
    Here,
    /// The receive was converted to a request of the general path.
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

    /// Returns true if the waiting receive accepts a message of this context and key.
    #[inline]
    pub(super) fn takes(&self, context: Context, message: Key) -> bool {
        self.stage.get() == Stage::Waiting
            && self.context.get() == context
            && self.key.get().accepts(message)
    }

    /// Stores a blocking receive. Returns false if the caller must use the general path.
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

    /// Returns the context and key of the receive and the size of its buffer in bytes, for the state page.
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

    /// Delivers a short message to the waiting receive.
    #[inline]
    pub(super) fn land(&self, key: Key, data: &[u8]) {
        self.buf.get().fill(data);
        self.message.set((key, data.len() as u64));
        self.stage.set(Stage::Here);
        self.landed.set(true);
    }

    /// Converts the waiting receive into a request, because a long message matches it.
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
