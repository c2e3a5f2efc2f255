//! BTL, the byte transfer layer: moves bytes between two processes and nothing more.
//!
//! A BTL never matches tags.
//! It carries *active messages*: a small handler number, sixteen bytes of header in two registers, and a payload.
//! Their meaning belongs to the layer that owns the number ([`Family`]).
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
mod fault;
pub(crate) mod modex;
pub(crate) mod names;
mod open;
mod peers;
mod self_;
mod sm;
#[cfg(test)]
#[macro_use]
pub(crate) mod suite;
pub(crate) mod tcp;
mod trace;

pub(crate) use am::Dispatch;
pub use am::{AmHandler, FAMILY_SIZE, Family, Registry};
pub use component::{Component, OpenContext, OpenError, SELECTION, Transport};
pub use decorate::Decorator;
pub use modex::Modex;
pub use mpi_base::cma::Region;
pub use names::Names;
pub use open::{BUILT_IN, DECORATORS, Opened, SelectError, open_all, open_to_other_jobs};
pub use sm::may_copy_once;

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use mpi_base::copy::copy;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;

pub use mpi_base::proc::ProcId;

/// The handler number of an active message; the owner of its [`Family`] knows the meaning.
pub type Am = u8;

/// Active messages with this bit may be delivered before or after others; all the rest keep their order.
pub const OVERTAKES: Am = 0x80;

/// Two words that travel with each active message beside its payload.
///
/// They are passed by value so that the header of a small message never touches memory before it is written to the wire.
pub type Header = [u64; 2];

/// A BTL's own number for a peer it reaches.
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

    /// Returns true if the message has no payload; it is sent nevertheless, for its header.
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

/// Recommended and maximum payload sizes of a BTL, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an eager message.
    pub eager: usize,
    /// The longest payload that one `send` takes; larger messages are cut into fragments of this size.
    pub max_send: usize,
}

/// A transport calls [`Sink::begin`] only after this number of bytes of the payload have arrived, so an upper layer's header is complete.
pub const BEGUN: usize = 64;

/// Receives the messages and events that `progress` delivers.
pub trait Sink {
    /// Delivers one active message from `from`; both slices end with the call.
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]);

    /// Announces a long payload that has begun to arrive. Returns true if the sink receives it in place, so that it is copied only once.
    ///
    /// With `true` the sink has taken `begun`, the first of `len` bytes; the rest is offered by [`Sink::land`], and [`Sink::landed`] replaces `deliver`.
    /// With `false` the message is delivered by `deliver` when it is complete.
    fn begin(&self, _from: ProcId, _am: Am, _header: Header, _len: usize, _begun: &[u8]) -> bool {
        false
    }

    /// Requests the destination of bytes `range` of an announced payload.
    ///
    /// The sink either calls `fill` once with a slice of that length and returns true,
    /// or returns false: then the receiver has given the message up, and its rest is dropped.
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

    /// All `len` bytes of a payload are at the destination that [`Sink::land`] gave; replaces `deliver`.
    fn landed(&self, _from: ProcId, _am: Am, _header: Header, _len: usize) {}

    /// A peer that this process has communicated with is unreachable; `why` is a sentence that names both.
    fn lost(&self, _peer: ProcId, _why: &str) {}

    /// A process of another job that this process still needs has closed the connection in order;
    /// requests to it that are not answered may be sent again, over a new connection.
    fn parted(&self, _peer: ProcId) {}

    /// An overtaking message to `to` that was not copied ([`Btl::relies_on_senders`]) may have been lost with a link.
    ///
    /// A sender that still has its `len` bytes calls `send` with them once. One that does not calls nothing, and the message counts as no longer wanted.
    fn again(
        &self,
        _to: ProcId,
        _am: Am,
        _header: Header,
        _len: usize,
        _send: &mut dyn FnMut(&[u8]),
    ) {
    }

    /// Reports an event that was handled without loss and that the user should know.
    fn note(&self, _what: &str) {}
}

/// Runs of this process's memory, to be filled in order.
pub type Target<'a> = &'a [&'a [Cell<u8>]];

/// Single copy: reads a peer's memory without its help.
pub trait SingleCopy {
    /// Fills `local`, run by run, with the bytes of `remote` in the peer's address space.
    ///
    /// The remote regions carry no safety requirement: one that the peer does not own is an error, not undefined behaviour.
    fn get(&self, peer: Endpoint, remote: &[Region], local: Target<'_>) -> Result<(), GetError>;

    /// The cooperative copy, if the transport supports it.
    fn together(&self) -> Option<&dyn CooperativeCopy> {
        None
    }
}

/// A single copy by receiver and sender at the same time, the receiver from the front and the sender from the back.
///
/// Neither waits for the other before the last piece is taken. If the sender does not help, the receiver copies everything.
pub trait CooperativeCopy {
    /// Opens a copy of `len` bytes on the receiver's side. Returns the number with which the sender is asked for help; `None` if too many copies are open.
    ///
    /// The receiver must finish it by [`Share::Rest`] or by [`CooperativeCopy::close`].
    fn offer(&self, len: usize) -> Option<u32>;

    /// The receiver's part: fills `local` from the front with the bytes of `remote`.
    fn fetch(
        &self,
        peer: Endpoint,
        number: u32,
        remote: &[Region],
        local: Target<'_>,
        share: Share,
    ) -> Fetched;

    /// Ends a copy on the receiver's side: takes all remaining pieces so that no process copies them, and returns their number of bytes.
    fn close(&self, number: u32) -> usize;

    /// The sender's part: writes the pieces of `data` that are not yet taken, from the back, to the regions of `remote`;
    /// returns the number of bytes.
    fn help(
        &self,
        peer: Endpoint,
        number: u32,
        data: &[&[u8]],
        remote: &[Region],
    ) -> Result<usize, GetError>;

    /// Returns true if the sender may still be writing although all pieces are taken.
    fn is_helping(&self, peer: Endpoint, number: u32) -> bool;
}

/// How much the receiver copies in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The first half, so that both ends have the same amount.
    Half,
    /// Everything that is left.
    Rest,
}

/// Progress of the receiver's part of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes taken by this call, after those of the previous call.
    pub bytes: usize,
    /// True if pieces are left that are not taken; if false, all other bytes are the sender's.
    pub open: bool,
    /// Whether those bytes were read.
    pub result: Result<(), GetError>,
}

/// Why a peer's memory could not be read or written; the caller falls back to fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetError {
    /// The system forbids the call (container, ptrace scope) or does not have it.
    Forbidden,
    /// The peer has ended.
    PeerGone,
    /// The range is not mapped in the peer.
    BadAddress,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GetError::Forbidden => "the system does not allow reading or writing the peer's memory",
            GetError::PeerGone => "the peer has ended",
            GetError::BadAddress => "the range is not mapped in the peer",
        })
    }
}

impl std::error::Error for GetError {}

/// Sends long messages piecewise from the sender's memory, so that a full transport does not make a copy of them.
pub trait Lending {
    /// Sends one active message, marked [`OVERTAKES`], as [`Btl::send`] does,
    /// except that [`SendError::WouldBlock`] may have taken a prefix of it:
    /// then the sender must offer the same message again until it is taken, or call `leave_rest`.
    fn lend(&self, to: Endpoint, am: Am, header: Header, data: &[u8]) -> Result<(), SendError>;

    /// The sender will not offer a refused message again: if a prefix of it was taken, the rest is copied.
    fn leave_rest(&self, to: Endpoint, am: Am, header: Header, data: &[u8]);
}

/// One transport as seen by one process.
pub trait Btl {
    /// The component's name, as in `--mca btl self,sm`.
    fn name(&self) -> &'static str;

    /// Of several BTLs that reach a peer, only those of the highest exclusivity are used.
    fn exclusivity(&self) -> u32;

    /// Payload limits in bytes; constant, and the same for every peer.
    fn limits(&self) -> Limits;

    /// Returns the best fragment length for `bytes` bytes of a message, at most [`Limits::max_send`].
    /// `packed`: the data are not contiguous, so packing a fragment takes longer than copying it;
    /// `alone`: no other fragments for the same peer are waiting.
    fn fragment(&self, _bytes: u64, _packed: bool, _alone: bool) -> usize {
        self.limits().max_send
    }

    /// Returns the fragment length of the eager pipeline for a message of `bytes` bytes, at most [`Limits::max_send`];
    /// `None`: use a rendezvous. `packed` as for [`Btl::fragment`].
    fn follow(&self, _to: Endpoint, _bytes: u64, _packed: bool) -> Option<usize> {
        None
    }

    /// Returns whether this BTL reaches job rank `peer`.
    fn reach(&self, peer: ProcId) -> Reach;

    /// Returns true if messages may arrive before this process has asked for a route; a transport that does not listen is not polled until then.
    fn listens(&self) -> bool {
        true
    }

    /// Returns true if a poll is a system call, so that it is rare while other transports deliver messages.
    fn poll_is_syscall(&self) -> bool {
        false
    }

    /// Sends one active message; see the guarantees above.
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError>;

    /// Delivers what has arrived; returns how many messages were delivered.
    fn progress(&self, sink: &dyn Sink) -> usize;

    /// Returns true if `progress` would deliver a message, or a send that was refused may be accepted now.
    ///
    /// Called right before the process sleeps: the transport also makes sure that either event will ring the process's doorbell.
    fn pending(&self) -> bool;

    /// Adds the descriptors that become readable when a message has arrived or a refused send may be accepted;
    /// a transport whose peers ring the process's doorbell adds none.
    fn descriptors<'a>(&'a self, _all: &mut Vec<BorrowedFd<'a>>) {}

    /// Adds the inboxes, besides the process's own, whose doorbells its peers ring.
    fn bells(&self, _all: &mut Vec<Held<Inbox>>) {}

    /// Returns the bandwidth to a peer in Mbit/s, as networks are sold; only the ratio between transports matters.
    fn bandwidth(&self, _to: Endpoint) -> u32 {
        1000
    }

    /// Breaks the connection to a peer at both ends, because its data cannot be trusted; both ends get [`Sink::lost`].
    ///
    /// A connectionless transport does nothing.
    fn cut(&self, _to: Endpoint) {}

    /// Returns true if no accepted message waits for the connection to a peer; a connection is not made while this process does not call `progress`.
    fn is_through(&self, _to: Endpoint) -> bool {
        true
    }

    /// Waits, for a bounded time, until this process has handed over what was accepted, because it may not call `progress` for long.
    fn settle(&self) {}

    /// Shutdown: does the work of [`Btl::settle`], and lets the peers distinguish this end from a death.
    ///
    /// Called when all processes of the job have reached their end; dropping a transport without this call does the same.
    /// The transport may be used again afterwards.
    fn leave(&self) {}

    /// Disconnects from a process of another job, until a communicator contains it again;
    /// what was accepted for it still arrives, and what it sends is still delivered.
    fn part_from(&self, _peer: ProcId) {}

    /// Returns true if this BTL may ask for overtaking messages a second time ([`Sink::again`]),
    /// so that a sender must keep the data until the receiver has confirmed them.
    fn relies_on_senders(&self) -> bool {
        false
    }

    /// Zero-copy sending to a peer whose queue is full, if the BTL supports it.
    fn lending(&self) -> Option<&dyn Lending> {
        None
    }

    /// Single copy from peers, if the BTL supports it.
    fn single_copy(&self) -> Option<&dyn SingleCopy> {
        None
    }
}
