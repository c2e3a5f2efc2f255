//! The annex: room for large blocks behind everything else in the node's file, mapped when the first of them is made or found.
//!
//! All ranks map all arenas from the start, so arenas are only as large as small blocks need.
//! Behind them the file has [`LEN`] bytes more for each rank, which cost neither memory nor addresses until a block is allocated there;
//! whether there are any follows from the length of the file.
//! A process maps all of it by extending its mapping of the segment, for which it needs no descriptor.
//! Where the system or a limit does not allow that, there are no large blocks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::arena::Arena;
use crate::mem::{PAGE, Segment};

/// Bytes for each rank.
pub(super) const LEN: usize = 16 << 30;

/// The annex as one rank sees it.
pub(super) struct Annex {
    /// Where it begins in the file.
    at: usize,
    /// Bytes of each rank; 0 if there is none.
    len: usize,
    ranks: usize,
    rank: usize,
    mapped: OnceLock<Option<Arc<Segment>>>,
    arena: Mutex<Arena>,
}

impl Annex {
    /// That of a file of `file` bytes whose other parts end at `at`.
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

    /// The part of the mapping that holds `len` bytes at place `at` of the file, and where in it they begin.
    pub fn find(&self, segment: &Segment, at: usize, len: usize) -> Option<(&Arc<Segment>, usize)> {
        let into = at.checked_sub(self.at)?;
        // No block lies in two ranks' parts.
        let in_part = into.checked_rem(self.len)?;
        let inside = into / self.len < self.ranks && in_part.checked_add(len)? <= self.len;
        let mapped = inside.then(|| self.mapped(segment))??;
        // The mapping begins with the last page of the segment.
        Some((mapped, PAGE + into))
    }

    /// The place of memory that is known by its address, if all of it is in some rank's part.
    pub fn place_of(&self, segment: &Segment, address: usize, len: usize) -> Option<usize> {
        // What has not been mapped has no addresses.
        let mapped = self.mapped.get()?.as_ref()?;
        let base = mapped.range(PAGE, 0)?.addr().get();
        let at = self.at.checked_add(address.checked_sub(base)?)?;
        self.find(segment, at, len).map(|_| at)
    }

    /// Takes a block of our own; its place in the file.
    pub fn take(&self, segment: &Segment, len: usize, align: usize) -> Option<usize> {
        let mapped = self.mapped(segment)?;
        let part = self.rank * self.len;
        let base = mapped.range(PAGE + part, 0)?.addr().get();
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let at = arena.take_beyond(base, len, align)?;
        Some(self.at + part + at)
    }

    /// Gives a block back by its place.
    pub fn give(&self, at: usize) {
        let part = self.at + self.rank * self.len;
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        arena.give(at - part);
    }
}
