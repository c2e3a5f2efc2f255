//! The descriptor of a rank's event ring, stored in its control page.
//!
//! The owner publishes the ring's location one time, and later updates only the number of cells
//! written. All words are zero if the rank has no event ring.
#![allow(unsafe_code)]

use super::clock::Moment;
use crate::atomic::{AtomicU64, Ordering};
use crate::mem::Shared;

#[repr(C)]
pub(super) struct EventRingHead {
    place: AtomicU64,
    cells: AtomicU64,
    written: AtomicU64,
    /// The creation time of the ring, in ticks of the time stamp counter and in `ns` of the kernel's clock.
    /// Both are zero if the ring uses the kernel's clock.
    ticks: AtomicU64,
    ns: AtomicU64,
}

// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl Shared for EventRingHead {}

impl std::fmt::Debug for EventRingHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventRingHead").finish_non_exhaustive()
    }
}

impl EventRingHead {
    /// Returns true if the rank has an event ring.
    pub(super) fn is_told(&self) -> bool {
        self.cells.load(Ordering::Relaxed) != 0
    }

    /// Publishes the event ring's offset and number of cells.
    /// `moment` is the creation time on both clocks if the times of the ring are ticks.
    pub(super) fn tell(&self, place: u64, cells: u64, moment: Option<Moment>) {
        self.place.store(place, Ordering::Relaxed);
        if let Some(moment) = moment {
            self.ns.store(moment.ns, Ordering::Relaxed);
            self.ticks.store(moment.ticks, Ordering::Release);
        }
        self.cells.store(cells, Ordering::Release);
    }

    /// Returns the event ring's offset and number of cells.
    pub(super) fn place(&self) -> (u64, u64) {
        let cells = self.cells.load(Ordering::Acquire);
        (self.place.load(Ordering::Relaxed), cells)
    }

    /// Publishes the number of cells written; all of these cells are complete.
    #[inline]
    pub(super) fn set_written(&self, written: u64) {
        // SYNC POINT event_ring.written
        self.written.store(written, Ordering::Release);
    }

    /// Returns the number of cells written; all of these cells are complete.
    pub(super) fn written(&self) -> u64 {
        // SYNC POINT event_ring.written
        self.written.load(Ordering::Acquire)
    }

    /// Returns the time at which the event ring was created, on both clocks;
    /// `None` if the times of the ring are not ticks.
    pub(super) fn moment(&self) -> Option<Moment> {
        let ticks = self.ticks.load(Ordering::Acquire);
        let ns = self.ns.load(Ordering::Relaxed);
        (ticks != 0).then_some(Moment { ticks, ns })
    }
}
