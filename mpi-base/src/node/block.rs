//! Blocks of shared memory: taken from one rank's arena, named by their place, used by all.

use std::sync::PoisonError;

use super::Node;
use crate::arena::Arena;
use crate::mem::{Held, PAGE, Shared};

/// A block of shared memory as others are told of it: its place in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShmOffset(pub u64);

impl Node {
    /// Takes zeroed memory from our arena for others to see, aligned in our address space; `None` if there is none of that length.
    pub fn alloc(&self, len: usize, align: usize) -> Option<ShmBlock> {
        if !align.is_power_of_two() {
            return None;
        }
        // Mappings begin at pages, so that a block may be aligned to more at its owner only.
        let arena = self.0.layout.arena(self.rank());
        let base = self.0.segment.range(arena, 0)?.addr().get();
        let at = self.arena().take_beyond(base, len, align)?;
        Some(ShmBlock {
            node: self.clone(),
            at,
            len,
            used: len,
            kept: false,
        })
    }

    /// How long a block our arena could give now.
    pub fn longest_free(&self) -> usize {
        self.arena().longest_free()
    }

    /// The address here of a block that its owner named by its place, if it is inside somebody's arena.
    pub fn resolve(&self, place: ShmOffset, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(place.0).ok()?;
        self.0.layout.owner(at, len)?;
        Some(self.0.segment.range(at, len)?.as_ptr())
    }

    /// The place of memory that this process knows by its address, if all of it is inside somebody's arena.
    pub fn place_of(&self, address: usize, len: usize) -> Option<ShmOffset> {
        let base = self.0.segment.range(0, 0)?.addr().get();
        let at = address.checked_sub(base)?;
        self.0.layout.owner(at, len)?;
        Some(ShmOffset(at as u64))
    }

    /// `count` shared values in a block that its owner named by its place, if they are inside somebody's arena.
    ///
    /// Whoever uses a block this way must not use the same bytes through [`Node::resolve`] at the same time.
    pub fn shared<T: Shared>(&self, place: ShmOffset, count: usize) -> Option<&[T]> {
        let at = usize::try_from(place.0).ok()?;
        self.0
            .layout
            .owner(at, size_of::<T>().checked_mul(count)?)?;
        self.0.segment.slice(at, count)
    }

    /// Like [`Node::shared`] for one value, kept together with the node's memory.
    pub fn hold<T: Shared>(&self, place: ShmOffset) -> Option<Held<T>> {
        let at = usize::try_from(place.0).ok()?;
        self.0.layout.owner(at, size_of::<T>())?;
        Held::new(&self.0.segment, at)
    }

    /// Like [`Node::shared`], kept together with the node's memory.
    pub fn hold_all<T: Shared>(&self, place: ShmOffset, count: usize) -> Option<Held<[T]>> {
        let at = usize::try_from(place.0).ok()?;
        let len = size_of::<T>().checked_mul(count)?;
        self.0.layout.owner(at, len)?;
        Held::slice(&self.0.segment, at, count)
    }

    fn arena(&self) -> std::sync::MutexGuard<'_, Arena> {
        self.0.arena.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block of our arena; returned when dropped, its memory zeroed or given back to the system.
///
/// The owner sees to it that nobody uses the block any more when it drops it.
#[derive(Debug)]
pub struct ShmBlock {
    node: Node,
    at: usize,
    len: usize,
    /// Nobody has written behind so many bytes.
    used: usize,
    /// Others may use it for as long as the node's memory exists.
    kept: bool,
}

/// From this length on, the used memory of a returned block goes back to the system.
const PUNCH: usize = 64 << 10;

impl ShmBlock {
    /// The block's name for others.
    pub fn place(&self) -> ShmOffset {
        ShmOffset(self.offset() as u64)
    }

    /// In bytes, as it was asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no bytes were asked for.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block's address here.
    pub fn as_ptr(&self) -> *mut u8 {
        self.node
            .0
            .segment
            .range(self.offset(), self.len)
            .map_or(std::ptr::null_mut(), |p| p.as_ptr())
    }

    /// Says that nobody has written behind the first `used` bytes, so that only those are cleaned when the block is returned.
    pub fn is_clean_behind(&mut self, used: usize) {
        self.used = used.min(self.len);
    }

    /// Leaves the block as it is for as long as the node's memory exists, for an owner that goes before its users.
    pub fn abandon(mut self) {
        self.kept = true;
    }

    fn offset(&self) -> usize {
        self.node.0.layout.arena(self.node.rank()) + self.at
    }
}

impl Drop for ShmBlock {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let segment = &self.node.0.segment;
        let (from, to) = (self.offset(), self.offset() + self.used);
        let (first_page, last_page) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
        // SAFETY: the block is ours and out of use by the owner's promise; it becomes free only below.
        let punched = self.used >= PUNCH
            && unsafe { segment.punch_hole(first_page, last_page - first_page) }.is_ok();
        let dirty = if punched {
            [(from, first_page), (last_page, to)]
        } else {
            [(from, to), (to, to)]
        };
        for (from, to) in dirty {
            if let Some(p) = segment.range(from, to - from) {
                // SAFETY: inside the block, which nobody uses any more.
                unsafe { p.as_ptr().write_bytes(0, to - from) };
            }
        }
        self.node.arena().give(self.at);
    }
}
