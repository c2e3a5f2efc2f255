//! The bound on messages that have come and that no receive has asked for.
//!
//! A rank that waits for one message has to read on until it comes, and keeps every eager message before it.
//! Promise: what it keeps so of other processes stays near [`Config::unexpected_max`](super::Config) however much they send;
//! a message beyond it costs the receiver an announcement of a few words, which its sender's request pays for with more.
//!
//! **Receiver.** [`Ob1::charge`] charges an eager message that found no receive, [`Ob1::discharge`] takes the charge back when a receive has come.
//! A peer that sends while more than the bound is kept is told to ask first ([`wire::THROTTLE`]); all are told that they need not any more when half of it is left.
//! That word overtakes whatever else waits for the peer, or two ranks that flood each other would hear it behind their floods.
//!
//! **Sender.** The eager limit that each send compares its size with is a cell of the [`Peer`](super::Peer): an order to ask first sets it to nothing.
//! A sender that never waits would not hear the order, so it looks at its transports once in [`LOOK`] bytes ([`Ob1::poll_after_eager`]).
//! So a peer may send [`LOOK`] bytes, and what lies in a ring or a socket, beyond the bound.
//!
//! What a process sends to itself is not bounded: it could only wait for itself.
//!
//! A message that asks first is announced in its turn, so matching sees the same order.
//! Withholding announcements as well would be wrong: a receive may be posted for the last of them first (MPI 5.0, section 3.5, progress).

use super::{Ob1, Peer, wire};
use crate::btl::{Header, Payload, ProcId, SendError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a kept message takes besides its data: its place in the queues and what the allocator adds.
pub const COST: usize = 128;

/// A sender looks for what its peer has to say once in so many bytes, of which each message takes as many as it would if it were kept.
/// A look costs as much as a few short messages.
pub const LOOK: isize = 1 << 20;

/// What is kept of others' messages, at the receiver.
#[derive(Default)]
pub(super) struct UnexpectedMemory {
    /// Bytes, and [`COST`] for each message.
    kept: Cell<u64>,
    most: Cell<u64>,
    /// The peers that are to ask first.
    asking: RefCell<Vec<Rc<Peer>>>,
}

impl Ob1 {
    /// Memory held by messages of others that no receive has asked for, now and at its highest, in bytes.
    pub fn unexpected_bytes(&self) -> (u64, u64) {
        (self.charge.kept.get(), self.charge.most.get())
    }

    /// An eager message of `bytes` bytes is kept.
    pub(super) fn charge(&self, from: ProcId, bytes: usize) {
        if from == self.bml.me() {
            return;
        }
        let charge = &self.charge;
        let kept = charge.kept.get() + (COST + bytes) as u64;
        charge.kept.set(kept);
        charge.most.set(charge.most.get().max(kept));
        if kept > self.config.unexpected_max
            && let Ok(peer) = self.peer(from)
            && !peer.throttled.replace(true)
        {
            charge.asking.borrow_mut().push(peer.clone());
            self.send_throttle(&peer);
        }
    }

    /// A kept message of `bytes` bytes has met its receive, or its context has gone.
    pub(super) fn discharge(&self, from: ProcId, bytes: usize) {
        if from == self.bml.me() {
            return;
        }
        let charge = &self.charge;
        let kept = charge.kept.get().saturating_sub((COST + bytes) as u64);
        charge.kept.set(kept);
        if kept <= self.config.unexpected_max / 2 && !charge.asking.borrow().is_empty() {
            for peer in charge.asking.take() {
                peer.throttled.set(false);
                self.send_throttle(&peer);
            }
        }
    }

    /// Tells a peer whether it is to ask first, unless it knows; now, or before anything else as soon as there is room.
    pub(super) fn send_throttle(&self, peer: &Rc<Peer>) {
        let asks = peer.throttled.get();
        if peer.throttle_sent.get() == asks {
            return;
        }
        match peer.send(
            wire::THROTTLE,
            [u64::from(asks), 0],
            Payload::Bytes(&[0; 8]),
        ) {
            Err(SendError::WouldBlock) => self.congest(peer),
            // One that has gone sends no more.
            Ok(()) | Err(SendError::PeerGone | SendError::TooLong { .. }) => {
                peer.throttle_sent.set(asks);
            }
        }
    }

    /// A peer that holds too much says that everything is to ask first, or that it need not any more.
    pub(super) fn on_throttle(&self, from: ProcId, header: Header) {
        let (Ok(peer), Ok(asks)) = (self.peer(from), u8::try_from(header[0])) else {
            return self.nonsense(from, "an impossible order of flow control");
        };
        peer.unconnected.set(false);
        match asks {
            0 => peer.eager_below.set(peer.limits.eager + 1),
            1 => peer.eager_below.set(0),
            _ => self.nonsense(from, "an impossible order of flow control"),
        }
    }

    /// Much has been sent unasked: hears what the peer has to say of it.
    #[cold]
    pub(super) fn poll_after_eager(&self, peer: &Peer) {
        peer.unpolled_bytes.set(LOOK);
        self.bml.attend();
        self.bml.progress(self);
    }
}
