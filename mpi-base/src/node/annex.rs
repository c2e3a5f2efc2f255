//! The annex: the region for large blocks at the end of the node's file,
//! mapped when a rank first allocates or resolves such a block.
//!
//! All ranks map all arenas from the start, so arenas are sized for small blocks.
//! After the arenas the file has [`LEN`] more bytes per rank.
//! These bytes need neither memory nor addresses until a block is allocated in the annex.
//! The annex exists only if the file is long enough for it.
//! A process maps the whole annex by extending its mapping of the segment, without a descriptor.
//! If the kernel or a limit does not allow that mapping, large blocks are not available.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::arena::Arena;
use crate::mem::{PAGE, Segment};

/// Length of each rank's part of the annex, in bytes.
pub(super) const LEN: usize = 16 << 30;

/// One rank's view of the annex.
pub(super) struct Annex {
    /// The annex's offset in the node's file.
    at: usize,
    /// Bytes of the annex per rank; 0 if there is no annex.
    len: usize,
    ranks: usize,
    rank: usize,
    mapped: OnceLock<Option<Arc<Segment>>>,
    arena: Mutex<Arena>,
}

impl Annex {
    /// Creates the view for a file of `file` bytes; the annex begins at offset `at`.
    pub fn new(at: usize, file: usize, ranks: u32, rank: u32) -> Annex {
        let ranks = ranks as usize;
        let len = file.saturating_sub(at) / ranks.max(1) / PAGE * PAGE;
        Annex {
            at,
            len,
            ranks,
            rank: rank as usize,
            mapped: OnceLock::new(),
            arena: Mutex::new(Arena::new(len)),
        }
    }

    fn mapped(&self, segment: &Segment) -> Option<&Arc<Segment>> {
        let map = || {
            let all = self.len.checked_mul(self.ranks).filter(|all| *all > 0)?;
            segment.extended(all).map(Arc::new)
        };
        self.mapped.get_or_init(map).as_ref()
    }

    /// Returns the mapping that contains the `len` bytes at offset `at` of the file,
    /// and the bytes' offset in the mapping.
    pub fn find(&self, segment: &Segment, at: usize, len: usize) -> Option<(&Arc<Segment>, usize)> {
        let into = at.checked_sub(self.at)?;
        // A block is never in the parts of two ranks.
        let in_part = into.checked_rem(self.len)?;
        let inside = into / self.len < self.ranks && in_part.checked_add(len)? <= self.len;
        let mapped = inside.then(|| self.mapped(segment))??;
        // The mapping begins with the last page of the segment, so the annex is one page later.
        Some((mapped, PAGE + into))
    }

    /// Returns the file offset of the memory at `address`; `None` outside of one rank's part.
    pub fn place_of(&self, segment: &Segment, address: usize, len: usize) -> Option<usize> {
        // An annex that is not mapped has no addresses.
        let mapped = self.mapped.get()?.as_ref()?;
        let base = mapped.range(PAGE, 0)?.addr().get();
        let at = self.at.checked_add(address.checked_sub(base)?)?;
        self.find(segment, at, len).map(|_| at)
    }

    /// Allocates a block in this rank's part of the annex and returns its offset in the file.
    pub fn take(&self, segment: &Segment, len: usize, align: usize) -> Option<usize> {
        let mapped = self.mapped(segment)?;
        let part = self.rank * self.len;
        let base = mapped.range(PAGE + part, 0)?.addr().get();
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let at = arena.take_beyond(base, len, align)?;
        Some(self.at + part + at)
    }

    /// Frees the block at offset `at` of the file.
    pub fn give(&self, at: usize) {
        let part = self.at + self.rank * self.len;
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        arena.give(at - part);
    }
}
