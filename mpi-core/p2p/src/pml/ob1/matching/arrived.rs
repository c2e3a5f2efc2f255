//! An unexpected message (a message that arrived before its receive was posted), and its data received so far.

use super::super::described::Described;
use super::super::wire::Rendezvous;
use crate::btl::ProcId;
use crate::request::id::ReqId;
use std::cell::RefCell;
use std::rc::Rc;

/// An unexpected message: its sender, its content received so far, and the description of its type.
pub(crate) struct Arrived {
    pub(in crate::pml::ob1) from: ProcId,
    pub(in crate::pml::ob1) content: Content,
    /// The sender's description of datatype and count, if type signatures are compared.
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

/// The part of an unexpected message that has arrived.
pub(crate) enum Content {
    Eager(Vec<u8>),
    Rendezvous(Rendezvous),
    /// An announced message of the eager pipeline; its fragments follow.
    Followed(Rc<Kept>),
}

impl Content {
    /// Returns the length of the message in bytes.
    pub(in crate::pml::ob1) fn bytes(&self) -> u64 {
        match self {
            Content::Eager(data) => data.len() as u64,
            Content::Rendezvous(r) => r.bytes,
            Content::Followed(kept) => kept.bytes,
        }
    }

    /// Returns true if the message's data are buffered in this process and counted in the flow control's account.
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
    /// Creates the state of a message of `bytes` bytes before its first fragment arrives.
    pub(in crate::pml::ob1) fn new(sender: ReqId, bytes: u64) -> Kept {
        Kept {
            bytes,
            sender,
            data: RefCell::default(),
        }
    }

    /// Returns the length of the message in bytes.
    pub(in crate::pml::ob1) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the ID of the sender's request; the message's fragments contain this ID.
    pub(in crate::pml::ob1) fn sender(&self) -> ReqId {
        self.sender
    }

    /// Appends the next fragment.
    /// The first call allocates a buffer for the whole message by `memory`.
    pub(in crate::pml::ob1) fn append(&self, piece: &[u8], memory: impl FnOnce(usize) -> Vec<u8>) {
        let mut data = self.data.borrow_mut();
        if data.is_empty() {
            *data = memory(self.bytes as usize);
        }
        data.extend_from_slice(piece);
    }

    /// Removes and returns the data received so far, for a receive that has matched the message.
    pub(in crate::pml::ob1) fn take(&self) -> Vec<u8> {
        self.data.take()
    }
}
