//! The bound on messages that have come and that no receive has asked for.
//!
//! A rank that waits for one message has to read on until it comes, and keeps every eager message before it.
//! Promise: what it keeps so of other processes stays near [`Config::unexpected_max`](super::config::Config) however much they send;
//! a message beyond it costs the receiver an announcement of a few words, which its sender's request pays for with more.
//!
//! **Receiver.** [`UnexpectedMemory::charge`] charges an eager message that found no receive, [`UnexpectedMemory::discharge`] takes the charge back when a receive has come.
//! A peer that sends while more than the bound is kept is told to ask first ([`wire::THROTTLE`]); all are told that they need not any more when half of it is left.
//! That word overtakes whatever else waits for the peer, or two ranks that flood each other would hear it behind their floods.
//!
//! **Sender.** An order to ask first withdraws the credit of the [`Peer`] ([`Credit`](super::peer)).
//! So a peer may send what its credit is (`LOOK` bytes), and what lies in a ring or a socket, beyond the bound.
//!
//! What a process sends to itself is not bounded: it could only wait for itself.
//!
//! A message that asks first is announced in its turn, so matching sees the same order.
//! Withholding announcements as well would be wrong: a receive may be posted for the last of them first (MPI 5.0, section 3.5, progress).

use super::buffer_pool::BufferPool;
use super::core::{Core, Handled, Nonsense};
use super::links::Links;
use super::peer::Peer;
use super::wire;
use crate::btl::{Header, Payload, ProcId, SendError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::peer::COST;

/// What is kept of others' messages, at the receiver.
#[derive(Default)]
pub(super) struct UnexpectedMemory {
    /// Bytes, and [`COST`] for each message.
    kept: Cell<u64>,
    most: Cell<u64>,
    /// The peers that are to ask first.
    asking: RefCell<Vec<Rc<Peer>>>,
    pool: BufferPool,
}

impl UnexpectedMemory {
    /// Memory held by messages of others that no receive has asked for, now and at its highest, in bytes.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.kept.get(), self.most.get())
    }

    /// Empty memory for a message of `len` bytes.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        self.pool.take(len)
    }

    /// Takes memory back.
    pub(super) fn give(&self, memory: Vec<u8>) {
        self.pool.give(memory);
    }

    /// An eager message of `bytes` bytes is kept.
    pub(super) fn charge(&self, core: &Core, from: ProcId, bytes: usize) {
        let links = core.links();
        if from == links.me() {
            return;
        }
        let kept = self.kept.get() + (COST + bytes) as u64;
        self.kept.set(kept);
        self.most.set(self.most.get().max(kept));
        if kept > core.config().unexpected_max
            && let Ok(peer) = links.peer(from)
            && !peer.throttle().set(true)
        {
            self.asking.borrow_mut().push(peer.clone());
            send_throttle(links, &peer);
        }
    }

    /// A kept message of `bytes` bytes has met its receive, or its context has gone.
    pub(super) fn discharge(&self, core: &Core, from: ProcId, bytes: usize) {
        let links = core.links();
        if from == links.me() {
            return;
        }
        let kept = self.kept.get().saturating_sub((COST + bytes) as u64);
        self.kept.set(kept);
        if kept <= core.config().unexpected_max / 2 && !self.asking.borrow().is_empty() {
            for peer in self.asking.take() {
                peer.throttle().set(false);
                send_throttle(links, &peer);
            }
        }
    }
}

/// Tells a peer whether it is to ask first, unless it knows; now, or before anything else as soon as there is room.
pub(super) fn send_throttle(links: &Links, peer: &Rc<Peer>) {
    let Some(asks) = peer.throttle().news() else {
        return;
    };
    match peer.send(
        wire::THROTTLE,
        [u64::from(asks), 0],
        Payload::Bytes(&[0; 8]),
    ) {
        Err(SendError::WouldBlock) => links.congest(peer),
        // One that has gone sends no more.
        Ok(()) | Err(SendError::PeerGone | SendError::TooLong { .. }) => {
            peer.throttle().was_told(asks);
        }
    }
}

/// A peer that holds too much says that everything is to ask first, or that it need not any more.
pub(super) fn on_throttle(core: &Core, from: ProcId, header: Header) -> Handled {
    const IMPOSSIBLE: Nonsense = Nonsense("an impossible order of flow control");
    let (Ok(peer), Ok(asks)) = (core.links().peer(from), u8::try_from(header[0])) else {
        return Err(IMPOSSIBLE);
    };
    peer.credit().was_heard();
    match asks {
        0 | 1 => peer.credit().withdraw(asks == 1),
        _ => return Err(IMPOSSIBLE),
    }
    Ok(())
}
