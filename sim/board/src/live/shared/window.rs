//! Read-only observation of a board, or of the boards of a tree, that other processes use.
//!
//! The memory is mapped read-only, so an observer cannot disturb the board.
//! The board may be anywhere in the memory, as in the shared memory of an MPI job.

use super::layout::ALIGN;
use crate::live::board::TreeRole;
use crate::live::slots::Encoded;
use crate::live::state::State;
use crate::live::{Board, Boards, ChannelBoard, Look, channels};
use crate::tree::Tree;
use fpga_model::MAX_NODES;
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A board in the memory of other processes, mapped read-only.
#[derive(Debug)]
pub struct Window {
    pane: Pane,
    /// The board's offset in the mapping, in bytes.
    at: usize,
}

/// A read-only mapping of a whole file.
#[derive(Debug)]
struct Pane {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is not tied to a thread, and its contents are read as atomics only.
unsafe impl Send for Pane {}

impl Window {
    /// Finds the first board in this file, which is a memfd of another process.
    pub fn open(file: &File) -> Result<Option<Self>, Errno> {
        let pane = Pane::map(file)?;
        let mut from = 0;
        // Holes are skipped: reading one would allocate memory for it.
        while let Some(data) = extent(file, from, SeekFrom::Data)? {
            let end = extent(file, data, SeekFrom::Hole)?.unwrap_or(pane.len as u64);
            let end = usize::try_from(end).unwrap_or(pane.len).min(pane.len);
            let first = (data as usize).next_multiple_of(ALIGN);
            let mut places = (first..end).step_by(ALIGN);
            if let Some(at) = places.find(|at| pane.look(*at).is_some()) {
                return Ok(Some(Self { pane, at }));
            }
            from = end as u64;
        }
        Ok(None)
    }

    /// Returns the present state; `None` if the board no longer exists.
    pub fn look(&self) -> Option<Look> {
        let seen = self.pane.look(self.at)?;
        // The state is meaningless if the memory was reused during the read.
        let is_there = self.pane.board(self.at).is_some() || self.pane.channels(self.at).is_some();
        is_there.then_some(seen)
    }
}

impl Pane {
    fn map(file: &File) -> Result<Self, Errno> {
        let len = usize::try_from(fstat(file)?.st_size).map_err(|_| Errno::OVERFLOW)?;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, file, 0)
        }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::INVAL)?;
        Ok(Self { base, len })
    }

    /// Attaches to the board of version 1 at this offset, for reading only.
    /// Callers must not hand out the board:
    /// `Board` has methods that write, and this mapping is read-only.
    fn board(&self, at: usize) -> Option<Board<'_>> {
        let (place, len) = self.place(at, State::MAGIC)?;
        // SAFETY: the mapping exists while `self` is borrowed. The board is only read, as atomics,
        // so an invalid value of another process becomes at worst a meaningless number.
        unsafe { Board::attach(place, len) }.ok()
    }

    /// Attaches to the board of version 2 at this offset, for reading only.
    fn channels(&self, at: usize) -> Option<ChannelBoard<'_>> {
        let (place, len) = self.place(at, channels::State::MAGIC)?;
        // SAFETY: the mapping exists while `self` is borrowed, so it outlives the board,
        // and the board is only read, as atomics.
        unsafe { ChannelBoard::attach(place, len) }.ok()
    }

    /// Returns the address at offset `at` of the mapping,
    /// and the number of bytes from it to the end.
    /// Returns `None` if the magic number `magic` is not at that address.
    fn place(&self, at: usize, magic: u64) -> Option<(NonNull<u8>, usize)> {
        let len = self.len.checked_sub(at)?;
        if len < size_of::<u64>() || !at.is_multiple_of(ALIGN) {
            return None;
        }
        // SAFETY: the range check above ensures that `at` is inside the mapping.
        let place = unsafe { self.base.add(at) };
        // SAFETY: the eight bytes are inside the mapping,
        // and aligned because a mapping begins at a page;
        // every bit pattern is a number.
        let found = unsafe { place.cast::<AtomicU64>().as_ref() };
        // Only the magic number is read first: most offsets have no board,
        // and the remaining header may be in a hole.
        (found.load(Ordering::Relaxed) == magic).then_some((place, len))
    }
}

impl Pane {
    /// Returns the state of the board at this offset.
    /// If the board is the first of a tree whose boards all exist, returns the state of the tree.
    fn look(&self, at: usize) -> Option<Look> {
        if let Some(channels) = self.channels(at) {
            return Some(channels.look());
        }
        let board = self.board(at)?;
        match board.tree() {
            TreeRole::No => {
                let look = Look::at(&board.snapshot(), board.nodes(), board.core().claimed());
                Some(look.beside(board.line_look()))
            }
            TreeRole::First { nodes, lowest } => {
                let boards = self.boards(at, nodes, lowest, board.core().geometry().capacity)?;
                Some(boards.look())
            }
            TreeRole::Later => None,
        }
    }

    /// Returns the boards of the tree that begins at this offset; the record of each board has `each` entries.
    fn boards(&self, at: usize, nodes: usize, lowest: usize, each: usize) -> Option<Boards<'_>> {
        let len = self.len.checked_sub(at)?;
        // Another process wrote these numbers, so they are checked: the boards must fit into the
        // remaining memory, and the boards must have enough wires for the nodes.
        if lowest > len / size_of::<super::layout::Header>() || nodes > lowest * MAX_NODES {
            return None;
        }
        let tree = Tree::new(nodes, lowest);
        let record = each.checked_mul(tree.boards())?;
        // SAFETY: `len` bytes from `at` are inside the mapping,
        // which exists while `self` is borrowed;
        // the boards are only read, as atomics.
        unsafe { Boards::attach(self.base.add(at), len, &tree, record) }.ok()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` describe the mapping that `map` created;
        // every board borrows `self`, so no board exists.
        // The call can fail only for arguments that are not a mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Returns the offset at which the next data or the next hole begins; `None` after the last one.
fn extent(file: &File, from: u64, kind: fn(u64) -> SeekFrom) -> Result<Option<u64>, Errno> {
    match seek(file, kind(from)) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(e) => Err(e),
    }
}
