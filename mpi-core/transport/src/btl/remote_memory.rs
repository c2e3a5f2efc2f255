//! Access to registered memory of a peer, for transports whose network reads and writes memory without the peer's processor.

#![allow(unsafe_code)]

use super::get_error::GetError;
use super::{Endpoint, Region};

/// Memory that was registered for accesses by peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Names the registration in [`RemoteMemory::withdraw`].
    pub number: u64,
    /// The data that a peer needs for an access; only this transport interprets the key.
    pub key: Vec<u8>,
}

/// The access rights of peers to registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Peers may read the memory.
    Read,
    /// Peers may read and write the memory.
    ReadWrite,
}

/// Part of a peer's registered memory, and local memory of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The key of the registration.
    pub key: &'a [u8],
    /// Offset of the part in the registered memory.
    pub offset: u64,
    /// The local memory.
    pub local: Region,
}

/// Accesses to a peer's registered memory, executed by the network while both processes do other work.
///
/// Each access has a number, by which the caller queries its outcome.
pub trait RemoteMemory {
    /// Returns the minimum length in bytes of a message for which a registration pays off.
    fn shortest(&self) -> usize;

    /// Returns true if the transport reads device memory directly,
    /// although the engine passes the host memory that represents it
    /// (`mpi_base::accelerator::twins`).
    fn reads_devices(&self) -> bool {
        false
    }

    /// Registers memory for peers that know its key; `None` if that is not possible.
    ///
    /// # Safety
    /// The memory is not freed before [`RemoteMemory::withdraw`].
    unsafe fn expose(&self, region: Region, rights: Rights) -> Option<Exposed>;

    /// Ends a registration.
    fn withdraw(&self, number: u64);

    /// Starts to copy the peer's memory into local memory.
    ///
    /// # Safety
    /// Only this read uses `span.local` until [`RemoteMemory::outcome`] or [`RemoteMemory::give_up`] has ended it.
    unsafe fn read(&self, from: Endpoint, span: Span<'_>) -> Result<u64, GetError>;

    /// Starts to copy local memory into the peer's memory.
    /// The end of the write does not imply that the data have arrived ([`RemoteMemory::flush`]).
    ///
    /// # Safety
    /// `span.local` is neither freed nor written until [`RemoteMemory::outcome`] or [`RemoteMemory::give_up`] has ended the write.
    unsafe fn write(&self, to: Endpoint, span: Span<'_>) -> Result<u64, GetError>;

    /// Starts a flush. At its end,
    /// the data of all writes to the peer that had ended before the flush are in the peer's memory.
    fn flush(&self, to: Endpoint) -> Result<u64, GetError>;

    /// Returns whether an ended access succeeded; `None` while it is active.
    /// Each outcome is returned once.
    fn outcome(&self, access: u64) -> Option<bool>;

    /// Ends an access whose outcome is not needed: waits, for a bounded time, until the network has finished with its memory.
    fn give_up(&self, access: u64);
}
