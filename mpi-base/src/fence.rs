//! An asymmetric fence: the frequent side executes no instruction, the rare side both fences.
//!
//! A sender publishes a message and then reads whether the receiver sleeps;
//! a receiver announces that it sleeps and then polls for messages.
//! Each side needs a fence between its two steps, or both may miss each other (Dekker).
//! Sending is frequent and sleeping is rare.
//! So the sender executes only [`light`], a compiler fence.
//! The receiver executes [`heavy`]: all running threads of all registered processes execute a full
//! fence by `membarrier(2)` (`MEMBARRIER_CMD_GLOBAL_EXPEDITED`, Linux 4.16 and later).
//!
//! Guarantee: a `light` and a `heavy` are ordered as if both were `fence(SeqCst)`,
//! if [`register`] returned true in the process of the `light`, and the `heavy` returned true.
//! If the kernel forbids or lacks this call, both functions return false.
//! Callers then use ordinary fences.
//!
//! If both sides are threads of one process, the rare side uses [`heavy_here`]
//! (`MEMBARRIER_CMD_PRIVATE_EXPEDITED`), which interrupts no other process and needs no registration by the caller.

#[cfg(not(loom))]
mod asymmetric {
    use std::sync::OnceLock;

    use crate::atomic::{Ordering, compiler_fence};
    use rustix::thread::{MembarrierCommand, membarrier};

    /// Registers for `membarrier`, so that other processes can execute a full fence on this process;
    /// returns true if the kernel supports this.
    pub fn register() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok())
    }

    /// Executes the fence of the rare side for the threads of this process only: a full fence in each of them.
    /// Returns false if the kernel refuses.
    pub fn heavy_here() -> bool {
        let fence = || membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        // A process is not registered at its first fence, nor after it has been restored from an image.
        fence() || membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() && fence()
    }

    /// Executes the fence of the frequent side: a compiler fence without an instruction.
    #[inline(always)]
    pub fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    /// Executes the fence of the rare side: a full fence in every registered process.
    /// Returns false if the kernel refuses; the caller then executes an ordinary fence.
    pub fn heavy() -> bool {
        membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    }
}

/// The functions under loom, which has no remote fences: both sides execute their own fences.
#[cfg(loom)]
mod asymmetric {
    use crate::atomic::{Ordering, fence};

    /// Returns true: loom's fences need no registration.
    pub fn register() -> bool {
        true
    }

    /// Executes a full fence of this thread.
    pub fn light() {
        fence(Ordering::SeqCst);
    }

    /// Executes a full fence of this thread, and returns true.
    pub fn heavy() -> bool {
        fence(Ordering::SeqCst);
        true
    }

    /// Executes a full fence of this thread, and returns true.
    pub fn heavy_here() -> bool {
        heavy()
    }
}

pub use asymmetric::{heavy, heavy_here, light, register};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::Barrier;

    /// Dekker's litmus test: both sides store, fence and load; at least one must see the other.
    #[test]
    fn one_of_the_two_sides_sees_the_other() {
        if !register() {
            // The kernel lacks the call, so the library does not use it.
            assert!(!register());
            return;
        }
        for heavy in [heavy, heavy_here] {
            try_both_sides(heavy);
        }
    }

    fn try_both_sides(heavy: fn() -> bool) {
        let (a, b) = (AtomicU32::new(0), AtomicU32::new(0));
        let (seen_a, seen_b) = (AtomicU32::new(0), AtomicU32::new(0));
        let line = Barrier::new(2);
        std::thread::scope(|s| {
            s.spawn(|| {
                for round in 1..=2000 {
                    line.wait();
                    a.store(round, Relaxed);
                    light();
                    seen_b.store(b.load(Relaxed), Relaxed);
                    line.wait();
                }
            });
            for round in 1..=2000 {
                line.wait();
                b.store(round, Relaxed);
                assert!(heavy());
                seen_a.store(a.load(Relaxed), Relaxed);
                line.wait();
                assert!(
                    seen_a.load(Relaxed) == round || seen_b.load(Relaxed) == round,
                    "round {round}: neither saw the other"
                );
            }
        });
    }
}
