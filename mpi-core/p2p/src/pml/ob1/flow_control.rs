//! Flow control of unexpected messages: a limit for the memory of messages that match no posted receive yet.
//!
//! A rank that waits for one message also receives all earlier messages, and buffers those that are eager.
//! Guarantee: the buffered bytes of other processes stay near
//! [`Config::unexpected_max`](super::config::Config), no matter how much these processes send.
//! Beyond the limit, the receiver stores only a message's header; the data stay at the sender.
//!
//! **Receiver.** [`UnexpectedMemory::charge`] adds an eager message that matched no receive to the account;
//! [`UnexpectedMemory::discharge`] subtracts the message when a receive has matched it.
//! If a peer's message arrives while more than the limit is buffered, the receiver sends [`wire::THROTTLE`],
//! and the peer uses rendezvous.
//! All these peers are released when the buffered bytes have fallen to half of the limit.
//! THROTTLE overtakes all messages that are queued for the peer. Otherwise two ranks that flood
//! each other would receive THROTTLE only after the flood.
//!
//! **Sender.** THROTTLE withdraws the credit of the [`Peer`] ([`Credit`](super::peer)).
//! So a peer can exceed the limit by its credit (`LOOK` bytes) and by the capacity of a ring or a socket.
//!
//! Messages of a process to itself are not limited: the process would wait for itself.
//!
//! A throttled message is announced in its place in the order of sending, so the matching order does not change.
//! The announcements themselves must not be delayed: the program may post the receive for the last of the messages first
//! (MPI 5.0, section 3.5, progress).

use super::buffer_pool::BufferPool;
use super::core::{Core, HandlerResult, ProtocolError};
use super::links::Links;
use super::peer::Peer;
use super::wire;
use crate::btl::{Header, Payload, ProcId, SendError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::peer::COST;

/// The receiver's account of unexpected messages of other processes.
#[derive(Default)]
pub(super) struct UnexpectedMemory {
    /// The number of buffered bytes, plus [`COST`] for each message.
    kept: Cell<u64>,
    most: Cell<u64>,
    /// The throttled peers. When the buffered bytes have fallen, THROTTLE is sent to them to permit eager messages again.
    asking: RefCell<Vec<Rc<Peer>>>,
    pool: BufferPool,
}

impl UnexpectedMemory {
    /// Returns the present and the highest memory of unexpected messages of other processes, in bytes.
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

    /// Adds a buffered eager message of `bytes` bytes to the account; throttles its sender beyond the limit.
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

    /// Subtracts a buffered message of `bytes` bytes that has matched its receive, or whose context was freed.
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

/// Sends THROTTLE to a peer if the throttle state has changed since the last THROTTLE. The message is sent immediately,
/// or before all queued messages when the transport has space again.
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
        // A lost peer sends no more messages, so it need not be throttled.
        Ok(()) | Err(SendError::PeerGone | SendError::TooLong { .. }) => {
            peer.throttle().was_told(asks);
        }
    }
}

/// Handles THROTTLE of a peer: it requests rendezvous for all messages (1), or permits eager messages again (0).
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
