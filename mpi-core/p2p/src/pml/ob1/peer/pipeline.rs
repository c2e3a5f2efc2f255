//! What is known of the eager pipeline between this process and a peer.

use super::super::matching::arrived::Kept;
use crate::btl::Header;
use crate::request::id::ReqId;
use crate::trial::order_of;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Of so many messages that are not short the last few ask, enough to fill a window or two with nothing else, so that their receiver goes on measuring.
pub const ROUND: u16 = 8192;
pub const ASKING: u16 = 128;

#[derive(Default)]
pub struct Pipeline {
    /// By order of size: whether the peer wants data of our messages to follow.
    wanted: Cell<u16>,
    /// Counts messages that are not short.
    turn: Cell<u16>,
    /// By order of size: whether the peer has been told that data of its messages are to follow.
    told: Cell<u16>,
    /// Messages of the peer of which pieces are still to come, in the order in which they were announced.
    coming: RefCell<Vec<Coming>>,
}

/// A message of which pieces are still to come.
struct Coming {
    sender: ReqId,
    bytes: u64,
    come: u64,
    to: Destination,
}

/// Where the pieces of a message belong.
#[derive(Clone)]
pub enum Destination {
    Receive(ReqId),
    Kept(Rc<Kept>),
}

impl Pipeline {
    /// Whether the peer wants the data of a message of so many bytes unasked; every once in a while a few ask all the same.
    pub fn is_wanted(&self, bytes: u64) -> bool {
        self.wanted.get() & bit(bytes) != 0 && self.turn.get() < ROUND - ASKING
    }

    /// A message that is not short has been sent, or has asked.
    pub fn count(&self) {
        self.turn.set((self.turn.get() + 1) % ROUND);
    }

    /// The peer says whether it wants messages of an order of size unasked.
    pub fn set_wanted(&self, order: u64, wanted: bool) {
        let others = self.wanted.get() & !(1 << order);
        self.wanted.set(others | u16::from(wanted) << order);
    }

    /// What the peer has to be told of messages of so many bytes, that their data are `to_follow` or not, unless it knows.
    pub fn advice(&self, bytes: u64, to_follow: bool) -> Option<Header> {
        let (told, bit) = (self.told.get(), bit(bytes));
        if (told & bit != 0) == to_follow {
            return None;
        }
        self.told.set(told ^ bit);
        Some([order_of(bytes) as u64, u64::from(to_follow)])
    }

    /// The peer has announced a message whose pieces are still to come.
    pub fn expect(&self, kept: Rc<Kept>) {
        self.coming.borrow_mut().push(Coming {
            sender: kept.sender(),
            bytes: kept.bytes(),
            come: 0,
            to: Destination::Kept(kept),
        });
    }

    /// The receive of such a message is there; what is still to come belongs to it.
    pub fn redirect(&self, sender: ReqId, receive: ReqId) {
        let mut coming = self.coming.borrow_mut();
        if let Some(rest) = coming.iter_mut().find(|c| c.sender == sender) {
            rest.to = Destination::Receive(receive);
        }
    }

    /// Where a piece belongs, if it is the next one of a message that was announced.
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
