//! The one door to atomics.
//!
//! Everything in this crate that another thread or process may see takes its atomics from here,
//! so that under `--cfg loom` the same ring, bell and bitmap run inside the loom model checker.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Tells the processor that this thread is polling.
#[inline(always)]
pub fn spin_loop() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
