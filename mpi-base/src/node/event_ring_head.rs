//! Where a rank's tape is: the part of its control page that tells of it.
//!
//! The owner tells of its tape once, and then only how many cells it has written; zeroes are a rank that has no tape.
#![allow(unsafe_code)]

use super::clock::Moment;
use crate::atomic::{AtomicU64, Ordering};
use crate::mem::Shared;

#[repr(C)]
pub(super) struct EventRingHead {
    place: AtomicU64,
    cells: AtomicU64,
    written: AtomicU64,
    /// A moment on the tape's clock and on the kernel's; zeroes if that is one clock.
    ticks: AtomicU64,
    ns: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for EventRingHead {}

impl std::fmt::Debug for EventRingHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventRingHead").finish_non_exhaustive()
    }
}

impl EventRingHead {
    /// Whether the rank has a tape.
    pub(super) fn is_told(&self) -> bool {
        self.cells.load(Ordering::Relaxed) != 0
    }

    /// The tape is at this place and has so many cells; its times are ticks if there is a moment on both clocks.
    pub(super) fn tell(&self, place: u64, cells: u64, moment: Option<Moment>) {
        self.place.store(place, Ordering::Relaxed);
        if let Some(moment) = moment {
            self.ns.store(moment.ns, Ordering::Relaxed);
            self.ticks.store(moment.ticks, Ordering::Release);
        }
        self.cells.store(cells, Ordering::Release);
    }

    /// The tape's place and how many cells it has.
    pub(super) fn place(&self) -> (u64, u64) {
        let cells = self.cells.load(Ordering::Acquire);
        (self.place.load(Ordering::Relaxed), cells)
    }

    /// So many cells have been written, and are whole.
    #[inline]
    pub(super) fn set_written(&self, written: u64) {
        // SYNC POINT tape.written
        self.written.store(written, Ordering::Release);
    }

    /// How many cells have been written; those are whole.
    pub(super) fn written(&self) -> u64 {
        // SYNC POINT tape.written
        self.written.load(Ordering::Acquire)
    }

    /// When the tape began, if its times are ticks.
    pub(super) fn moment(&self) -> Option<Moment> {
        let ticks = self.ticks.load(Ordering::Acquire);
        let ns = self.ns.load(Ordering::Relaxed);
        (ticks != 0).then_some(Moment { ticks, ns })
    }
}
