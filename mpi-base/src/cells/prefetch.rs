//! Prefetches of cells' cache lines: their transfer overlaps with the member's other work.

use super::{CellAddress, Cells};
use crate::atomic::{AtomicU64, prefetch_for_read, prefetch_for_write};
use std::ops::Deref;

/// The prefetches of one member, which neither wait nor change the cells.
pub struct Prefetch<'a, M>(pub(super) &'a Cells<M>);

impl<M: Deref<Target = [AtomicU64]>> Prefetch<'_, M> {
    /// Prefetches, for writing, the first line of this member's cell of an operation.
    pub fn own(&self, address: CellAddress<'_>) {
        prefetch_for_write(std::ptr::from_ref(self.0.flag(self.0.me, address)).cast());
    }

    /// Prefetches, for writing, the first line of this member's cell of the ring's next operation.
    #[inline(always)]
    pub fn next(&self, address: CellAddress<'_>) {
        self.next_of(self.0.me, address);
    }

    /// Prefetches, for writing, the first line of `member`'s cell of the ring's next operation.
    #[inline(always)]
    pub fn next_of(&self, member: u32, address: CellAddress<'_>) {
        prefetch_for_write(std::ptr::from_ref(self.ahead(member, address, 1)).cast());
    }

    /// Prefetches the first lines of two cells of the operation that is `by` operations later in
    /// the same ring: for reading, that of `member`; for writing, that of this member.
    #[inline(always)]
    pub fn both(&self, address: CellAddress<'_>, by: u64, member: u32) {
        let flag = |member| std::ptr::from_ref(self.ahead(member, address, by)).cast();
        prefetch_for_read(flag(member));
        prefetch_for_write(flag(self.0.me));
    }

    /// Prefetches the first line of every member's cell of an operation.
    pub fn all(&self, address: CellAddress<'_>) {
        for member in 0..self.0.members {
            prefetch_for_read(std::ptr::from_ref(self.0.flag(member, address)).cast());
        }
    }

    /// Returns the operation number's word in a member's cell, `by` operations after `address`.
    #[inline(always)]
    fn ahead(&self, member: u32, address: CellAddress<'_>, by: u64) -> &AtomicU64 {
        let cells = address.cell_ring.cells_of(address.number + by);
        &self.0.words[cells + member as usize * address.cell_ring.cell()]
    }
}
