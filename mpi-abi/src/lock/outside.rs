//! Leaving a lock entirely and entering it again, for a callback of the program that waits elsewhere.

use super::reserved::{caller, is_inside, me};
use super::{GlobalLock, Relaxed, watcher};

/// Releases a lock at any depth, and returns the depth for [`enter_again`].
/// Returns 0 if the caller does not hold the lock. No part of the state is borrowed.
#[inline]
pub fn leave_entirely(lock: &'static GlobalLock) -> u32 {
    match is_inside(lock, caller(lock)) {
        true => leave_all_levels(lock),
        false => 0,
    }
}

#[cold]
fn leave_all_levels(lock: &'static GlobalLock) -> u32 {
    watcher::leave(lock);
    lock.convert_reservation(caller(lock));
    let depth = lock.depth.load(Relaxed);
    lock.depth.store(1, Relaxed);
    lock.release();
    depth
}

/// Acquires a lock at the depth at which the caller left it.
#[cold]
pub fn enter_again(lock: &'static GlobalLock, depth: u32) {
    lock.take(me(), depth);
}
