//! A message that came before its receive, as far as it has come.

use super::super::wire::Rendezvous;
use crate::btl::ProcId;
use crate::request::id::ReqId;
use std::cell::RefCell;
use std::rc::Rc;

/// A message without a receive.
pub(crate) struct Arrived {
    pub(in crate::pml::ob1) from: ProcId,
    pub(in crate::pml::ob1) content: Content,
}

/// What there is of it.
pub(crate) enum Content {
    Eager(Vec<u8>),
    Rendezvous(Rendezvous),
    /// Its data are on their way.
    Followed(Rc<Kept>),
}

impl Content {
    /// The length of the message.
    pub(in crate::pml::ob1) fn bytes(&self) -> u64 {
        match self {
            Content::Eager(data) => data.len() as u64,
            Content::Rendezvous(r) => r.bytes,
            Content::Followed(kept) => kept.bytes,
        }
    }

    /// Whether its data are kept here, unasked.
    pub(in crate::pml::ob1) fn is_charged(&self) -> bool {
        matches!(self, Content::Eager(_) | Content::Followed(_))
    }
}

/// A message of the eager pipeline without a receive, and what has come of it.
pub(crate) struct Kept {
    bytes: u64,
    sender: ReqId,
    data: RefCell<Vec<u8>>,
}

impl Kept {
    /// A message of `bytes` bytes of which nothing has come yet.
    pub(in crate::pml::ob1) fn new(sender: ReqId, bytes: u64) -> Kept {
        Kept {
            bytes,
            sender,
            data: RefCell::default(),
        }
    }

    /// The length of the message.
    pub(in crate::pml::ob1) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The request of its sender, which the pieces name.
    pub(in crate::pml::ob1) fn sender(&self) -> ReqId {
        self.sender
    }

    /// Keeps the next piece; `memory` provides for the whole message when the first one comes.
    pub(in crate::pml::ob1) fn append(&self, piece: &[u8], memory: impl FnOnce(usize) -> Vec<u8>) {
        let mut data = self.data.borrow_mut();
        if data.is_empty() {
            *data = memory(self.bytes as usize);
        }
        data.extend_from_slice(piece);
    }

    /// What has come so far, for the receive that is there now.
    pub(in crate::pml::ob1) fn take(&self) -> Vec<u8> {
        self.data.take()
    }
}
