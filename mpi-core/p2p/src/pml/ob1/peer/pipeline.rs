//! The state of the eager pipeline between this process and a peer.

use super::super::matching::arrived::Kept;
use crate::btl::Header;
use crate::request::id::ReqId;
use crate::trial::order_of;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Of every `ROUND` messages above the eager limit, the last `ASKING` use rendezvous instead of the eager pipeline.
/// `ASKING` messages contain at least one complete window of 64 messages, so the receiver continues to measure both protocols.
pub const ROUND: u16 = 8192;
pub const ASKING: u16 = 128;

#[derive(Default)]
pub struct Pipeline {
    /// One bit per size class: set if the peer requests the eager pipeline for this process's
    /// messages.
    wanted: Cell<u16>,
    /// The number of messages above the eager limit, modulo `ROUND`.
    turn: Cell<u16>,
    /// One bit per size class: set if this process has requested the eager pipeline for the
    /// peer's messages.
    told: Cell<u16>,
    /// The peer's announced messages whose fragments have not all arrived, in order of announcement.
    coming: RefCell<Vec<Coming>>,
}

/// An announced message whose fragments have not all arrived.
struct Coming {
    sender: ReqId,
    bytes: u64,
    come: u64,
    to: Destination,
}

/// The destination of a message's fragments: its receive, or the buffer of an unexpected message.
#[derive(Clone)]
pub enum Destination {
    Receive(ReqId),
    Kept(Rc<Kept>),
}

impl Pipeline {
    /// Returns true if a message of `bytes` bytes uses the eager pipeline: the peer requests it for the size class,
    /// and the message is not among the last `ASKING` of `ROUND` messages, which use rendezvous.
    pub fn is_wanted(&self, bytes: u64) -> bool {
        self.wanted.get() & bit(bytes) != 0 && self.turn.get() < ROUND - ASKING
    }

    /// Counts a message above the eager limit.
    pub fn count(&self) {
        self.turn.set((self.turn.get() + 1) % ROUND);
    }

    /// Handles EAGER_MODE: `wanted` is true if the peer requests the eager pipeline for the size class `order`.
    pub fn set_wanted(&self, order: u64, wanted: bool) {
        let others = self.wanted.get() & !(1 << order);
        self.wanted.set(others | u16::from(wanted) << order);
    }

    /// Returns the EAGER_MODE header for messages of `bytes` bytes,
    /// or `None` if this mode was already sent to the peer.
    /// `to_follow` is true to request the eager pipeline.
    pub fn advice(&self, bytes: u64, to_follow: bool) -> Option<Header> {
        let (told, bit) = (self.told.get(), bit(bytes));
        if (told & bit != 0) == to_follow {
            return None;
        }
        self.told.set(told ^ bit);
        Some([order_of(bytes) as u64, u64::from(to_follow)])
    }

    /// Adds an announced message; its fragments will arrive.
    pub fn expect(&self, kept: Rc<Kept>) {
        self.coming.borrow_mut().push(Coming {
            sender: kept.sender(),
            bytes: kept.bytes(),
            come: 0,
            to: Destination::Kept(kept),
        });
    }

    /// Sets the receive as the destination of the remaining fragments of an announced message.
    pub fn redirect(&self, sender: ReqId, receive: ReqId) {
        let mut coming = self.coming.borrow_mut();
        if let Some(rest) = coming.iter_mut().find(|c| c.sender == sender) {
            rest.to = Destination::Receive(receive);
        }
    }

    /// Returns the destination of a fragment if it is the next fragment of an announced message, otherwise `None`.
    pub fn place(&self, [sender, offset]: Header, len: u64) -> Option<Destination> {
        let mut all = self.coming.borrow_mut();
        let at = all.iter().position(|coming| coming.sender.0 == sender)?;
        let coming = &mut all[at];
        let end = offset.checked_add(len)?;
        if offset != coming.come || end > coming.bytes {
            return None;
        }
        coming.come = end;
        match end == coming.bytes {
            true => Some(all.remove(at).to),
            false => Some(coming.to.clone()),
        }
    }
}

fn bit(bytes: u64) -> u16 {
    1 << order_of(bytes)
}
