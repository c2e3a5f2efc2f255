//! An asymmetric fence: the many threads that do something often pay nothing, the one that does something seldom pays for all.
//!
//! A sender publishes a message and then looks whether the receiver sleeps; a receiver says that it sleeps and then looks for messages.
//! Each needs a fence between its two steps, or both may miss each other (Dekker).
//! Sending is frequent and sleeping is not, so the sender has only [`light`], which orders the compiler,
//! and the receiver has [`heavy`], which makes every running thread of every registered process execute a full fence: `membarrier(2)`,
//! `MEMBARRIER_CMD_GLOBAL_EXPEDITED`, Linux 4.16 and later.
//!
//! Promise: of a `light` in a process that [`register`] has answered `true` to, and a `heavy` that answered `true`, one comes first,
//! as if both were `fence(SeqCst)`.
//! Where the system forbids or lacks the call, both answer `false` and their callers use ordinary fences.

#[cfg(not(loom))]
mod asymmetric {
    use std::sync::OnceLock;

    use crate::atomic::{Ordering, compiler_fence};
    use rustix::thread::{MembarrierCommand, membarrier};

    /// Lets other processes execute this one's fences; whether that works.
    pub fn register() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok())
    }

    /// The frequent side: no instruction at all.
    #[inline(always)]
    pub fn light() {
        compiler_fence(Ordering::SeqCst);
    }

    /// The rare side: a fence in every registered process.
    pub fn heavy() -> bool {
        membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    }
}

/// The model checker knows nothing of other threads' fences, so both sides have their own.
#[cfg(loom)]
mod asymmetric {
    use crate::atomic::{Ordering, fence};

    pub fn register() -> bool {
        true
    }

    pub fn light() {
        fence(Ordering::SeqCst);
    }

    pub fn heavy() -> bool {
        fence(Ordering::SeqCst);
        true
    }
}

pub use asymmetric::{heavy, light, register};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::Barrier;

    /// Dekker's litmus test: both sides store, fence and load; at least one must see the other.
    #[test]
    fn one_of_the_two_sides_sees_the_other() {
        if !register() {
            // The system lacks the call, and no code uses it then.
            assert!(!register());
            return;
        }
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
