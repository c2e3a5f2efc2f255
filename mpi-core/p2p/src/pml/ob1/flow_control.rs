//! Flow control of unexpected messages: the bound on messages that have arrived and match no receive yet.
//!
//! A rank that waits for one message also receives all earlier messages, and buffers eager ones.
//! Promise: the buffered bytes of other processes stay near
//! [`Config::unexpected_max`](super::config::Config), however much these processes send.
//! A message beyond the bound costs the receiver one header; the sender holds the data.
//!
//! **Receiver.** [`UnexpectedMemory::charge`] charges an eager message that matched no receive, [`UnexpectedMemory::discharge`] removes the charge when a receive has matched it.
//! A peer that sends while more than the bound is buffered is notified to use rendezvous ([`wire::THROTTLE`]); all such peers are released when the buffered bytes have fallen to half of the bound.
//! THROTTLE overtakes all messages that are queued for the peer; otherwise two ranks that flood
//! each other would receive THROTTLE only after the flood.
//!
//! **Sender.** THROTTLE withdraws the credit of the [`Peer`] ([`Credit`](super::peer)).
//! So a peer may exceed the bound by its credit (`LOOK` bytes) and by what a ring or a socket holds.
//!
//! Messages of a process to itself are not bounded: the process would wait for itself.
//!
//! A throttled message is announced in its position, so matching sees the same order.
//! Announcements must not be withheld as well: a receive may be posted for the last of the messages first (MPI 5.0, section 3.5, progress).

use super::buffer_pool::BufferPool;
use super::core::{Core, HandlerResult, ProtocolError};
use super::links::Links;
use super::peer::Peer;
use super::wire;
use crate::btl::{Header, Payload, ProcId, SendError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::peer::COST;

/// The receiver's account of other processes' unexpected messages.
#[derive(Default)]
pub(super) struct UnexpectedMemory {
    /// The buffered bytes, plus [`COST`] for each message.
    kept: Cell<u64>,
    most: Cell<u64>,
    /// The throttled peers.
    asking: RefCell<Vec<Rc<Peer>>>,
    pool: BufferPool,
}

impl UnexpectedMemory {
    /// Returns the current and the maximum memory of other processes' unexpected messages, in bytes.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.kept.get(), self.most.get())
    }

    /// Returns an empty buffer for a message of `len` bytes.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        self.pool.take(len)
    }

    /// Returns a buffer to the pool.
    pub(super) fn give(&self, memory: Vec<u8>) {
        self.pool.give(memory);
    }

    /// Charges an eager message of `bytes` bytes that is buffered.
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

    /// Discharges a buffered message of `bytes` bytes that has matched its receive, or whose context was freed.
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

/// Sends THROTTLE to a peer if the throttle state has changed since the last THROTTLE: at once,
/// or as the first message when the transport has space again.
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
        // A lost peer sends nothing more.
        Ok(()) | Err(SendError::PeerGone | SendError::TooLong { .. }) => {
            peer.throttle().was_told(asks);
        }
    }
}

/// Handles THROTTLE: the peer wants every message to use rendezvous, or no longer does.
pub(super) fn on_throttle(core: &Core, from: ProcId, header: Header) -> HandlerResult {
    const IMPOSSIBLE: ProtocolError = ProtocolError("an impossible order of flow control");
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
