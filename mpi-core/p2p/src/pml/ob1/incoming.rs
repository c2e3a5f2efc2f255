//! The state of a receive whose message arrives in several parts.

use super::matching::Key;
use super::protocol_choice::TimedTransfer;
use super::shared_copy::SharedCopy;
use crate::btl::{Header, ProcId};
use crate::pml::error::PmlError;
use crate::request::id::ReqId;
use mpi_base::accelerator::twins::Part;
use std::ops::Range;

pub(super) struct Incoming {
    from: ProcId,
    received: u64,
    wanted: u64,
    /// The sender's request, which completes when FIN arrives.
    sender: Option<ReqId>,
    /// The truncation error of a message longer than the buffer; reported when the buffer is full.
    truncated: Option<PmlError>,
    /// Set during a cooperative copy, in which sender and receiver each copy parts of the message.
    shared: Option<SharedCopy>,
    /// The transport's ID of the active remote read.
    read: Option<u64>,
    /// The transport's ID of the transfer for which the buffer is posted.
    place: Option<u64>,
    /// Set if the duration of the transfer is measured.
    transfer: Option<TimedTransfer>,
    /// The message's key and length, if it was announced.
    announced: Option<(Key, u64)>,
    /// The device memory of which the receive buffer is the host staging copy.
    device: Option<Part>,
}

/// Values that the caller must process after all bytes that fit into the buffer have arrived.
pub(super) struct Ended {
    pub(super) truncated: Option<PmlError>,
    pub(super) transfer: Option<TimedTransfer>,
    pub(super) announced: Option<(Key, u64)>,
}

impl Incoming {
    /// Creates the state of a receive before the first bytes of its message arrive.
    pub(super) fn new(from: ProcId, wanted: u64, truncated: Option<PmlError>) -> Incoming {
        Incoming {
            from,
            received: 0,
            wanted,
            sender: None,
            truncated,
            shared: None,
            read: None,
            place: None,
            transfer: None,
            announced: None,
            device: None,
        }
    }

    /// Records that the message was announced with this key and length.
    pub(super) fn announced(self, key: Key, bytes: u64) -> Incoming {
        Incoming {
            announced: Some((key, bytes)),
            ..self
        }
    }

    /// Sets the device memory to which the received bytes are copied.
    #[cold]
    pub(super) fn set_device(&mut self, device: Option<Part>) {
        self.device = device;
    }

    /// Returns the device memory to which the received bytes are copied.
    pub(super) fn device(&self) -> Option<&Part> {
        self.device.as_ref()
    }

    /// Adds the sender's request and the ID of the active remote read.
    pub(super) fn reading(self, sender: ReqId, read: u64) -> Incoming {
        Incoming {
            sender: Some(sender),
            read: Some(read),
            ..self
        }
    }

    /// Returns the ID of the active remote read.
    pub(super) fn read(&self) -> Option<u64> {
        self.read
    }

    /// Replaces the ID of a remote read that has ended by that of the next one.
    pub(super) fn set_read(&mut self, read: u64) {
        self.read = Some(read);
    }

    /// Removes and returns the ID of the remote read.
    pub(super) fn end_read(&mut self) -> Option<u64> {
        self.read.take()
    }

    /// Stores the ID of the transfer for which the buffer is posted.
    pub(super) fn set_place(&mut self, place: u64) {
        self.place = Some(place);
    }

    /// Returns the ID of the transfer for which the buffer is posted.
    pub(super) fn place(&self) -> Option<u64> {
        self.place
    }

    /// Removes and returns the ID of the transfer.
    pub(super) fn end_place(&mut self) -> Option<u64> {
        self.place.take()
    }

    /// Returns true if the network may write to the buffer without this process.
    pub(super) fn is_written(&self) -> bool {
        self.read.is_some() || self.place.is_some()
    }

    /// Adds the sender's request that waits for FIN, the cooperative copy, and the time measurement.
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

    /// Returns the number of the message's bytes that fit into the receive buffer.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Returns true if a fragment of `len` bytes from `from` with this header belongs to this message.
    pub(super) fn takes(&self, from: ProcId, header: Header, len: usize) -> bool {
        let end = header[1].checked_add(len as u64);
        self.from == from && end.is_some_and(|end| end <= self.wanted)
    }

    /// Counts the received bytes `part` of the message. Returns `Ended` if these were the last bytes.
    pub(super) fn count(&mut self, part: Range<u64>) -> Option<Ended> {
        self.received += part.end - part.start;
        let over = self.received >= self.wanted;
        if let Some(device) = &self.device {
            device.arrive(part.start as usize..part.end as usize);
            if over {
                device.arrived();
            }
        }
        over.then(|| Ended {
            truncated: self.truncated.take(),
            transfer: self.transfer.take(),
            announced: self.announced.take(),
        })
    }

    /// Removes and returns the sender's request, to which the caller sends FIN.
    pub(super) fn take_sender(&mut self) -> Option<ReqId> {
        self.sender.take()
    }

    /// Returns the cooperative copy of this message, if one is active.
    pub(super) fn shared(&mut self) -> Option<&mut SharedCopy> {
        self.shared.as_mut()
    }

    /// Returns true if the data arrive by a cooperative copy or a remote read, and not in fragments.
    pub(super) fn is_copied(&self) -> bool {
        self.shared.is_some() || self.read.is_some()
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

    /// Discards the time measurement, because the rest of the message arrives by another protocol.
    pub(super) fn stop_measuring(&mut self) {
        self.transfer = None;
    }
}
