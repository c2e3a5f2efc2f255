//! What a receive knows of a message whose data come piece by piece.

use super::protocol_choice::TimedTransfer;
use super::shared_copy::SharedCopy;
use crate::btl::{Header, ProcId};
use crate::pml::error::PmlError;
use crate::request::id::ReqId;

pub(super) struct Incoming {
    from: ProcId,
    received: u64,
    wanted: u64,
    /// The send that waits for our word that all has come.
    sender: Option<ReqId>,
    /// Reported when all that fits has come.
    truncated: Option<PmlError>,
    /// Set while both sides work on one copy.
    shared: Option<SharedCopy>,
    /// Set if it is measured how fast it comes.
    transfer: Option<TimedTransfer>,
}

/// What is left to do when all has come that fits.
pub(super) struct Ended {
    pub(super) truncated: Option<PmlError>,
    pub(super) transfer: Option<TimedTransfer>,
}

impl Incoming {
    /// A message that nothing has come of yet.
    pub(super) fn new(from: ProcId, wanted: u64, truncated: Option<PmlError>) -> Incoming {
        Incoming {
            from,
            received: 0,
            wanted,
            sender: None,
            truncated,
            shared: None,
            transfer: None,
        }
    }

    /// The same, with the send that waits for our word, the copy that both sides work on, and the measurement.
    pub(super) fn with(
        self,
        sender: Option<ReqId>,
        shared: Option<SharedCopy>,
        transfer: Option<TimedTransfer>,
    ) -> Incoming {
        Incoming {
            sender,
            shared,
            transfer,
            ..self
        }
    }

    pub(super) fn from(&self) -> ProcId {
        self.from
    }

    /// How many bytes the receive takes.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Whether `len` bytes of a fragment of `from` are a part of it.
    pub(super) fn takes(&self, from: ProcId, header: Header, len: usize) -> bool {
        let end = header[1].checked_add(len as u64);
        self.from == from && end.is_some_and(|end| end <= self.wanted)
    }

    /// So many bytes more have come; what is left to do if those were the last.
    pub(super) fn count(&mut self, len: usize) -> Option<Ended> {
        self.received += len as u64;
        let over = self.received >= self.wanted;
        over.then(|| Ended {
            truncated: self.truncated.take(),
            transfer: self.transfer.take(),
        })
    }

    /// The send that waits for our word, which the caller gives.
    pub(super) fn take_sender(&mut self) -> Option<ReqId> {
        self.sender.take()
    }

    /// The copy that both sides work on.
    pub(super) fn shared(&mut self) -> Option<&mut SharedCopy> {
        self.shared.as_mut()
    }

    /// Whether there is one.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    pub(super) fn take_shared(&mut self) -> Option<SharedCopy> {
        self.shared.take()
    }

    pub(super) fn put_shared(&mut self, shared: SharedCopy) {
        self.shared = Some(shared);
    }

    pub(super) fn transfer(&self) -> Option<&TimedTransfer> {
        self.transfer.as_ref()
    }

    /// What comes now does not come the way that is measured.
    pub(super) fn stop_measuring(&mut self) {
        self.transfer = None;
    }
}
