//! The interface of a transport: the trait [`Btl`], the transport's properties ([`Info`]),
//! and optional interfaces for further functions ([`Capabilities`]).
//!
//! A decorator copies properties and capabilities from the transport that it wraps,
//! and replaces only those that it changes.
//! So the decorator needs no change for a new capability. `docs/transports.md` describes how to add a transport.

use super::get_error::GetError;
use super::in_place::InPlace;
use super::remote_memory::RemoteMemory;
use super::{Am, Endpoint, Header, Payload, ProcId, Reach, SendError, Sink};
use mpi_base::cma::Region;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// One transport of one process.
pub trait Btl {
    /// Returns the transport's constant properties.
    fn info(&self) -> &Info;

    /// Returns the endpoint of job rank `peer`, or the reason why this transport does not reach it.
    fn reach(&self, peer: ProcId) -> Reach;

    /// Sends one active message; the head of [`super`] lists the guarantees.
    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError>;

    /// Delivers the messages that have arrived to `sink`. Returns their number.
    fn progress(&self, sink: &dyn Sink) -> usize;

    /// Returns false if `progress` would do nothing now.
    /// A transport that needs more than a few instructions to determine this returns true.
    ///
    /// Polls that do not wait call this function instead of `progress` in most cases.
    #[inline]
    fn has_work(&self) -> bool {
        true
    }

    /// Returns true if `progress` would deliver a message, or if a send that was refused may be accepted now.
    ///
    /// Called immediately before the process sleeps. The transport also ensures that either event will ring the process's doorbell.
    fn pending(&self) -> bool;

    /// Returns the transport's optional interfaces.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::default()
    }
}

/// Recommended and maximum payload sizes of a BTL, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an eager message in bytes.
    pub eager: usize,
    /// The maximum payload of one `send`; longer messages are divided into fragments of at most this length.
    pub max_send: usize,
}

/// The constant properties of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The component's name, as in `--mca btl self,sm`.
    pub name: &'static str,
    /// Priority: if several transports reach a peer,
    /// the one with the highest exclusivity is used.
    /// If this transport is a network, other networks share its messages.
    pub exclusivity: u32,
    /// True for a network, which may share the messages to a peer with other networks that reach the peer.
    pub is_network: bool,
    /// Payload limits in bytes, the same for every peer.
    pub limits: Limits,
    /// True if messages may arrive before this process has requested a route to any peer.
    /// A transport that does not listen is not polled before such a request.
    pub listens: bool,
    /// True if a poll is a system call. The BML then polls the transport rarely while other transports deliver messages.
    pub poll_is_syscall: bool,
    /// True if a message may be accepted before the connection to its peer is established ([`Connections::is_connected`]).
    pub connects: bool,
    /// True if this transport may request the data of overtaking messages again ([`Sink::again`]).
    /// The sender must then leave the data in place until the receiver has confirmed their arrival.
    pub relies_on_senders: bool,
}

impl Info {
    /// Returns the properties of a transport in memory: a poll is not a system call, the transport listens, and no connections must be established.
    pub const fn of_memory(name: &'static str, exclusivity: u32, limits: Limits) -> Info {
        Info {
            name,
            exclusivity,
            is_network: false,
            limits,
            listens: true,
            poll_is_syscall: false,
            connects: false,
            relies_on_senders: false,
        }
    }
}

/// The way in which a transport accounts for messages in flight: accepted, but not delivered at their destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// The transport does not count messages in flight.
    #[default]
    Uncounted,
    /// Messages in flight are in memory that the receiver's [`Btl::pending`] checks.
    InMemory,
    /// The number of messages that this process has accepted, and the number that it has delivered. The sums of the two
    /// over all processes of a job are equal exactly if no message is in flight.
    Counted { sent: u64, received: u64 },
}

impl Traffic {
    /// Returns the traffic of two transports combined.
    pub fn and(self, other: Traffic) -> Traffic {
        match (self, other) {
            (Traffic::InMemory, other) | (other, Traffic::InMemory) => other,
            (
                Traffic::Counted { sent, received },
                Traffic::Counted {
                    sent: more_sent,
                    received: more_received,
                },
            ) => Traffic::Counted {
                sent: sent + more_sent,
                received: received + more_received,
            },
            _ => Traffic::Uncounted,
        }
    }
}

/// The optional interfaces of a transport; `None` for an interface that the transport does not support.
#[derive(Clone, Copy, Default)]
pub struct Capabilities<'a> {
    /// Single copies from peers' memory.
    pub single_copy: Option<&'a dyn SingleCopy>,
    /// Accesses to peers' registered memory, executed by the network.
    pub remote_memory: Option<&'a dyn RemoteMemory>,
    /// Transfers of long messages to their places in the receiver's memory.
    pub in_place: Option<&'a dyn InPlace>,
    /// Zero-copy sends of long messages in parts, whenever the peer's queue has space.
    pub lending: Option<&'a dyn Lending>,
    /// Fragment lengths other than [`Limits::max_send`], and the eager pipeline.
    pub pipeline: Option<&'a dyn Pipeline>,
    /// Control of connections: bandwidth, establishment, cut, and shutdown.
    pub connections: Option<&'a dyn Connections>,
    /// Ways to wake a sleeping process in addition to its own doorbell.
    pub wakeup: Option<&'a dyn Wakeup>,
    /// The way in which messages in flight are counted.
    pub traffic: Traffic,
}

/// The assumed bandwidth of a transport without [`Connections`], in Mbit/s.
const BANDWIDTH: u32 = 1000;

impl Capabilities<'_> {
    /// Returns the fragment length in bytes for a message of `bytes` bytes, at most [`Limits::max_send`]; see [`Pipeline::fragment`].
    pub fn fragment(&self, limits: &Limits, bytes: u64, packed: bool, alone: bool) -> usize {
        let most = limits.max_send;
        let asked = self.pipeline.map(|all| all.fragment(bytes, packed, alone));
        asked.map_or(most, |len| len.min(most))
    }

    /// Returns the fragment length in bytes of the eager pipeline, at most [`Limits::max_send`]; see [`Pipeline::eager_fragment`].
    pub fn eager_fragment(
        &self,
        limits: &Limits,
        to: Endpoint,
        bytes: u64,
        packed: bool,
    ) -> Option<usize> {
        let len = self.pipeline?.eager_fragment(to, bytes, packed)?;
        Some(len.min(limits.max_send))
    }

    /// Returns false if an accepted message waits for the connection to a peer; see [`Connections::is_connected`].
    pub fn is_connected(&self, to: Endpoint) -> bool {
        self.connections.is_none_or(|all| all.is_connected(to))
    }

    /// Returns the bandwidth to a peer; see [`Connections::bandwidth`].
    pub fn bandwidth(&self, to: Endpoint) -> u32 {
        (self.connections).map_or(BANDWIDTH, |all| all.bandwidth(to))
    }

    /// Breaks the connection to a peer, if one exists; see [`Connections::cut`].
    pub fn cut(&self, to: Endpoint) {
        if let Some(all) = self.connections {
            all.cut(to);
        }
    }

    /// Disconnects from a process of another job; see [`Connections::disconnect`].
    pub fn disconnect(&self, peer: ProcId) {
        if let Some(all) = self.connections {
            all.disconnect(peer);
        }
    }
}

/// Fragment lengths of a transport for which [`Limits::max_send`] is not the best length.
pub trait Pipeline {
    /// Returns the best fragment length in bytes for a message of `bytes` bytes.
    /// If `packed` is true, the data are not contiguous, so packing a fragment takes longer than copying it.
    /// If `alone` is true, no other fragments for the same peer are waiting.
    fn fragment(&self, bytes: u64, packed: bool, alone: bool) -> usize;

    /// Returns the fragment length of the eager pipeline for a message of `bytes` bytes, or `None` if a rendezvous is better.
    /// `packed` has the same meaning as in [`Pipeline::fragment`].
    fn eager_fragment(&self, _to: Endpoint, _bytes: u64, _packed: bool) -> Option<usize> {
        None
    }
}

/// Connections to peers: their state, and the shutdown of the transport.
pub trait Connections {
    /// Returns the nominal bandwidth to a peer in Mbit/s. Only the ratios between transports matter.
    fn bandwidth(&self, _to: Endpoint) -> u32 {
        BANDWIDTH
    }

    /// Returns false if an accepted message waits for the connection to a peer. A connection makes progress only while this process calls `progress`.
    /// A transport that can return false sets [`Info::connects`].
    fn is_connected(&self, _to: Endpoint) -> bool {
        true
    }

    /// Returns the name and version of the network library, for explanations to the user.
    fn about(&self) -> Option<String> {
        None
    }

    /// Starts a connection to a peer without a message, if none exists.
    /// Returns true if a connection already exists.
    fn open(&self, _to: Endpoint) -> bool {
        true
    }

    /// Returns the network of the connection to a peer in the user's notation, such as `10.1.0.0/16`.
    fn network(&self, _to: Endpoint) -> Option<String> {
        None
    }

    /// Breaks the connection to a peer at both ends, because its data cannot be trusted. Both processes receive [`Sink::lost`].
    ///
    /// A connectionless transport does nothing.
    fn cut(&self, _to: Endpoint) {}

    /// Returns true if no accepted message to a peer is still to be transmitted, so `flush` would not wait.
    fn is_flushed(&self) -> bool {
        true
    }

    /// Waits, up to a time limit, until this process has transmitted all accepted messages.
    /// Called before the process stops calling `progress`, perhaps for a long time.
    fn flush(&self) {}

    /// Abandons a peer whose process has ended, as the caller knows from another source than this transport.
    /// Messages that have not been transmitted to the peer are discarded, by the next `progress` at the latest,
    /// so `flush` and `shutdown` do not wait for the peer. [`Sink::lost`] may follow.
    ///
    /// Messages from the peer that have not been delivered may be discarded, so the caller first polls for them.
    fn abandon(&self, _peer: ProcId) {}

    /// Flushes like [`Connections::flush`], and notifies the peers that this process leaves in order and has not failed.
    ///
    /// Called when all processes of the job have reached their end. Dropping a transport without this call does the same.
    /// The transport can be used again after the call.
    fn shutdown(&self) {}

    /// Disconnects from a process of another job, until a communicator contains the process again.
    /// Accepted messages to the process still arrive, and messages that it sends are still delivered.
    fn disconnect(&self, _peer: ProcId) {}
}

/// Ways to wake a sleeping process in addition to its own doorbell.
pub trait Wakeup {
    /// Adds the file descriptors that become readable when a message has arrived or a refused send may be accepted.
    /// A transport whose peers ring this process's doorbell adds none.
    fn descriptors<'a>(&'a self, all: &mut Vec<BorrowedFd<'a>>);

    /// Returns the maximum time to sleep if the descriptors may miss a message. Without descriptors, returns the time between two polls.
    /// If the process watches other doorbells, this is called after the last poll before the sleep.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }

    /// Adds the inboxes, in addition to the process's own, whose doorbells the peers ring.
    /// Called before each sleep. The calling thread watches these doorbells.
    fn doorbells(&self, _all: &mut Vec<Held<Inbox>>) {}
}

/// Segments of this process's memory that are filled one after the other.
pub type Target<'a> = &'a [&'a [Cell<u8>]];

/// Single copy: reads a peer's memory without the peer's cooperation.
pub trait SingleCopy {
    /// Fills the segments of `local`, one after the other, with the bytes of `remote`, regions in the peer's address space.
    ///
    /// `remote` has no safety requirement: a region that does not exist in the peer results in an error, not in undefined behaviour.
    fn get(&self, peer: Endpoint, remote: &[Region], local: Target<'_>) -> Result<(), GetError>;

    /// Returns the interface of the cooperative copy, if the transport supports it.
    fn together(&self) -> Option<&dyn CooperativeCopy> {
        None
    }
}

/// A single copy by two processes at the same time: the receiver copies from the front and the sender from the back.
///
/// Each side claims one piece after the other, and waits for the other side only after the last piece is claimed.
/// If the sender does not help, the receiver copies everything.
pub trait CooperativeCopy {
    /// Opens a cooperative copy of `len` bytes on the receiver's side; `None` if too many copies are open.
    /// Returns the copy's ID, which the receiver's request for help contains.
    ///
    /// The receiver must end the copy by [`Share::Rest`] or by [`CooperativeCopy::close`].
    fn offer(&self, len: usize) -> Option<u32>;

    /// Executes the receiver's part: fills `local` from the front with the bytes of `remote`.
    fn fetch(
        &self,
        peer: Endpoint,
        number: u32,
        remote: &[Region],
        local: Target<'_>,
        share: Share,
    ) -> Fetched;

    /// Ends a cooperative copy on the receiver's side:
    /// claims all remaining pieces so that no process copies them. Returns their total length in bytes.
    fn close(&self, number: u32) -> usize;

    /// Executes the sender's part: writes the unclaimed pieces of `data`, from the back, to the regions of `remote`.
    /// Returns the number of bytes written.
    fn help(
        &self,
        peer: Endpoint,
        number: u32,
        data: &[&[u8]],
        remote: &[Region],
    ) -> Result<usize, GetError>;

    /// Returns true if the sender may still be writing, although all pieces are claimed.
    fn is_helping(&self, peer: Endpoint, number: u32) -> bool;
}

/// The part of a cooperative copy that the receiver copies in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The first half, so sender and receiver copy the same number of bytes.
    Half,
    /// All unclaimed pieces.
    Rest,
}

/// The result of one call of [`CooperativeCopy::fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Number of bytes that this call has claimed; they follow the bytes of the previous call.
    pub bytes: usize,
    /// True if neither side has claimed some pieces.
    /// If false, the sender copies all bytes that the receiver has not claimed.
    pub open: bool,
    /// Result of reading the `bytes` bytes.
    pub result: Result<(), GetError>,
}

/// Zero-copy sends of long messages in parts: a transport without space makes no copy of the message.
pub trait Lending {
    /// Sends one active message, marked [`OVERTAKES`](super::OVERTAKES),
    /// as [`Btl::send`] does, with one exception:
    /// [`SendError::WouldBlock`] may mean that the transport has accepted a prefix of the message.
    /// Then the sender must send the same message again until it is accepted, or call `leave_rest`.
    fn lend(&self, to: Endpoint, am: Am, header: Header, data: &[u8]) -> Result<(), SendError>;

    /// Called if the sender will not send a refused message again.
    /// If a prefix of the message was accepted, the transport copies the rest.
    fn leave_rest(&self, to: Endpoint, am: Am, header: Header, data: &[u8]);
}
