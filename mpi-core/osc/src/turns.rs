//! The turns of accesses to one member, in a run that is recorded or replayed.

use mpi_base::atomic::{AtomicU32, Ordering};

/// The turns of one member; zeroed, none has been taken.
#[repr(C, align(64))]
pub(super) struct Turns {
    next: AtomicU32,
    now: AtomicU32,
}

impl Turns {
    /// Draws the next turn.
    pub fn draw(&self) -> u32 {
        self.next.fetch_add(1, Ordering::AcqRel)
    }

    /// Whether the turn of a number has come.
    pub fn has_come(&self, number: u32) -> bool {
        self.now.load(Ordering::Acquire) == number
    }
}

/// An access whose turn it is; the next may begin when it is dropped.
#[must_use]
pub(super) struct Turn<'a>(Option<&'a Turns>);

impl<'a> Turn<'a> {
    /// Its turn has come.
    pub fn begin(turns: &'a Turns) -> Turn<'a> {
        Turn(Some(turns))
    }

    /// There are no turns: the run is not recorded, or the member is elsewhere.
    pub fn free() -> Turn<'a> {
        Turn(None)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(turns) = self.0 {
            turns.now.fetch_add(1, Ordering::AcqRel);
        }
    }
}
