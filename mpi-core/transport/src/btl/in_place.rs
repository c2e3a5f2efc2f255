//! Delivery in place: the transport moves a long message from the sender's memory to the receiver's, without a buffer of this library.
//!
//! The receiver posts memory of its own, the *place*, under a number that it sends to the peer in a message.
//! The peer fills the place once. Each side has an ID for its part of the transfer, with which it queries the outcome.

#![allow(unsafe_code)]

use super::{Endpoint, Region, SendError};

/// Transfers from the memory of one process to a place in the memory of another.
pub trait InPlace {
    /// Returns the minimum length in bytes of a message for which delivery in place is worthwhile.
    fn shortest(&self) -> usize;

    /// Posts `place`, which the peer may fill with exactly as many bytes. Returns the transfer's ID; `None` if too many places are posted.
    /// `number` must differ from the numbers of the other places that are posted for the peer.
    ///
    /// # Safety
    /// Only this transfer may access `place` until [`InPlace::outcome`], [`InPlace::withdraw`] or [`InPlace::give_up`] has ended the transfer.
    unsafe fn post(&self, from: Endpoint, number: u64, place: Region) -> Option<u64>;

    /// Starts to send `data` to the place that the peer has posted under `number`. Returns the transfer's ID.
    /// [`SendError::WouldBlock`] means that too many transfers to the peer are active.
    /// If the transport cannot start a transfer, the transfer fails, and the data can be sent in messages.
    ///
    /// # Safety
    /// `data` must be neither freed nor written until [`InPlace::outcome`] or [`InPlace::give_up`] has ended the transfer.
    unsafe fn fill(&self, to: Endpoint, number: u64, data: Region) -> Result<u64, SendError>;

    /// Returns true if a transfer has succeeded, false if it has failed, and `None` while it is active.
    /// An outcome can be fetched only once.
    ///
    /// At the receiver, success means that all bytes are in place.
    /// At the sender, success means that the transport no longer reads the data: they have been sent, or the receiver has withdrawn the place.
    /// If a transfer fails at the receiver, it also fails at the sender, or the peer is lost.
    /// All transfers with a lost peer end.
    fn outcome(&self, transfer: u64) -> Option<bool>;

    /// Appends the IDs of the transfers that have ended and whose outcomes have not been fetched.
    fn ended(&self, ids: &mut Vec<u64>);

    /// Returns true if the transport has moved data since the last call, so the process should poll again instead of sleeping.
    fn have_moved(&self) -> bool;

    /// Ends the transfer of a posted place if no data have begun to arrive, or if it has failed.
    /// Returns false if the transport may write to the place or has filled it.
    fn withdraw(&self, transfer: u64) -> bool;

    /// Ends a transfer whose outcome is not needed: waits until the transport no longer accesses the memory.
    /// There is a time limit only after the loss of the peer, when the transport ends all transfers by itself.
    fn give_up(&self, transfer: u64);
}
