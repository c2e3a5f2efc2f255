//! Reads of a peer's registered memory: what a transport offers whose network reads memory without the peer's processor.

#![allow(unsafe_code)]

use super::get_error::GetError;
use super::{Endpoint, Region};

/// Memory that was registered for reads by peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Names the registration in [`RemoteRead::withdraw`].
    pub number: u64,
    /// What a peer needs for a read; only this transport understands it.
    pub key: Vec<u8>,
}

/// Reads of a peer's registered memory by the network, while both processes do other work.
pub trait RemoteRead {
    /// Returns the length in bytes from which a message is worth a registration.
    fn shortest(&self) -> usize;

    /// Registers memory, so that peers that know its key may read it; `None` if that is not possible.
    ///
    /// # Safety
    /// The memory is not freed before [`RemoteRead::withdraw`].
    unsafe fn expose(&self, region: Region) -> Option<Exposed>;

    /// Ends a registration.
    fn withdraw(&self, number: u64);

    /// Starts to fill `local` with the first bytes of the memory to which a key belongs, and returns the number of the read.
    ///
    /// # Safety
    /// Only this read uses `local` until [`RemoteRead::outcome`] or [`RemoteRead::give_up`] has ended it.
    unsafe fn read(&self, from: Endpoint, key: &[u8], local: Region) -> Result<u64, GetError>;

    /// Returns whether a read that has ended succeeded, once; `None` while it is active.
    fn outcome(&self, read: u64) -> Option<bool>;

    /// Ends a read whose outcome is not needed: waits, for a bounded time, until the network has finished with its memory.
    fn give_up(&self, read: u64);
}
