//! The port: the interface between the shared part of a fabric transport and the binding of one library.
//!
//! A port owns the memory of a message from [`Port::post`] until it returns the [`Slot`], so no library refers to memory that has been freed.
//! A port reports all events within [`Port::progress`].

#![allow(unsafe_code)]

use super::pool::Slot;
use crate::btl::{Exposed, GetError, ProcId, Region, Rights, Span};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// One process's access to a fabric.
pub trait Port {
    /// Returns the address that the peers need to connect to this process.
    fn address(&self) -> &[u8];

    /// Starts a connection to a peer whose card has this address;
    /// returns the reason if no connection can be made.
    fn connect(&self, peer: ProcId, address: &[u8]) -> Result<(), String>;

    /// Ends the connection to a peer, if there is one.
    fn close(&self, peer: ProcId, how: Close);

    /// Sends the bytes of a slot to a connected peer.
    fn post(&self, peer: ProcId, slot: Slot) -> Posted;

    /// Polls the library and reports events to `events`.
    fn progress(&self, events: &dyn Events);

    /// Asks the library to hand over everything that was posted.
    fn flush(&self);

    /// Returns true if the last [`Port::flush`] is complete, and no connection is being closed.
    fn is_quiet(&self) -> bool;

    /// Returns true if the next event will make the descriptor readable, false
    /// if [`Port::progress`] must be called first.
    fn may_sleep(&self) -> bool;

    /// The descriptor that becomes readable at an event.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Returns the interface to registered memory,
    /// if the library can read and write registered memory of peers.
    fn memory(&self) -> Option<&dyn Memory> {
        None
    }

    /// The longest sleep on a descriptor that may miss events;
    /// without a descriptor, the time between two polls.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }
}

/// An operation on a peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    Read(Span<'a>),
    Write(Span<'a>),
    /// A flush ends when the data of all ended writes to the peer are in the peer's memory.
    Flush,
}

/// Registered memory of this process, and operations on registered memory of peers.
pub trait Memory {
    /// Registers memory; `None` if that is not possible.
    ///
    /// # Safety
    /// The memory is not freed before [`Memory::unregister`].
    unsafe fn register(&self, region: Region, rights: Rights) -> Option<Exposed>;

    /// Ends a registration.
    fn unregister(&self, number: u64);

    /// Starts an operation on the memory of a connected peer. Returns true if it has ended within the call; otherwise [`Events::ended`] reports its end.
    ///
    /// # Safety
    /// Until the operation has ended, no other code uses the local memory of a read, and the local memory of a write is neither freed nor written.
    unsafe fn start(
        &self,
        peer: ProcId,
        operation: Operation<'_>,
        number: u64,
    ) -> Result<bool, GetError>;
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The connection ends after everything that was posted has been handed over.
    InOrder,
    /// The connection ends at once: messages that were posted are dropped.
    AtOnce,
}

/// The result of [`Port::post`].
pub enum Posted {
    /// The library has copied the message.
    Done(Slot),
    /// The library refers to the slot; [`Events::sent`] returns it.
    Pending,
    /// The library has no space now and has not taken the message.
    Again(Slot),
    /// The peer cannot be reached any more.
    Gone(Slot, String),
}

/// Receives the events of a port.
pub trait Events {
    /// A message has arrived; both slices are valid only during the call.
    fn arrived(&self, head: &[u8], payload: &[u8]);

    /// The library no longer refers to a slot; `why` is set if its message was not sent.
    fn sent(&self, slot: Slot, why: Option<String>);

    /// An operation on a peer's memory has ended.
    fn ended(&self, number: u64, succeeded: bool);

    /// The connection to a peer has failed.
    fn failed(&self, peer: ProcId, why: String);
}
