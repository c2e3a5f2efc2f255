//! The express lane: the commonest send and the commonest receive, without a request.
//!
//! A short message from one run of memory, to a peer whose queue is empty, is handed to the transport at once; there is nothing to remember.
//! A blocking receive into one run of memory, when nothing that was posted earlier and nothing that has arrived concerns it, waits in a slot of its own.
//! Everything else takes the general path, which stays the only one that knows datatypes, modes and errors.
//!
//! Matching order is kept: the slot is taken only while its context has no posted receive for any message that it accepts;
//! whatever is posted later comes after it, and an arriving message asks the slot first.
//!
//! Protocol: [`Slot::begin`] fills the slot, arrival moves its stage on, [`Slot::end`] empties it;
//! one blocking receive at a time, so a second thread's takes the general path.
//! After the first loss of a peer the slot stays closed, so that every receive takes the general path, which asks whether its sender is lost.

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

/// Sends a short message at once; false if the general path has to see to it, and nothing has happened.
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
    /// The stage between two receives: `Free` until the first peer is lost, then `Closed`.
    resting: Cell<Stage>,
    /// Whether the stage is `Here`; the one byte that a waiting receive looks at.
    landed: Cell<bool>,
    /// The message that landed, and its length in bytes.
    message: Cell<(Key, u64)>,
    /// What the receive takes; meaningful while it waits.
    context: Cell<Context>,
    key: Cell<Key>,
    /// The receiver's rank in the communicator, for error texts.
    receiver: Cell<i32>,
    buf: Cell<RecvBytes>,
    /// The request that a message's rendezvous made of it.
    moved: RefCell<Option<Req>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    Waiting,
    /// The message is in the buffer, as far as it fits.
    Here,
    /// The general path has it.
    Moved,
    /// No receive is let in any more.
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
    /// Lets no receive in any more.
    pub(super) fn close(&self) {
        self.resting.set(Stage::Closed);
        if self.stage.get() == Stage::Free {
            self.stage.set(Stage::Closed);
        }
    }

    /// Whether it has never been closed.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.resting.get() == Stage::Free
    }

    /// Whether a message of this key is for the receive that waits here.
    #[inline]
    pub(super) fn takes(&self, context: Context, message: Key) -> bool {
        self.stage.get() == Stage::Waiting
            && self.context.get() == context
            && self.key.get().accepts(message)
    }

    /// Begins a blocking receive; false if the general path has to see to it.
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

    /// Whether the receive has ended.
    #[inline(always)]
    pub(super) fn is_here(&self) -> bool {
        self.landed.get() || self.stage.get() == Stage::Moved && self.moved_is_complete()
    }

    #[cold]
    fn moved_is_complete(&self) -> bool {
        let moved = self.moved.borrow();
        moved.as_ref().is_none_or(|req| req.is_complete())
    }

    /// The outcome of the receive; the slot is free again.
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

    /// What the receive waits for, and for how many bytes it has room: what the state page tells.
    pub(super) fn about(&self) -> (Context, Key, u64) {
        (self.context.get(), self.key.get(), self.capacity())
    }

    /// The same, if one waits.
    pub(super) fn waiting(&self) -> Option<(Context, Key, u64)> {
        (self.stage.get() == Stage::Waiting).then(|| self.about())
    }

    /// How many bytes the receive has room for.
    pub(super) fn capacity(&self) -> u64 {
        self.buf.get().len() as u64
    }

    /// A short message for the slot has come.
    #[inline]
    pub(super) fn land(&self, key: Key, data: &[u8]) {
        self.buf.get().fill(data);
        self.message.set((key, data.len() as u64));
        self.stage.set(Stage::Here);
        self.landed.set(true);
    }

    /// A long message for the slot has come: it becomes a request.
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
