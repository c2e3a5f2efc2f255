//! Access to a peer's registered memory, for transports whose network reads and writes memory without the peer's processor.

#![allow(unsafe_code)]

use super::get_error::GetError;
use super::{Endpoint, Region};

/// The result of registering memory for access by peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The registration's ID, for [`RemoteMemory::withdraw`].
    pub number: u64,
    /// The data that a peer needs for an access. Only the transport itself can interpret the key.
    pub key: Vec<u8>,
}

/// The access rights of peers to registered memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Peers may read the memory.
    Read,
    /// Peers may read and write the memory.
    ReadWrite,
}

/// A part of a peer's registered memory, and local memory of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The key of the peer's registration.
    pub key: &'a [u8],
    /// Offset of the part in the registered memory, in bytes.
    pub offset: u64,
    /// The local memory, of the same length as the part.
    pub local: Region,
}

/// Access to peers' registered memory, which the network executes while both processes do other work.
///
/// Each access has an ID, with which the caller queries the outcome.
pub trait RemoteMemory {
    /// Returns the minimum length in bytes of a message for which a registration is worthwhile.
    fn shortest(&self) -> usize;

    /// Returns true if the transport reads device memory directly.
    /// The engine then passes the host memory that represents the device memory
    /// (`mpi_base::accelerator::twins`).
    fn reads_devices(&self) -> bool {
        false
    }

    /// Registers memory for access by peers that know its key. Returns `None` if that is impossible.
    ///
    /// # Safety
    /// The memory must not be freed before [`RemoteMemory::withdraw`].
    unsafe fn expose(&self, region: Region, rights: Rights) -> Option<Exposed>;

    /// Ends the registration with the ID `number`.
    fn withdraw(&self, number: u64);

    /// Starts to copy a part of the peer's memory to local memory. Returns the access's ID.
    ///
    /// # Safety
    /// Only this read may access `span.local` until [`RemoteMemory::outcome`] or [`RemoteMemory::give_up`] has ended the read.
    unsafe fn read(&self, from: Endpoint, span: Span<'_>) -> Result<u64, GetError>;

    /// Starts to copy local memory to a part of the peer's memory. Returns the access's ID.
    /// The end of the write does not imply that the data have arrived ([`RemoteMemory::flush`]).
    ///
    /// # Safety
    /// `span.local` must be neither freed nor written until [`RemoteMemory::outcome`] or [`RemoteMemory::give_up`] has ended the write.
    unsafe fn write(&self, to: Endpoint, span: Span<'_>) -> Result<u64, GetError>;

    /// Starts a flush and returns its ID. When the flush ends,
    /// the data of all writes to the peer that had ended before the flush are in the peer's memory.
    fn flush(&self, to: Endpoint) -> Result<u64, GetError>;

    /// Returns true if an access has succeeded, false if it has failed, and `None` while it is active.
    /// An outcome can be fetched only once.
    fn outcome(&self, access: u64) -> Option<bool>;

    /// Ends an access whose outcome is not needed: waits, up to a time limit, until the network no longer accesses the local memory.
    fn give_up(&self, access: u64);
}
