//! The order of accesses to one member in a recorded or replayed run: counters of turns.
//! One counter counts drawn turns, the other one completed turns.

use mpi_base::atomic::{AtomicU32, Ordering};

/// The turn counters of one member; zeroed memory is the initial state.
#[repr(C, align(64))]
pub(crate) struct AccessOrder {
    next: AtomicU32,
    now: AtomicU32,
}

impl AccessOrder {
    /// Draws the next turn.
    pub fn draw(&self) -> u32 {
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// Returns true if turn `number` is due.
    pub fn has_come(&self, number: u32) -> bool {
        self.now.load(Ordering::Acquire) == number
    }
}

/// A turn in progress. Dropping it starts the next turn.
#[must_use]
pub(crate) struct OrderedAccess<'a>(Option<&'a AccessOrder>);

impl<'a> OrderedAccess<'a> {
    /// Begins a turn that is due.
    pub fn begin(access_order: &'a AccessOrder) -> OrderedAccess<'a> {
        OrderedAccess(Some(access_order))
    }

    /// Returns a turn without an effect: the run is not recorded, or the member is on another node.
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
