//! The express lane: the commonest send and the commonest receive, without a request.
//!
//! A short message from one run of memory, to a peer whose queue is empty, is handed to the transport at once; there is nothing to remember.
//! A blocking receive into one run of memory, when nothing that was posted earlier and nothing that has arrived concerns it, waits in a slot of its own.
//! Everything else takes the general path, which stays the only one that knows datatypes, modes and errors.
//!
//! Matching order is kept: the slot is taken only while its context has no posted receive for any message that it accepts;
//! whatever is posted later comes after it, and an arriving message asks the slot first.
//!
//! Protocol: [`Ob1::try_recv_here`] fills the slot, arrival moves its stage on, [`Ob1::end_here`] empties it;
//! one blocking receive at a time, so a second thread's takes the general path.

use super::wire;
use super::{Key, Matching, Ob1, RecvBody, recv};
use crate::btl::{Payload, ProcId};
use crate::datatype::RecvBytes;
use crate::pml::Context;
use crate::request::{Body, Outcome, Req, Status};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The slot of the blocking receive.
pub(super) struct Slot {
    pub(super) stage: Cell<Stage>,
    /// The stage between two receives: `Free` until the first peer is lost, then `Closed`.
    pub(super) resting: Cell<Stage>,
    /// Whether the stage is `Here`; the one byte that a waiting receive looks at.
    landed: Cell<bool>,
    /// The message that landed, and its length in bytes.
    message: Cell<(Key, u64)>,
    /// What the receive takes; meaningful while it waits.
    pub(super) context: Cell<Context>,
    pub(super) key: Cell<Key>,
    /// The receiver's rank in the communicator, for error texts.
    receiver: Cell<i32>,
    pub(super) buf: Cell<RecvBytes>,
    /// The request that a message's rendezvous made of it.
    moved: RefCell<Option<Req>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
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

    #[inline]
    pub(super) fn takes(&self, context: Context, message: Key) -> bool {
        self.stage.get() == Stage::Waiting
            && self.context.get() == context
            && self.key.get().accepts(message)
    }
}

/// Whether nothing that a receive with this key accepts has arrived, and nothing that it will accept is another receive's.
#[inline]
fn is_next(matching: &Matching, key: Key) -> bool {
    let alone = matching.unexpected.borrow().is_empty() && matching.posted.borrow().is_empty();
    alone || is_next_among(matching, key)
}

#[inline(never)]
fn is_next_among(matching: &Matching, key: Key) -> bool {
    let posted = matching.posted.borrow();
    // A receive with wildcards accepts messages of many keys, and what is posted for one of them would have to be looked for among all.
    let first = match key.is_exact() {
        true => posted.peek(key).is_none(),
        false => posted.is_empty(),
    };
    first && matching.unexpected.borrow_mut().peek(key).is_none()
}

impl Ob1 {
    /// Sends a short message at once; false if the general path has to see to it, and nothing has happened.
    #[inline]
    pub fn try_send(
        &self,
        context: Context,
        source: i32,
        proc: ProcId,
        tag: i32,
        data: &[u8],
    ) -> bool {
        let Some(peer) = self.peers.get(proc as usize).and_then(|cell| cell.get()) else {
            return false;
        };
        data.len() < peer.eager_below.get()
            && peer.lets_through(data.len())
            && peer
                .send(
                    wire::EAGER,
                    wire::match_header(context, source, tag),
                    Payload::Bytes(data),
                )
                .is_ok()
    }

    /// Begins a blocking receive in the slot; false if the general path has to see to it.
    #[inline]
    pub fn try_recv_here(
        &self,
        matching: &Matching,
        receiver: i32,
        key: Key,
        buf: RecvBytes,
    ) -> bool {
        let slot = &self.slot;
        if slot.stage.get() != Stage::Free || !is_next(matching, key) {
            return false;
        }
        slot.context.set(matching.context);
        slot.key.set(key);
        slot.receiver.set(receiver);
        slot.buf.set(buf);
        slot.stage.set(Stage::Waiting);
        true
    }

    /// Whether the receive in the slot has ended.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.slot.landed.get() || self.slot.stage.get() == Stage::Moved && self.moved_is_complete()
    }

    #[cold]
    fn moved_is_complete(&self) -> bool {
        let moved = self.slot.moved.borrow();
        moved.as_ref().is_none_or(|req| req.is_complete())
    }

    /// The outcome of the receive in the slot, which is free again.
    #[inline]
    pub fn end_here(&self) -> Outcome {
        let slot = &self.slot;
        slot.landed.set(false);
        if slot.stage.replace(slot.resting.get()) != Stage::Here {
            return self.end_moved();
        }
        let (key, bytes) = slot.message.get();
        let capacity = slot.buf.get().len() as u64;
        if bytes > capacity {
            return Err(recv::truncated(slot.receiver.get(), key, bytes, capacity).into());
        }
        Ok(recv::status(key, bytes))
    }

    #[cold]
    fn end_moved(&self) -> Outcome {
        match self.slot.moved.take() {
            Some(req) => self.requests.finish(&req),
            None => Ok(Status::EMPTY),
        }
    }

    /// What the receive in the slot waits for: what the state page tells.
    pub fn about_here(&self) -> (Context, Key, u64) {
        let bytes = self.slot.buf.get().len() as u64;
        (self.slot.context.get(), self.slot.key.get(), bytes)
    }

    /// A short message for the slot has come.
    #[inline]
    pub(super) fn land(&self, key: Key, data: &[u8]) {
        self.slot.buf.get().fill(data);
        self.slot.message.set((key, data.len() as u64));
        self.slot.stage.set(Stage::Here);
        self.slot.landed.set(true);
    }

    /// A long message for the slot has come: it becomes a request.
    #[cold]
    pub(super) fn move_on(&self, matching: &Rc<Matching>) -> Req {
        let slot = &self.slot;
        let body = RecvBody::matched(
            slot.buf.get().into(),
            slot.key.get(),
            slot.receiver.get(),
            matching.clone(),
        );
        let req = self.requests.begin(Body::Recv(body));
        *slot.moved.borrow_mut() = Some(req.clone());
        slot.stage.set(Stage::Moved);
        req
    }
}
