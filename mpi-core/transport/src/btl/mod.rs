//! BTL, the byte transfer layer: moves bytes between two processes and nothing more.
//!
//! A BTL never matches tags.
//! It carries *active messages*: a small handler number, sixteen bytes of header in two registers, and a payload.
//! The layer that owns the handler number defines the meaning of a message ([`Family`]).
//!
//! Guarantees of every BTL, checked by one test suite:
//! * messages between one ordered pair of processes are delivered exactly once, in the order of `send` except for those marked [`OVERTAKES`];
//! * `send` either takes the whole message or returns [`SendError::WouldBlock`] and has taken nothing;
//! * when `send` returns `Ok`, the payload has been copied and the caller may reuse the memory;
//! * `progress` never calls the sink re-entrantly, and the slices it delivers live until `deliver` returns;
//! * [`Sink::lost`] is called once per unreachable peer, after all of its data has been delivered.

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

/// The handler number of an active message; the owner of its [`Family`] knows the meaning.
pub type Am = u8;

/// Active messages with this bit may be delivered before or after others;
/// all other messages keep their order.
pub const OVERTAKES: Am = 0x80;

/// Two words that travel with each active message beside its payload.
///
/// They are passed by value,
/// so that the header of a small message is not in memory before it is written to the wire.
pub type Header = [u64; 2];

/// A BTL's own number for a peer that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub u32);

/// Whether a BTL reaches a peer; if not, the reason, which `mpirun --explain` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    No(String),
    Yes(Endpoint),
}

/// Why `send` did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The queue is full; call `progress` and try again.
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
    /// Two contiguous runs, one after the other: an upper layer's header and its caller's bytes.
    Joined(&'a [u8], &'a [u8]),
    /// `len` bytes that `fill` writes directly into the transport's buffer, so that a datatype is packed only once.
    Fill {
        len: usize,
        fill: &'a mut dyn FnMut(&mut [u8]),
    },
}

impl Payload<'_> {
    /// The length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(b) => b.len(),
            Payload::Joined(first, second) => first.len() + second.len(),
            Payload::Fill { len, .. } => *len,
        }
    }

    /// Returns true if the message has no payload; such a message is sent for its header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the payload to `place`, which has the same length.
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

/// A transport calls [`Sink::begin`] only after this number of bytes of the payload have arrived, so an upper layer's header is complete.
pub const BEGUN: usize = 64;

/// Receives the messages and events that `progress` delivers.
pub trait Sink {
    /// Delivers one active message from `from`; both slices are valid only during the call.
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]);

    /// Announces a long payload that has begun to arrive.
    /// Returns true to receive it in place, which saves a copy.
    ///
    /// If the result is true, the sink has taken `begun`, the beginning of the `len` bytes.
    /// The transport then offers the rest by [`Sink::land`],
    /// and calls [`Sink::landed`] in place of `deliver`.
    /// If the result is false, `deliver` delivers the message when it is complete.
    fn begin(&self, _from: ProcId, _am: Am, _header: Header, _len: usize, _begun: &[u8]) -> bool {
        false
    }

    /// Requests the destination of bytes `range` of an announced payload.
    ///
    /// The sink either calls `fill` once with a slice of that length and returns true,
    /// or returns false: then the receiver has given the message up, and the rest of the payload is dropped.
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

    /// Called when all `len` bytes of a payload are at the destination that [`Sink::land`] gave; replaces `deliver`.
    fn landed(&self, _from: ProcId, _am: Am, _header: Header, _len: usize) {}

    /// Called when a peer that this process has communicated with is unreachable;
    /// `why` is a sentence that names both processes.
    fn lost(&self, _peer: ProcId, _why: &str) {}

    /// Called when a process of another job has closed the connection in order
    /// while this process still needs it;
    /// unanswered requests to that process may be sent again, over a new connection.
    fn parted(&self, _peer: ProcId) {}

    /// Called when an overtaking message to `to` that was not copied ([`Info::relies_on_senders`]) may have been lost with a link.
    ///
    /// A sender that still has the `len` bytes calls `send` with them once. If it sends nothing, the message counts as cancelled.
    fn again(
        &self,
        _to: ProcId,
        _am: Am,
        _header: Header,
        _len: usize,
        _send: &mut dyn FnMut(&[u8]),
    ) {
    }

    /// Called when one of several links to a peer is lost and the others carry its messages.
    /// `what` is the text for the user; `None` at the process that does not print it.
    fn link_lost(&self, _peer: ProcId, _what: Option<&str>) {}
}
