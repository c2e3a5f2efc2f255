//! The order of accesses to one member in a recorded or replayed job.
//! The turn of an access is its number in this order.
//! One counter counts drawn turns, another one counts completed turns.

use mpi_base::atomic::{AtomicU32, Ordering};

/// The turn counters of one member; zeroed memory is the initial state.
#[repr(C, align(64))]
pub(crate) struct AccessOrder {
    next: AtomicU32,
    now: AtomicU32,
}

impl AccessOrder {
    /// Draws the number of the next turn.
    pub fn draw(&self) -> u32 {
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// Returns true if all turns before turn `number` have ended.
    pub fn has_come(&self, number: u32) -> bool {
        self.now.load(Ordering::Acquire) == number
    }
}

/// An access whose turn has started. Dropping this value starts the next turn.
#[must_use]
pub(crate) struct OrderedAccess<'a>(Option<&'a AccessOrder>);

impl<'a> OrderedAccess<'a> {
    /// Begins an access whose turn has started.
    pub fn begin(access_order: &'a AccessOrder) -> OrderedAccess<'a> {
        OrderedAccess(Some(access_order))
    }

    /// Returns an access without a turn: the job is not recorded, or the member is on another node.
    pub fn free() -> OrderedAccess<'a> {
        OrderedAccess(None)
    }
}

impl Drop for OrderedAccess<'_> {
    fn drop(&mut self) {
        if let Some(access_order) = self.0 {
            access_order.now.fetch_add(1, Ordering::AcqRel);
        }
    }
}
