//! Read-only observation of a board, or of the boards of a tree, that other processes use.
//!
//! The memory is mapped read-only, so an observer cannot disturb the board.
//! The memory around the board may contain anything, as in the memory of an MPI job.

use super::layout::{ALIGN, MAGIC};
use crate::live::board::OfTree;
use crate::live::{Board, Boards, Look};
use crate::virtual_time::Tree;
use fpga_model::MAX_NODES;
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A board in other processes' memory, read-only.
#[derive(Debug)]
pub struct Window {
    pane: Pane,
    /// Offset of the board.
    at: usize,
}

/// A read-only mapping of a whole file.
#[derive(Debug)]
struct Pane {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is not tied to a thread, and what it holds is read as atomics only.
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

    /// Returns the present state; `None` if there is no board any more.
    pub fn look(&self) -> Option<Look> {
        let seen = self.pane.look(self.at)?;
        // If the memory was reused meanwhile, the state is meaningless.
        self.pane.board(self.at).is_some().then_some(seen)
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

    /// Attaches to the board at this offset, for reading; the caller does not expose it.
    fn board(&self, at: usize) -> Option<Board<'_>> {
        let len = self.len.checked_sub(at)?;
        if len < size_of::<u64>() || !at.is_multiple_of(ALIGN) {
            return None;
        }
        // SAFETY: the check above has shown that `at` is inside the mapping.
        let place = unsafe { self.base.add(at) };
        // SAFETY: eight bytes of the mapping, aligned because a mapping begins at a page; every bit pattern is a number.
        let magic = unsafe { place.cast::<AtomicU64>().as_ref() };
        // Checked alone first: most offsets have no board, and the rest of a header may be in a hole.
        if magic.load(Ordering::Relaxed) != MAGIC {
            return None;
        }
        // SAFETY: the mapping stays while `self` is borrowed; through the board it is only read, as atomics,
        // so whatever other processes write there is at worst a meaningless number.
        unsafe { Board::attach(place, len) }.ok()
    }
}

impl Pane {
    /// Reads what begins at this offset: a single board or, once all its boards exist, a tree.
    fn look(&self, at: usize) -> Option<Look> {
        let board = self.board(at)?;
        match board.tree() {
            OfTree::No => {
                let look = Look::at(&board.snapshot(), board.nodes(), board.claimed());
                Some(look.beside(board.line_look()))
            }
            OfTree::First { nodes, lowest } => {
                let boards = self.boards(at, nodes, lowest, board.capacity())?;
                Some(boards.look())
            }
            OfTree::Later => None,
        }
    }

    /// Attaches to the boards of a tree at this offset, each with a record of `each` events.
    fn boards(&self, at: usize, nodes: usize, lowest: usize, each: usize) -> Option<Boards<'_>> {
        let len = self.len.checked_sub(at)?;
        // Another process may have written invalid numbers: the boards must fit the memory, and the nodes the boards.
        if lowest > len / size_of::<super::layout::Header>() || nodes > lowest * MAX_NODES {
            return None;
        }
        let tree = Tree::new(nodes, lowest);
        let record = each.checked_mul(tree.boards())?;
        // SAFETY: as in `board`.
        unsafe { Boards::attach(self.base.add(at), len, &tree, record) }.ok()
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` are the mapping's, and every board borrows `self`, so none is left.
        // Unmapping can only fail for arguments that are not a mapping.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Returns the offset of the next data, or of the next hole; `None` after the last.
fn extent(file: &File, from: u64, kind: fn(u64) -> SeekFrom) -> Result<Option<u64>, Errno> {
    match seek(file, kind(from)) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(e) => Err(e),
    }
}
