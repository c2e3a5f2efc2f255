//! Lines of cells that a member requests before it needs them, so that their transfer overlaps with its work.

use super::{CellAddress, Cells};
use crate::atomic::{AtomicU64, prefetch_for_read, prefetch_for_write};
use std::ops::Deref;

/// The prefetches of one member; none waits, and none changes the cells.
pub struct Prefetch<'a, M>(pub(super) &'a Cells<M>);

impl<M: Deref<Target = [AtomicU64]>> Prefetch<'_, M> {
    /// Prefetches, for writing, the line of the next number that this member will write in the same ring.
    #[inline(always)]
    pub fn next(&self, address: CellAddress<'_>) {
        self.next_of(self.0.me, address);
    }

    /// The same for a cell of another member that this member writes.
    #[inline(always)]
    pub fn next_of(&self, member: u32, address: CellAddress<'_>) {
        prefetch_for_write(std::ptr::from_ref(self.ahead(member, address, 1)).cast());
    }

    /// Prefetches, `by` operations ahead in the same ring, the line that `member` will publish (for reading) and this member's own (for writing).
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

    /// The flag of a member, `by` operations ahead in the ring of an address.
    #[inline(always)]
    fn ahead(&self, member: u32, address: CellAddress<'_>, by: u64) -> &AtomicU64 {
        let cells = address.cell_ring.cells_of(address.number + by);
        &self.0.words[cells + member as usize * address.cell_ring.cell()]
    }
}
