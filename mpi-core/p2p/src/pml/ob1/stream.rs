//! The progress of a send whose data are sent in fragments or delivered in place.

use crate::btl::{Am, Header};
use crate::request::id::ReqId;
use std::ops::Range;

/// The number of bytes after which a stream lets the next stream of the same peer send.
///
/// For windows of messages with separate buffers, shares of 64 KiB or 128 KiB and sends one after the other
/// gave the same bandwidth, within measurement error.
/// With a single buffer and two cores that share a cache, shares raised the bandwidth of 4 MiB messages from 50 to
/// 57 GB/s (bidirectional: from 50 to 61), and of 1 MiB messages from 55 to 58 GB/s (from 55 to 63).
const TURN: u64 = 256 << 10;

/// The progress of a send in fragments.
pub(super) struct Stream {
    am: Am,
    /// The ID in the fragments' headers: the receive request for FRAGs, the send request for EAGER_FRAGs.
    whose: ReqId,
    sent: u64,
    wanted: u64,
    /// The length of a fragment in bytes; the last one can be shorter.
    fragment: usize,
    place: Place,
}

/// Whether the data of a stream are delivered in place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The data are sent in fragments.
    No,
    /// The transport has not accepted the data.
    Waits,
    /// The transport's ID of the active transfer.
    Active(u64),
}

impl Stream {
    pub(super) fn new(am: Am, whose: ReqId, wanted: u64, fragment: usize) -> Stream {
        Stream {
            am,
            whose,
            sent: 0,
            wanted,
            fragment: fragment.max(1),
            place: Place::No,
        }
    }

    /// Returns the stream with its data to be delivered in place.
    pub(super) fn in_place(self) -> Stream {
        Stream {
            place: Place::Waits,
            ..self
        }
    }

    /// Returns true if the transport must still accept the data for their place.
    pub(super) fn waits_for_transfer(&self) -> bool {
        self.place == Place::Waits
    }

    /// Stores the ID of the active transfer.
    pub(super) fn set_transfer(&mut self, id: u64) {
        self.place = Place::Active(id);
    }

    /// Returns the ID of the active transfer.
    pub(super) fn transfer(&self) -> Option<u64> {
        match self.place {
            Place::Active(id) => Some(id),
            Place::No | Place::Waits => None,
        }
    }

    /// Removes and returns the ID of the active transfer.
    pub(super) fn end_transfer(&mut self) -> Option<u64> {
        let id = self.transfer()?;
        self.place = Place::Waits;
        Some(id)
    }

    /// After a failed transfer: sends the data in fragments.
    pub(super) fn go_on_in_fragments(&mut self) {
        self.place = Place::No;
    }

    /// Returns the receive request to which the data are sent.
    pub(super) fn receive(&self) -> ReqId {
        self.whose
    }

    /// Returns the number of bytes of the stream.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Returns the active-message type of the fragments: FRAG or EAGER_FRAG.
    pub(super) fn am(&self) -> Am {
        self.am
    }

    /// Returns true if all bytes of the stream have been sent.
    pub(super) fn is_over(&self) -> bool {
        self.sent >= self.wanted
    }

    /// Returns the header of the next fragment, and its byte range in the message.
    pub(super) fn next(&self) -> (Header, Range<usize>) {
        let len = (self.wanted - self.sent).min(self.fragment as u64);
        let range = self.sent as usize..(self.sent + len) as usize;
        ([self.whose.0, self.sent], range)
    }

    /// Counts `len` sent bytes. Returns true if the stream has sent its share and the next stream must continue.
    pub(super) fn advance(&mut self, len: usize) -> bool {
        let turn = self.sent / TURN;
        self.sent += len as u64;
        self.sent / TURN != turn
    }

    /// Returns true if a fragment of type `am` for the receive request `receive` that ends at byte `end` belongs to this stream.
    pub(super) fn has_sent(&self, am: Am, receive: u64, end: u64) -> bool {
        self.am == am && self.whose.0 == receive && end <= self.wanted
    }
}
