//! Blocks of shared memory. A block is allocated from one rank's arena or part of the annex,
//! is identified by its offset in the node's file, and can be used by all ranks.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::{KEPT, Node};
use crate::arena::{Arena, GRAIN};
use crate::kept_pages::KeptPages;
use crate::mem::{Held, PAGE, Segment, Shared};

/// The offset of a block in the node's file, which identifies the block in all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShmOffset(pub u64);

/// The contents of a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// All bytes are zero.
    Zeroes,
    /// Any bytes, also those of an earlier block: for memory that its user writes before it reads it.
    Any,
}

impl Node {
    /// Allocates zeroed memory from this rank's arena, aligned in this process's address space.
    /// Returns `None` if no block of that length is free.
    pub fn alloc(&self, len: usize, align: usize) -> Option<ShmBlock> {
        self.alloc_in_arena(len, align, Contents::Zeroes)
    }

    fn alloc_in_arena(&self, len: usize, align: usize, contents: Contents) -> Option<ShmBlock> {
        if !align.is_power_of_two() {
            return None;
        }
        // Mappings of other processes are only page-aligned, so a larger alignment holds only in the owner.
        let arena = self.0.layout.arena(self.rank());
        let base = self.0.segment.range(arena, 0)?.addr().get();
        let at = self.arena().take_beyond(base, len, align)?;
        let whole = len.max(1).next_multiple_of(GRAIN);
        let kept = self.kept_pages().take(at..at + whole);
        if contents == Contents::Zeroes {
            for range in kept {
                // SAFETY: the range is inside the block, which no process uses before this function returns it.
                unsafe { self.clear(arena + range.start..arena + range.end) };
            }
        }
        Some(ShmBlock {
            node: self.clone(),
            at: arena + at,
            large: false,
            len,
            // The bytes behind the requested length may come from an earlier block, too.
            used: match contents {
                Contents::Zeroes => len,
                Contents::Any => whole,
            },
            contents,
            kept: false,
        })
    }

    /// As [`Node::alloc`], for blocks of any length:
    /// a block that does not fit into the arena is allocated in the annex.
    pub fn alloc_large(&self, len: usize, align: usize) -> Option<ShmBlock> {
        self.alloc_with(len, align, Contents::Zeroes)
    }

    /// As [`Node::alloc_large`], with the given contents.
    pub fn alloc_with(&self, len: usize, align: usize, contents: Contents) -> Option<ShmBlock> {
        if let Some(block) = self.alloc_in_arena(len, align, contents) {
            return Some(block);
        }
        if !align.is_power_of_two() {
            return None;
        }
        let at = self.0.annex.take(&self.0.segment, len, align)?;
        Some(ShmBlock {
            node: self.clone(),
            at,
            large: true,
            len,
            used: len,
            contents,
            kept: false,
        })
    }

    /// Returns the mapping that contains the `len` bytes at an offset which another rank has sent,
    /// and the bytes' offset in the mapping. Returns `None` outside of all arenas and the annex.
    fn block_at(&self, offset: ShmOffset, len: usize) -> Option<(&Arc<Segment>, usize)> {
        let at = usize::try_from(offset.0).ok()?;
        match self.0.layout.owner(at, len) {
            Some(_) => Some((&self.0.segment, at)),
            None => self.0.annex.find(&self.0.segment, at, len),
        }
    }

    /// Returns the address of `len` bytes of this rank's memory at offset `at`.
    fn range(&self, at: usize, len: usize) -> Option<NonNull<u8>> {
        match self.0.segment.range(at, len) {
            None => {
                let (segment, at) = self.0.annex.find(&self.0.segment, at, len)?;
                segment.range(at, len)
            }
            some => some,
        }
    }

    /// Returns the length in bytes of the longest block that this rank's arena can allocate now.
    pub fn longest_free(&self) -> usize {
        self.arena().longest_free()
    }

    /// Maps the pages of the first `len` bytes of a block before their first use,
    /// so that their first use causes no page fault.
    pub fn map_ahead(&self, offset: ShmOffset, len: usize) {
        if let Some((segment, at)) = self.block_at(offset, len)
            && let Some(start) = segment.range(at, len)
        {
            crate::mem::map_present(start, len);
        }
    }

    /// Returns the address in this process of a block whose offset its owner has sent.
    /// Returns `None` if the block is not inside one rank's arena or part of the annex.
    pub fn resolve(&self, offset: ShmOffset, len: usize) -> Option<*mut u8> {
        let (segment, at) = self.block_at(offset, len)?;
        Some(segment.range(at, len)?.as_ptr())
    }

    /// Returns the offset of the memory at `address` in this process.
    /// Returns `None` if the memory is not inside one rank's arena or part of the annex.
    pub fn place_of(&self, address: usize, len: usize) -> Option<ShmOffset> {
        let base = self.0.segment.range(0, 0)?.addr().get();
        let in_arena = address.checked_sub(base).filter(|at| {
            let owner = self.0.layout.owner(*at, len);
            owner.is_some()
        });
        let large = || self.0.annex.place_of(&self.0.segment, address, len);
        let at = in_arena.or_else(large)?;
        Some(ShmOffset(at as u64))
    }

    /// Returns `count` shared values in a block whose offset its owner has sent.
    /// Returns `None` if the values are not within one rank's arena or part of the annex.
    ///
    /// A caller that uses a block in this way must not concurrently access the same bytes
    /// through [`Node::resolve`].
    pub fn shared<T: Shared>(&self, offset: ShmOffset, count: usize) -> Option<&[T]> {
        let (segment, at) = self.block_at(offset, size_of::<T>().checked_mul(count)?)?;
        segment.slice(at, count)
    }

    /// As [`Node::shared`] for one value, with a reference that keeps the node's memory mapped.
    pub fn hold<T: Shared>(&self, offset: ShmOffset) -> Option<Held<T>> {
        let (segment, at) = self.block_at(offset, size_of::<T>())?;
        Held::new(segment, at)
    }

    /// As [`Node::shared`] for a slice, with a reference that keeps the node's memory mapped.
    pub fn hold_all<T: Shared>(&self, offset: ShmOffset, count: usize) -> Option<Held<[T]>> {
        let len = size_of::<T>().checked_mul(count)?;
        let (segment, at) = self.block_at(offset, len)?;
        Held::slice(segment, at, count)
    }

    /// Returns the number of bytes of this rank's free memory that are kept.
    /// Some of them may have no memory.
    pub fn kept_bytes(&self) -> usize {
        self.kept_pages().bytes()
    }

    fn arena(&self) -> MutexGuard<'_, Arena> {
        self.0.arena.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_pages(&self) -> MutexGuard<'_, KeptPages> {
        let kept = self.0.kept_pages.lock();
        kept.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block of this rank's arena or annex. Dropping the value frees the block,
/// and keeps its memory for the next block or returns the memory to the kernel.
///
/// The owner drops the block only when no process uses it any more.
#[derive(Debug)]
pub struct ShmBlock {
    node: Node,
    /// The block's offset in the node's file.
    at: usize,
    /// True if the block is in the annex.
    large: bool,
    len: usize,
    /// Number of bytes at the block's start that processes may have written (all bytes if unknown);
    /// all later bytes are zero.
    used: usize,
    /// The contents with which the block was allocated.
    contents: Contents,
    /// True if other ranks may use the block until the node's memory is freed;
    /// dropping the value then does nothing.
    kept: bool,
}

/// Minimum length in bytes of memory for which the kernel is asked which pages exist.
/// The query takes 3 us, longer than zeroing this many bytes.
const LONG: usize = 16 << 10;

/// Maximum length in bytes of a block of which only the pages with memory are kept.
const LONGEST_KEPT: usize = 64 << 20;

impl ShmBlock {
    /// Returns the block's offset, which identifies it in other processes.
    pub fn place(&self) -> ShmOffset {
        ShmOffset(self.at as u64)
    }

    /// Returns the requested length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the requested length was 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the block's address in this process.
    pub fn as_ptr(&self) -> *mut u8 {
        self.node
            .range(self.at, self.len)
            .map_or(std::ptr::null_mut(), |p| p.as_ptr())
    }

    /// Declares that processes have written only the first `used` bytes,
    /// so that only those bytes are zeroed for the next block.
    /// Without effect on a block that was allocated with any contents.
    pub fn is_clean_behind(&mut self, used: usize) {
        if self.contents == Contents::Zeroes {
            self.used = used.min(self.len);
        }
    }

    /// Leaves the block allocated until the node's memory is freed,
    /// for an owner that ends before other users of the block.
    pub fn abandon(mut self) {
        self.kept = true;
    }
}

impl Drop for ShmBlock {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let node = &self.node;
        let large = self.large.then(|| {
            let whole = node.0.annex.find(&node.0.segment, self.at, self.len);
            whole.map(|(segment, at)| (segment.clone(), at))
        });
        let (segment, at) = match large {
            None => (node.0.segment.clone(), self.at),
            Some(Some(found)) => found,
            // Unreachable: the annex was mapped when the block was allocated.
            Some(None) => return,
        };
        if self.large || !self.keep() {
            // SAFETY: the block belongs to this rank. By the contract of `ShmBlock` no process uses it
            // when it is dropped, and it can be allocated again only afterwards.
            unsafe { give_back(&segment, at..at + self.used) };
        }
        match self.large {
            true => node.0.annex.give(self.at),
            false => {
                let arena = node.0.layout.arena(node.rank());
                node.arena().give(self.at - arena);
            }
        }
    }
}

impl ShmBlock {
    /// Keeps the memory of this block of the arena for the next block.
    /// Returns false if it exceeds the limit.
    fn keep(&self) -> bool {
        let arena = self.node.0.layout.arena(self.node.rank());
        let used = self.at..self.at + self.used;
        let in_arena = |range: &Range<usize>| {
            range.start.max(used.start) - arena..range.end.min(used.end) - arena
        };
        let limit = KEPT / self.node.nlocal() as usize;
        if self.used < LONG || self.used <= limit / 8 {
            // A short block counts as if all of its pages had memory.
            return used.is_empty() || self.node.kept_pages().keep(&[in_arena(&used)]);
        }
        if self.used > LONGEST_KEPT {
            return false;
        }
        let Some(written) = self.node.0.memory_file.data(whole_pages(&used)) else {
            return false;
        };
        let written: Vec<_> = written.iter().map(in_arena).collect();
        self.node.kept_pages().keep(&written)
    }
}

impl Node {
    /// Zeroes a range of this rank's arena. In a long range, pages that have no memory get none if the kernel reports them.
    ///
    /// # Safety
    /// No process uses the range.
    unsafe fn clear(&self, range: Range<usize>) {
        let segment = &self.0.segment;
        if range.len() < LONG {
            // SAFETY: by this function's contract no process uses the range.
            return unsafe { zero(segment, range) };
        }
        match self.0.memory_file.data(whole_pages(&range)) {
            Some(written) => {
                for run in written {
                    let run = run.start.max(range.start)..run.end.min(range.end);
                    // SAFETY: by this function's contract no process uses the range.
                    unsafe { zero(segment, run) };
                }
            }
            // SAFETY: by this function's contract no process uses the range.
            None => unsafe { give_back(segment, range) },
        }
    }
}

/// Zeroes a range of a segment, and returns its whole pages to the kernel.
///
/// # Safety
/// No process uses the range until it is allocated again.
unsafe fn give_back(segment: &Segment, range: Range<usize>) {
    // SAFETY: by this function's contract no process uses the range.
    let done = unsafe { segment.punch_hole(range.start, range.len()) };
    let (first_page, last_page) = (range.start.next_multiple_of(PAGE), range.end / PAGE * PAGE);
    let rest = match done {
        Ok(()) if first_page < last_page => [range.start..first_page, last_page..range.end],
        _ => [range, 0..0],
    };
    for range in rest {
        // SAFETY: by this function's contract no process uses the range.
        unsafe { zero(segment, range) };
    }
}

/// Returns the range of the pages that contain a range.
fn whole_pages(range: &Range<usize>) -> Range<usize> {
    range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE)
}

/// Zeroes a range of a segment.
///
/// # Safety
/// No process uses the range.
unsafe fn zero(segment: &Segment, range: Range<usize>) {
    if let Some(start) = segment.range(range.start, range.len()) {
        // Other ranks may have written pages that this process has never accessed.
        if range.len() >= LONG {
            crate::mem::map_present(start, range.len());
        }
        // SAFETY: `range` has checked that the bytes are inside the mapping,
        // and by this function's contract no process uses them.
        unsafe { start.as_ptr().write_bytes(0, range.len()) };
    }
}
