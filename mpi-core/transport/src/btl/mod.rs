//! BTL, the byte transfer layer: transfers active messages between two processes, without matching.
//!
//! A BTL does not know tags or communicators.
//! It transfers *active messages*: a handler number (one byte), a header of sixteen bytes that is passed in two registers, and a payload.
//! The layer that owns the handler number defines what a message means ([`Family`]).
//!
//! Guarantees of every BTL, tested by one test suite:
//! * messages from one process to another are delivered exactly once, and in the order of `send` except for those marked [`OVERTAKES`];
//! * `send` accepts the whole message, or returns [`SendError::WouldBlock`] and has accepted nothing;
//! * when `send` returns `Ok`, the payload has been copied and the caller may reuse its memory;
//! * `progress` never calls the sink re-entrantly, and the slices that it delivers are valid until `deliver` returns;
//! * [`Sink::lost`] is called once per unreachable peer, after all messages that arrived from the peer have been delivered.

mod am;
mod checksum;
mod component;
mod decorate;
#[cfg(test)]
mod decorated;
mod dgram;
pub(crate) mod fabric;
mod fault;
mod get_error;
mod in_place;
mod interface;
pub(crate) mod modex;
pub(crate) mod names;
mod ofi;
mod open;
mod peers;
pub mod plugin;
mod remote_memory;
mod self_;
mod sm;
#[cfg(test)]
#[macro_use]
pub(crate) mod suite;
pub(crate) mod tcp;
mod trace;
mod ucx;

pub(crate) use am::Dispatch;
pub use am::{AmHandler, FAMILY_SIZE, Family, Registry};
pub use component::{Component, OpenContext, OpenError, SELECTION, Transport};
pub use decorate::Decorator;
pub use get_error::GetError;
pub use in_place::InPlace;
pub use interface::{
    Btl, Capabilities, Connections, CooperativeCopy, Fetched, Info, Lending, Limits, Pipeline,
    Share, SingleCopy, Target, Traffic, Wakeup,
};
pub use modex::Modex;
pub use mpi_base::cma::Region;
pub use names::Names;
pub use open::{BUILT_IN, DECORATORS, Opened, SelectError, open_all, open_to_other_jobs};
pub use remote_memory::{Exposed, RemoteMemory, Rights, Span};
pub use sm::may_copy_once;

use std::fmt;
use std::ops::Range;

use mpi_base::copy::copy;

pub use mpi_base::proc::ProcId;

/// The handler number of an active message; the layer that owns the [`Family`] defines its meaning.
pub type Am = u8;

/// Active messages with this bit may be delivered earlier or later than messages sent before or after them.
/// All other messages are delivered in the order of `send`.
pub const OVERTAKES: Am = 0x80;

/// The header of an active message: two 64-bit words in addition to the payload.
///
/// The words are passed by value,
/// so the header of a short message is in registers until it is written to the wire.
pub type Header = [u64; 2];

/// A BTL's own index of a peer that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub u32);

/// The result of a query whether a BTL reaches a peer: the endpoint, or the reason, which `mpirun --explain` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    No(String),
    Yes(Endpoint),
}

/// The reason why `send` did not accept a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The transport has no space; the caller must call `progress` and try again.
    WouldBlock,
    /// The peer has ended or the connection is broken; this is final.
    PeerGone,
    /// The payload is longer than [`Limits::max_send`]; nothing was sent.
    TooLong { len: usize, max: usize },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::WouldBlock => write!(f, "the queue to the peer is full"),
            SendError::PeerGone => write!(f, "the peer has ended"),
            SendError::TooLong { len, max } => {
                write!(
                    f,
                    "a payload of {len} bytes is longer than the {max} bytes one message holds"
                )
            }
        }
    }
}

impl std::error::Error for SendError {}

/// The payload of a message.
pub enum Payload<'a> {
    /// Contiguous bytes.
    Bytes(&'a [u8]),
    /// Two contiguous slices, one after the other: an upper layer's header and its caller's bytes.
    Joined(&'a [u8], &'a [u8]),
    /// `len` bytes that `fill` writes directly into the transport's buffer, so typed data are packed only once.
    Fill {
        len: usize,
        fill: &'a mut dyn FnMut(&mut [u8]),
    },
}

impl Payload<'_> {
    /// Returns the length of the payload in bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(b) => b.len(),
            Payload::Joined(first, second) => first.len() + second.len(),
            Payload::Fill { len, .. } => *len,
        }
    }

    /// Returns true if the message has no payload; such a message is sent for its header only.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the payload to `place`, which must have the length of the payload.
    #[inline]
    pub fn put(&mut self, place: &mut [u8]) {
        match self {
            Payload::Bytes(bytes) => copy(bytes, place),
            Payload::Joined(first, second) => {
                let (front, back) = place.split_at_mut(first.len());
                front.copy_from_slice(first);
                back.copy_from_slice(second);
            }
            Payload::Fill { fill, .. } => fill(place),
        }
    }
}

/// Minimum number of payload bytes that must have arrived before a transport calls [`Sink::begin`],
/// so that an upper layer's header is complete.
pub const BEGUN: usize = 64;

/// The receiver of the messages and events that `progress` delivers.
pub trait Sink {
    /// Delivers one active message from `from`; both slices are valid only during the call.
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]);

    /// Reports that a long payload has begun to arrive.
    /// The sink returns true if the transport can write the payload directly to its destination, which saves a copy.
    ///
    /// If the result is true, the sink has copied `begun`, the first of the `len` bytes.
    /// The transport then passes the rest by [`Sink::land`],
    /// and calls [`Sink::landed`] instead of `deliver`.
    /// If the result is false, `deliver` delivers the message when it is complete.
    fn begin(&self, _from: ProcId, _am: Am, _header: Header, _len: usize, _begun: &[u8]) -> bool {
        false
    }

    /// Requests the destination of the bytes `range` of a payload that [`Sink::begin`] has accepted.
    ///
    /// The sink either calls `fill` once with a slice of the range's length and returns true,
    /// or returns false if the receive was abandoned; then the transport drops the rest of the payload.
    fn land(
        &self,
        _from: ProcId,
        _am: Am,
        _header: Header,
        _range: Range<usize>,
        _fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        false
    }

    /// Called instead of `deliver` when all `len` bytes of a payload are at the destinations that [`Sink::land`] provided.
    fn landed(&self, _from: ProcId, _am: Am, _header: Header, _len: usize) {}

    /// Called when a peer with which this process has communicated is unreachable.
    /// `why` is a sentence that contains the ranks of both processes.
    fn lost(&self, _peer: ProcId, _why: &str) {}

    /// Called when a process of another job has closed the connection in order
    /// although this process still needs it.
    /// Requests to that process without a reply may be sent again, over a new connection.
    fn parted(&self, _peer: ProcId) {}

    /// Called when an overtaking message to `to` that was not copied ([`Info::relies_on_senders`]) may have been lost with a link.
    ///
    /// A sender that still has the `len` bytes calls `send` with them once. If it does not call `send`, the message counts as cancelled.
    fn again(
        &self,
        _to: ProcId,
        _am: Am,
        _header: Header,
        _len: usize,
        _send: &mut dyn FnMut(&[u8]),
    ) {
    }

    /// Called when one of several links to a peer is lost and the other links carry the messages to the peer.
    /// `what` is the text for the user; `None` at a process that does not print it.
    fn link_lost(&self, _peer: ProcId, _what: Option<&str>) {}
}
