//! The port: the interface between the code that all fabric transports share and the binding of one library.
//!
//! A port owns the buffer of a message from [`Port::post`] until it returns the [`Slot`], so no library refers to freed memory.
//! A port reports all events during [`Port::progress`].

#![allow(unsafe_code)]

use super::frame::HEADER;
use super::pool::Slot;
use crate::btl::{Exposed, GetError, ProcId, Region, Rights, Span};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The access of one process to a network library.
pub trait Port {
    /// Returns the address that the peers need to connect to this process.
    fn address(&self) -> &[u8];

    /// Starts a connection to the peer whose card contains `address`.
    /// Returns the reason if no connection is possible.
    fn connect(&self, peer: ProcId, address: &[u8]) -> Result<(), String>;

    /// Ends the connection to a peer, if one exists.
    fn close(&self, peer: ProcId, how: Close);

    /// Sends the message in a buffer to a connected peer.
    fn post(&self, peer: ProcId, slot: Slot) -> Posted;

    /// Polls the library and reports events to `events`.
    fn progress(&self, events: &dyn Events);

    /// Requests that the library transmit all posted messages.
    fn flush(&self);

    /// Returns true if the last [`Port::flush`] is complete and no connection is being closed.
    fn is_quiet(&self) -> bool;

    /// Returns true if the next event will make the descriptor readable, and false
    /// if [`Port::progress`] must be called before the process sleeps.
    fn may_sleep(&self) -> bool;

    /// Returns the file descriptor that becomes readable at an event, if the library has one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Returns the interface to registered memory
    /// if the library supports reads and writes of peers' registered memory.
    fn memory(&self) -> Option<&dyn Memory> {
        None
    }

    /// Returns the interface to delivery in place, if the library supports it.
    fn in_place(&self) -> Option<&dyn Rendezvous> {
        None
    }

    /// Returns the maximum time to sleep, if the descriptor may miss events.
    /// Without a descriptor, returns the time between two polls.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }
}

/// An operation on a peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    Read(Span<'a>),
    Write(Span<'a>),
    /// Ends when the data of all ended writes to the peer are in the peer's memory.
    Flush,
}

/// Registered memory of this process, and operations on registered memory of peers.
pub trait Memory {
    /// Registers memory of this process; returns `None` if that is impossible.
    ///
    /// # Safety
    /// The memory must not be freed before [`Memory::unregister`].
    unsafe fn register(&self, region: Region, rights: Rights) -> Option<Exposed>;

    /// Ends the registration with the ID `number`.
    fn unregister(&self, number: u64);

    /// Starts an operation on the registered memory of a connected peer.
    /// Returns true if the operation ended during the call; otherwise [`Events::ended`] reports its end.
    ///
    /// # Safety
    /// Until the operation has ended, no other code may access the local memory of a read, and the local memory of a write must be neither freed nor written.
    unsafe fn start(
        &self,
        peer: ProcId,
        operation: Operation<'_>,
        number: u64,
    ) -> Result<bool, GetError>;
}

/// Transfers of data that remain in the sender's memory until the receiver has supplied their place.
pub trait Rendezvous {
    /// Returns the minimum length in bytes of data for which a transfer is worthwhile.
    fn shortest(&self) -> usize;

    /// Returns true if the library ends all transfers with a connected peer when the connection is closed by force.
    /// Otherwise there are no transfers with this peer.
    fn serves(&self, peer: ProcId) -> bool;

    /// Sends the frame header `head` to a connected peer and offers `data`.
    ///
    /// # Safety
    /// `data` must be neither freed nor written until the transfer has ended.
    unsafe fn offer(
        &self,
        peer: ProcId,
        head: [u8; HEADER],
        data: Region,
        transfer: u64,
    ) -> Offered;

    /// Receives offered data in `place`, which has the length of the data.
    /// Returns true if the transfer ended during the call, and the reason if the transfer has failed;
    /// otherwise [`Events::transferred`] reports its end.
    ///
    /// # Safety
    /// No other code may access `place` until the transfer has ended.
    unsafe fn accept(&self, offer: Offer, place: Region, transfer: u64) -> Result<bool, String>;

    /// Ends a transfer that this process does not need; for the sender the transfer has succeeded.
    fn refuse(&self, offer: Offer);

    /// Returns true if the library has sent or received anything in a poll since the last call.
    fn have_moved(&self) -> bool;
}

/// Data that a peer has offered and that have not arrived yet.
/// The port requires that each offer is accepted or refused.
#[derive(Debug)]
#[must_use]
pub struct Offer {
    /// The library's name of the data.
    pub handle: usize,
    pub len: usize,
}

/// The result of [`Rendezvous::offer`]: the state of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The transfer has ended successfully.
    Sent,
    /// The library accesses the data; [`Events::transferred`] reports the end.
    Active,
    /// The library cannot offer the data, for example for lack of memory, and does not access them.
    Failed,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The connection ends after all posted messages have been transmitted.
    InOrder,
    /// The connection ends immediately; posted messages may be lost.
    AtOnce,
}

/// The result of [`Port::post`]: the state of the message.
pub enum Posted {
    /// The library has copied the message.
    Done(Slot),
    /// The library refers to the buffer; [`Events::sent`] returns the buffer.
    Pending,
    /// The library has no space now and has refused the message.
    Again(Slot),
    /// The peer is unreachable; the text is the reason.
    Gone(Slot, String),
}

/// The receiver of a port's events.
pub trait Events {
    /// A message has arrived; both slices are valid only during the call.
    fn arrived(&self, head: &[u8], payload: &[u8]);

    /// The library no longer refers to a buffer. `why` is the reason if the message was not transmitted.
    fn sent(&self, slot: Slot, why: Option<String>);

    /// The operation with the ID `number` on a peer's memory has ended.
    fn ended(&self, number: u64, succeeded: bool);

    /// A peer has offered data for a place; `head` is valid only during the call.
    /// The receiver of the event accepts or refuses the offer.
    fn offered(&self, head: &[u8], offer: Offer);

    /// The transfer with the ID `transfer` has ended. `why` is the reason if it has failed.
    fn transferred(&self, transfer: u64, why: Option<String>);

    /// The connection to a peer has failed.
    fn failed(&self, peer: ProcId, why: String);
}
