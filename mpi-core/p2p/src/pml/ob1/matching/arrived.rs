//! An unexpected message, which arrived before its receive, and the data received so far.

use super::super::described::Described;
use super::super::wire::Rendezvous;
use crate::btl::ProcId;
use crate::request::id::ReqId;
use std::cell::RefCell;
use std::rc::Rc;

/// An unexpected message.
pub(crate) struct Arrived {
    pub(in crate::pml::ob1) from: ProcId,
    pub(in crate::pml::ob1) content: Content,
    /// The sender's description of datatype and count, if types are compared.
    pub(in crate::pml::ob1) types: Option<Box<Described>>,
}

impl Arrived {
    pub(in crate::pml::ob1) fn new(from: ProcId, content: Content) -> Arrived {
        Arrived {
            from,
            content,
            types: None,
        }
    }
}

/// The received part of an unexpected message.
pub(crate) enum Content {
    Eager(Vec<u8>),
    Rendezvous(Rendezvous),
    /// A message of the eager pipeline: its fragments follow.
    Followed(Rc<Kept>),
}

impl Content {
    /// Returns the length of the message.
    pub(in crate::pml::ob1) fn bytes(&self) -> u64 {
        match self {
            Content::Eager(data) => data.len() as u64,
            Content::Rendezvous(r) => r.bytes,
            Content::Followed(kept) => kept.bytes,
        }
    }

    /// Returns true if the message's data are buffered in this process and charged to the sender.
    pub(in crate::pml::ob1) fn is_charged(&self) -> bool {
        matches!(self, Content::Eager(_) | Content::Followed(_))
    }
}

/// An unexpected message of the eager pipeline, and the data received so far.
pub(crate) struct Kept {
    bytes: u64,
    sender: ReqId,
    data: RefCell<Vec<u8>>,
}

impl Kept {
    /// Creates a message of `bytes` bytes before its first fragment.
    pub(in crate::pml::ob1) fn new(sender: ReqId, bytes: u64) -> Kept {
        Kept {
            bytes,
            sender,
            data: RefCell::default(),
        }
    }

    /// Returns the length of the message.
    pub(in crate::pml::ob1) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the sender's request, which the message's fragments name.
    pub(in crate::pml::ob1) fn sender(&self) -> ReqId {
        self.sender
    }

    /// Appends the next fragment.
    /// At the first fragment, `memory` allocates a buffer for the whole message.
    pub(in crate::pml::ob1) fn append(&self, piece: &[u8], memory: impl FnOnce(usize) -> Vec<u8>) {
        let mut data = self.data.borrow_mut();
        if data.is_empty() {
            *data = memory(self.bytes as usize);
        }
        data.extend_from_slice(piece);
    }

    /// Takes the data received so far, for a receive that has matched.
    pub(in crate::pml::ob1) fn take(&self) -> Vec<u8> {
        self.data.take()
    }
}
