//! Accesses to a peer's registered memory: what a transport offers whose network reads and writes memory without the peer's processor.

#![allow(unsafe_code)]

use super::get_error::GetError;
use super::{Endpoint, Region};

/// Memory that was registered for accesses by peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// Names the registration in [`RemoteMemory::withdraw`].
    pub number: u64,
    /// What a peer needs for an access; only this transport understands it.
    pub key: Vec<u8>,
}

/// What peers may do with registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read it.
    Read,
    /// Read and write it.
    ReadWrite,
}

/// Part of a peer's registered memory, and memory of this process of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The key of the registration.
    pub key: &'a [u8],
    /// The first byte of the part.
    pub offset: u64,
    /// The memory of this process.
    pub local: Region,
}

/// Accesses to a peer's registered memory by the network, while both processes do other work.
///
/// Each has a number, by which its end is asked for.
pub trait RemoteMemory {
    /// Returns the length in bytes from which a message is worth a registration.
    fn shortest(&self) -> usize;

    /// Returns true if memory of a device is read where it is, though the engine has only the host memory that stands for it (`mpi_base::accelerator::twins`).
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

    /// Starts to fill the memory of this process with that of the peer.
    ///
    /// # Safety
    /// Only this read uses `span.local` until [`RemoteMemory::outcome`] or [`RemoteMemory::give_up`] has ended it.
    unsafe fn read(&self, from: Endpoint, span: Span<'_>) -> Result<u64, GetError>;

    /// Starts to fill the memory of the peer with that of this process; its end does not show that the data are in place ([`RemoteMemory::flush`]).
    ///
    /// # Safety
    /// `span.local` is neither freed nor written until [`RemoteMemory::outcome`] or [`RemoteMemory::give_up`] has ended the write.
    unsafe fn write(&self, to: Endpoint, span: Span<'_>) -> Result<u64, GetError>;

    /// Starts a flush: when it has ended, all earlier writes to the peer that had ended are in its memory.
    fn flush(&self, to: Endpoint) -> Result<u64, GetError>;

    /// Returns whether an access that has ended succeeded, once; `None` while it is active.
    fn outcome(&self, access: u64) -> Option<bool>;

    /// Ends an access whose outcome is not needed: waits, for a bounded time, until the network has finished with its memory.
    fn give_up(&self, access: u64);
}
