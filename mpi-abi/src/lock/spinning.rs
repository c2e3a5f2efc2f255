//! Spinning for a lock that another thread owns.

use super::{GlobalLock, SPINS};
use std::sync::atomic::Ordering::Relaxed;

/// Spins per read of the lock word: the holder can then make several calls between two reads.
/// Otherwise the lock and the engine's cache lines would change threads at each call.
const POLL_EVERY: u32 = 16;

/// Number of yields before a waiting thread sleeps; fewer if a computing process shares the core.
const YIELDS: u32 = 4;

/// Number of polls of a thread with a core of its own before it sleeps: 50 to 250 us.
const LONG_POLLS: u32 = 24;

/// Maximum number of spins between two of these polls: 2 to 10 us.
const LONGEST_INTERVAL: u32 = 256;

/// Number of these polls per yield.
const YIELD_EVERY: u32 = 4;

/// Spins until the lock is free, and acquires it. Returns false if the lock stayed taken.
pub(super) fn spin(lock: &GlobalLock, me: usize) -> bool {
    let threads = lock.waiters.load(Relaxed) + lock.yielding.load(Relaxed);
    let is_beside_load = lock.beside_load.load(Relaxed) > 0;
    if threads < lock.cores.load(Relaxed) && !is_beside_load {
        return spin_on_own_core(lock, me);
    }
    for _ in 0..YIELDS {
        for spin in 0..SPINS {
            if spin % POLL_EVERY == 0 && lock.owner.load(Relaxed) == 0 && lock.try_take(me) {
                return true;
            }
            std::hint::spin_loop();
        }
        lock.revoke_reservation();
        if !lock.give_core_away() {
            return false;
        }
    }
    false
}

/// Spins like [`spin`], but longer and with growing intervals between two reads of the lock word,
/// while the threads that wait for the lock or own it have a core each.
///
/// A read moves the lock word's cache line away from the owner, and each change of owners moves the engine's lines.
/// With long intervals the owner makes many calls in a row, so several threads together are about as fast as one.
fn spin_on_own_core(lock: &GlobalLock, me: usize) -> bool {
    let mut interval = POLL_EVERY;
    for poll in 0..LONG_POLLS {
        if lock.owner.load(Relaxed) == 0 && lock.try_take(me) {
            return true;
        }
        lock.revoke_reservation();
        for _ in 0..interval {
            std::hint::spin_loop();
        }
        interval = (interval * 2).min(LONGEST_INTERVAL);
        // Another process, or a thread that does not call MPI, may need this core.
        if poll % YIELD_EVERY == YIELD_EVERY - 1 && !lock.give_core_away() {
            return false;
        }
    }
    false
}
