//! BTL, the byte transfer layer: moves bytes between two processes and nothing more.
//!
//! A BTL never matches tags.
//! It carries *active messages*: a small handler number, sixteen bytes of header in two registers, and a payload.
//! What they mean is the business of the layer that owns the number ([`Family`]).
//!
//! Promises of every BTL, held by one suite:
//! * messages between one ordered pair of processes are delivered once each, in the order of `send` but for those marked [`OVERTAKES`];
//! * `send` either takes the whole message or answers [`SendError::WouldBlock`] and has taken nothing;
//! * when `send` returns `Ok`, the payload has been copied and the caller may reuse the memory;
//! * `progress` never calls the sink re-entrantly, and the slices it delivers live until `deliver` returns;
//! * a peer that cannot be reached any more is told of once ([`Sink::lost`]), after everything that came from it has been delivered.

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
mod tcp;
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

/// Whether a BTL reaches a peer, and if not, why; the reason is what `mpirun --explain` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    No(String),
    Yes(Endpoint),
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No room now; progress and try again.
    WouldBlock,
    /// The peer has ended or the link is cut; it will not come back.
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

/// What a message carries.
pub enum Payload<'a> {
    /// Bytes that lie together.
    Bytes(&'a [u8]),
    /// Two runs, one behind the other: what a layer puts before its caller's bytes.
    Joined(&'a [u8], &'a [u8]),
    /// `len` bytes that `fill` writes straight into the transport's buffer, so that a datatype is packed only once.
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

    /// A message without data is one all the same: its header travels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes it to where it is to be, which is as long as it.
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

/// Payload sizes in bytes that suit a BTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Up to here a message is best sent at once, unasked.
    pub eager: usize,
    /// The longest payload one `send` takes; larger messages are cut into fragments of this size.
    pub max_send: usize,
}

/// So many bytes of a payload have come at least when a transport asks [`Sink::begin`], so that a layer above it finds what it has put before its own payload.
pub const BEGUN: usize = 64;

/// Receives what `progress` found.
pub trait Sink {
    /// One active message from `from`; both slices end with the call.
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]);

    /// A long payload has begun to come; the answer is whether it is to be put in place as it comes, so that it is copied only once.
    ///
    /// With `true` the sink has taken `begun`, the first of `len` bytes; the rest goes through [`Sink::land`], and [`Sink::landed`] stands in for `deliver`.
    /// With `false` the message is delivered as ever.
    fn begin(&self, _from: ProcId, _am: Am, _header: Header, _len: usize, _begun: &[u8]) -> bool {
        false
    }

    /// Offers the place where bytes `range` of a payload that was begun are to end.
    ///
    /// Either `fill` is called once with a slice of that length, and the answer is true;
    /// or the answer is false, the receiver has given the message up, and the rest of it is dropped.
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

    /// All `len` bytes of a payload are where [`Sink::land`] wanted them; stands in for `deliver`.
    fn landed(&self, _from: ProcId, _am: Am, _header: Header, _len: usize) {}

    /// A peer that this process had to do with cannot be reached any more; `why` is a sentence that names both.
    fn lost(&self, _peer: ProcId, _why: &str) {}

    /// A process of another job that this process still has to do with has ended the connection to it in order;
    /// what it was asked and has not answered may be asked again, over a new one.
    fn parted(&self, _peer: ProcId) {}

    /// A message to `to` that overtakes others and stayed with its sender ([`Btl::relies_on_senders`]) may have been lost with a link.
    ///
    /// A sender that still has its `len` bytes calls `send` with them once; one that has not says nothing, and it counts as not wanted any more.
    fn again(
        &self,
        _to: ProcId,
        _am: Am,
        _header: Header,
        _len: usize,
        _send: &mut dyn FnMut(&[u8]),
    ) {
    }

    /// Something that went well in the end and that a person should know.
    fn note(&self, _what: &str) {}
}

/// Runs of this process's memory that are to be filled one after the other.
pub type Target<'a> = &'a [&'a [Cell<u8>]];

/// Reading a peer's memory in one copy, without its help.
pub trait SingleCopy {
    /// Fills `local`, run by run, with the bytes of `remote` in the peer's address space.
    ///
    /// The remote regions need no promise: one that the peer does not own is an error, not undefined behaviour.
    fn get(&self, peer: Endpoint, remote: &[Region], local: Target<'_>) -> Result<(), GetError>;

    /// Both sides at once, where the transport has it.
    fn together(&self) -> Option<&dyn CooperativeCopy> {
        None
    }
}

/// One copy that receiver and sender work on at the same time, the receiver from the front and the sender from the back.
///
/// Neither waits for the other before the last piece is taken; a sender that does not come leaves all of it to the receiver.
pub trait CooperativeCopy {
    /// The receiver begins: a number by which the sender can be asked for help with `len` bytes; `None` if too much is open.
    ///
    /// What was begun must be brought to its end by [`Share::Rest`] or by [`CooperativeCopy::close`].
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

    /// The receiver wants no more of what is left, and lets no other process have it; answers how many bytes that were.
    fn close(&self, number: u32) -> usize;

    /// The sender's part: puts what is not yet taken of `data`, from the back, to where it belongs in the regions of `remote`;
    /// answers how many bytes that were.
    fn help(
        &self,
        peer: Endpoint,
        number: u32,
        data: &[&[u8]],
        remote: &[Region],
    ) -> Result<usize, GetError>;

    /// Whether a sender that was asked may still be writing, nothing being left to take.
    fn is_helping(&self, peer: Endpoint, number: u32) -> bool;
}

/// How much a receiver takes upon itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The first half, so that both have the same to do.
    Half,
    /// Whatever is left.
    Rest,
}

/// How far the receiver's part of a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes that it has taken upon itself this time, behind those of the last.
    pub bytes: usize,
    /// Whether pieces are left that are not yet taken; if not, all the other bytes are the sender's.
    pub open: bool,
    /// Whether it got them.
    pub result: Result<(), GetError>,
}

/// Why a peer's memory could not be read or written; the caller falls back to fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetError {
    /// The system forbids it (container, ptrace scope) or does not have it.
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

/// Taking long messages bit by bit from where they lie, so that none of them is copied because a transport has no room.
pub trait Lending {
    /// Sends one active message, marked [`OVERTAKES`], as [`Btl::send`] does,
    /// but [`SendError::WouldBlock`] may have taken the beginning of it:
    /// then its sender comes again with the same message until it is taken, or leaves the rest here.
    fn lend(&self, to: Endpoint, am: Am, header: Header, data: &[u8]) -> Result<(), SendError>;

    /// The sender of a message that was refused will not come again: if the beginning of it has been taken, the rest is copied.
    fn leave_rest(&self, to: Endpoint, am: Am, header: Header, data: &[u8]);
}

/// One transport as seen by one process.
pub trait Btl {
    /// The component's name, as in `--mca btl self,sm`.
    fn name(&self) -> &'static str;

    /// Where several BTLs reach a peer, only those of the highest exclusivity are used.
    fn exclusivity(&self) -> u32;

    /// How much it takes at once, in bytes; the same for every peer and as long as it lives.
    fn limits(&self) -> Limits;

    /// The length of the fragments in which `bytes` bytes of a message travel best; at most [`Limits::max_send`].
    /// `packed` says that the data do not lie together, so that making a fragment of them takes longer than copying it;
    /// `alone` that no other fragments for the same peer wait for their turn.
    fn fragment(&self, _bytes: u64, _packed: bool, _alone: bool) -> usize {
        self.limits().max_send
    }

    /// The length of the pieces in which the data of a message of `bytes` bytes to a peer best follow its announcement, at most [`Limits::max_send`];
    /// `None` if it is better to ask for such a message. `packed` as for [`Btl::fragment`].
    fn follow(&self, _to: Endpoint, _bytes: u64, _packed: bool) -> Option<usize> {
        None
    }

    /// Whether this BTL reaches job rank `peer`.
    fn reach(&self, peer: ProcId) -> Reach;

    /// Whether messages may come before this process has asked for a route; a transport that does not listen is not polled until then.
    fn listens(&self) -> bool {
        true
    }

    /// Whether a look for messages costs a system call, so that it is done rarely while messages come by other ways.
    fn poll_is_syscall(&self) -> bool {
        false
    }

    /// Sends one active message; see the promises above.
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError>;

    /// Delivers what has arrived; returns how many messages were delivered.
    fn progress(&self, sink: &dyn Sink) -> usize;

    /// Whether a message waits that `progress` would deliver, or a send that would have blocked might be taken now.
    ///
    /// Called right before the process goes to sleep: the transport also sees to it that either of the two will ring the process's bell.
    fn pending(&self) -> bool;

    /// Adds what becomes readable when a message has come or a send that would have blocked might be taken;
    /// a transport whose peers ring the process's bell has nothing to add.
    fn descriptors<'a>(&'a self, _all: &mut Vec<BorrowedFd<'a>>) {}

    /// Adds the inboxes beside the process's own whose bells its peers ring.
    fn bells(&self, _all: &mut Vec<Held<Inbox>>) {}

    /// How fast a peer is reached, in megabit/s as networks are sold; only the ratio between transports matters.
    fn bandwidth(&self, _to: Endpoint) -> u32 {
        1000
    }

    /// Breaks the connection to a peer at both ends, because what comes over it cannot be trusted; both are told ([`Sink::lost`]).
    ///
    /// A transport that is not made of connections does nothing.
    fn cut(&self, _to: Endpoint) {}

    /// Whether nothing that was taken for a peer waits for its connection, which is not made while this process does not progress.
    fn is_through(&self, _to: Endpoint) -> bool {
        true
    }

    /// Waits, for a bounded time, until what was taken is out of this process's hands, because this process may not progress for long.
    fn settle(&self) {}

    /// The process's last word: as [`Btl::settle`], and peers learn that this end is not a death.
    ///
    /// Called when all processes of the job have come to their end; a transport that is dropped without it does the same.
    /// It may be used again afterwards.
    fn leave(&self) {}

    /// This process has nothing more to do with a process of another job, until a communicator names it again;
    /// what was taken for it still gets there, and what it sends is still delivered.
    fn part_from(&self, _peer: ProcId) {}

    /// Whether it may ask for messages that overtake others a second time ([`Sink::again`]),
    /// so that their sender has to have them until it knows that the receiver has.
    fn relies_on_senders(&self) -> bool {
        false
    }

    /// Sending without a copy to a peer that has no room, where the BTL has it.
    fn lending(&self) -> Option<&dyn Lending> {
        None
    }

    /// Single copy from peers, where the BTL has it.
    fn single_copy(&self) -> Option<&dyn SingleCopy> {
        None
    }
}
