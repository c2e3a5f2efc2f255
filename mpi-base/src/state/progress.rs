//! The fourth cache line of the state page, which changes most often:
//! the progress counter, the core on which the rank waits, and the wire of the hardware barrier.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The wire of the hardware barrier that a rank drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWire {
    /// The wire's index on the board, counted from 0, which is also the rank's node number.
    pub wire: u32,
    /// The number of barriers of `MPI_COMM_WORLD` that this rank has entered.
    pub entered: u64,
    /// The number of these barriers that the rank has seen released;
    /// less than `entered` while the rank waits in a barrier.
    pub released: u64,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct ProgressLine {
    progress: AtomicU64,
    // The hardware barrier's counts of the rank, if it drives a wire; written at each barrier.
    barrier_entered: AtomicU64,
    barrier_released: AtomicU64,
    /// The index of the rank's wire plus one; 0 if the rank drives no wire.
    wire_plus_one: AtomicU32,
    /// The core on which the rank last waited plus one, if cores are oversubscribed; 0 if unknown.
    core: AtomicU32,
}

impl ProgressLine {
    #[inline]
    pub(super) fn count(&self) {
        // The counter needs no read-modify-write, because only the owner writes it.
        self.progress
            .store(self.progress.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub(super) fn counted(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_barrier_wire(&self, wire: u32, entered: u64, released: u64) {
        self.barrier_entered.store(entered, Relaxed);
        self.barrier_released.store(released, Relaxed);
        self.wire_plus_one.store(wire.wrapping_add(1), Relaxed);
    }

    pub(super) fn barrier_wire(&self) -> Option<BarrierWire> {
        let wire = self.wire_plus_one.load(Relaxed).checked_sub(1)?;
        Some(BarrierWire {
            wire,
            entered: self.barrier_entered.load(Relaxed),
            released: self.barrier_released.load(Relaxed),
        })
    }

    #[inline]
    pub(super) fn set_core(&self, core: Option<u32>) {
        self.core
            .store(core.map_or(0, |core| core.wrapping_add(1)), Relaxed);
    }

    #[inline]
    pub(super) fn core(&self) -> Option<u32> {
        self.core.load(Relaxed).checked_sub(1)
    }
}
