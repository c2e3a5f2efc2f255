//! Shared memory for boards, for programs that have no shared memory of their own.

use crate::live::{AttachError, Board, Boards, ChannelBoard, InitError};
use crate::tree::Tree;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// Memory for a board: an anonymous memfd, shared by the processes that have the descriptor.
/// The kernel frees the memory when the last process has unmapped it and closed the descriptor.
///
/// A program that already has shared memory creates the
/// board in it with [`Board::init`](super::Board::init).
#[derive(Debug)]
pub struct Memory {
    fd: OwnedFd,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is not tied to a thread, and its contents are accessed as atomics only.
unsafe impl Send for Memory {}
// SAFETY: the contents of the mapping are accessed as atomics only.
unsafe impl Sync for Memory {}

/// The reason why memory for a board cannot be created or mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryError {
    /// The kernel rejected an operation.
    System {
        /// The operation that the kernel rejected.
        step: &'static str,
        /// The kernel's error number.
        errno: Errno,
    },
    /// The descriptor was not made by [`Memory::create`]; its memory could be truncated during use.
    NotSealed,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { step, errno } => write!(
                f,
                "the kernel refuses to {step} the board's memory: {errno}"
            ),
            Self::NotSealed => f.write_str(
                "the descriptor is not a board's memory: it is not sealed against shrinking",
            ),
        }
    }
}

impl std::error::Error for MemoryError {}

fn system(step: &'static str) -> impl Fn(Errno) -> MemoryError {
    move |errno| MemoryError::System { step, errno }
}

impl Memory {
    /// Creates zeroed memory of `len` bytes; child processes inherit the descriptor.
    pub fn create(len: usize) -> Result<Self, MemoryError> {
        let fd = rustix::fs::memfd_create("hwbarr", MemfdFlags::ALLOW_SEALING)
            .map_err(system("create"))?;
        rustix::fs::ftruncate(&fd, len as u64).map_err(system("size"))?;
        // The seals prevent a later change of the size, which would cause SIGBUS here.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&fd, seals).map_err(system("seal"))?;
        Self::map(fd)
    }

    /// Maps the memory that another process has created.
    pub fn map(fd: OwnedFd) -> Result<Self, MemoryError> {
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|_| MemoryError::NotSealed)?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(MemoryError::NotSealed);
        }
        let len = rustix::fs::fstat(&fd).map_err(system("measure"))?.st_size as usize;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let base =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, flags, &fd, 0) };
        let base = NonNull::new(base.map_err(system("map"))?.cast());
        let base = base.ok_or(MemoryError::System {
            step: "map",
            errno: Errno::INVAL,
        })?;
        Ok(Self { fd, base, len })
    }

    /// Creates a board in this memory; see [`Board::init`].
    pub fn init(&self, nodes: usize, record: usize) -> Result<Board<'_>, InitError> {
        // SAFETY: the memory is mapped while `self` lives, and the board borrows `self`;
        // the memory is accessed only through boards.
        unsafe { Board::init(self.base, self.len, nodes, record) }
    }

    /// Creates a version 2 board in this memory; see [`ChannelBoard::init`].
    pub fn init_channels(
        &self,
        nodes: usize,
        record: usize,
    ) -> Result<ChannelBoard<'_>, InitError> {
        // SAFETY: the memory is mapped while `self` lives, and the board borrows `self`;
        // the memory is accessed only through version 2 boards.
        unsafe { ChannelBoard::init(self.base, self.len, nodes, record) }
    }

    /// Creates the boards of a tree in this memory; see [`Boards::init`].
    pub fn init_boards(&self, tree: &Tree, record: usize) -> Result<Boards<'_>, InitError> {
        // SAFETY: the memory is mapped while `self` lives, and the boards borrow `self`;
        // the memory is accessed only through these boards.
        unsafe { Boards::init(self.base, self.len, tree, record) }
    }

    /// Attaches to the boards of a tree in this memory; see [`Boards::attach`].
    pub fn attach_boards(&self, tree: &Tree, record: usize) -> Result<Boards<'_>, AttachError> {
        // SAFETY: the memory is mapped while `self` lives, and the boards borrow `self`;
        // the memory is accessed only through these boards.
        unsafe { Boards::attach(self.base, self.len, tree, record) }
    }

    /// Attaches to the board in this memory; see [`Board::attach`].
    pub fn attach(&self) -> Result<Board<'_>, AttachError> {
        // SAFETY: the memory is mapped while `self` lives, and the board borrows `self`;
        // the memory is accessed only through boards.
        unsafe { Board::attach(self.base, self.len) }
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` describe the mapping;
        // every board borrows `self`, so no board exists.
        // The call can fail only for arguments that are not a mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
