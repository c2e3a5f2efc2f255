//! The watcher: of a process's threads that sleep in different lanes, the one that also watches the other lanes.
//!
//! Each lane has a doorbell, whose owner is the thread that holds the lane's lock.
//! If each sleeping thread watched the lanes in which no thread waits, a message there would wake all of them.
//! So at most one lane has the role of the watcher, and its thread watches for the process.
//!
//! A thread claims the role before it announces its sleep, if the role is vacant.
//! The thread that leaves the lane with the role vacates it, and wakes exactly one other sleeping thread.
//! The woken thread claims the role if it sleeps again.
//! If it leaves MPI instead, it finds the role `CALLED`, and wakes the next one.
//! Any thread that leaves a lane between the call and the claim does the same, which costs one more wake-up.
//!
//! Protocol: a thread announces that it sleeps (a doorbell's `SLEEPING`), executes a fence, and reads the role.
//! If the role is vacant, the thread stays awake and claims it.
//! The leaving thread vacates the role, executes a fence, and reads the doorbells.
//! SYNC POINT `watcher.vacant`: so either the sleeping thread sees the vacant role,
//! or the leaving thread sees that it sleeps.
//! SYNC POINT `watcher.call`: the leaving thread clears `SLEEPING` (Release) after it has vacated the role.
//! The woken thread reads that word (Acquire) before it reads the role.
//! Only the thread that holds a lane's lock claims or vacates the role for the lane.

use crate::atomic::{AtomicU32, Ordering, Ordering::Relaxed, fence};
use crate::doorbell::{Doorbell, SLEEPING};

/// No lane has the role, and no thread slept when it was vacated.
const VACANT: u32 = 0;

/// No lane has the role, and a thread was woken to claim it.
const CALLED: u32 = u32::MAX;

/// The role of the watcher: vacant, or that of one lane.
#[derive(Debug)]
pub struct Role(AtomicU32);

impl Role {
    /// Returns a vacant role.
    #[cfg(not(loom))]
    pub const fn new() -> Role {
        Role(AtomicU32::new(VACANT))
    }

    /// Returns a vacant role.
    #[cfg(loom)]
    pub fn new() -> Role {
        Role(AtomicU32::new(VACANT))
    }

    /// Claims the role for a lane, whose lock the caller holds. Returns true if the lane has the role.
    pub fn claim(&self, lane: usize) -> bool {
        let wanted = lane as u32 + 1;
        let now = self.0.load(Relaxed);
        let is_vacant = matches!(now, VACANT | CALLED);
        now == wanted
            || is_vacant
                && self
                    .0
                    .compare_exchange(now, wanted, Relaxed, Relaxed)
                    .is_ok()
    }

    /// Returns true if the lane has the role.
    pub fn is_of(&self, lane: usize) -> bool {
        self.0.load(Relaxed) == lane as u32 + 1
    }

    /// Returns true if a thread that has announced its sleep must stay awake and claim the role.
    /// The caller has executed the fence of its doorbell.
    pub fn is_vacant(&self) -> bool {
        // SYNC POINT watcher.vacant
        matches!(self.0.load(Relaxed), VACANT | CALLED)
    }

    /// Returns true if a thread that leaves a lane must call [`Role::pass_on`].
    #[inline]
    pub fn must_pass_on(&self, lane: usize) -> bool {
        let now = self.0.load(Relaxed);
        now != VACANT && (now == lane as u32 + 1 || now == CALLED)
    }

    /// Passes the role on to one of the threads that sleep on these doorbells.
    /// The caller is about to leave the lane, and holds its lock.
    pub fn pass_on<'a>(&self, lane: usize, others: impl Iterator<Item = &'a Doorbell>) {
        if self.is_of(lane) {
            self.0.store(CALLED, Relaxed);
        }
        // SYNC POINT watcher.vacant
        fence(Ordering::SeqCst);
        let mut asleep = others.filter(|doorbell| doorbell.wishes() & SLEEPING != 0);
        // SYNC POINT watcher.call
        if !asleep.any(|doorbell| doorbell.wake_owner()) {
            // If a thread has claimed the role since, it stays claimed.
            let _ = self.0.compare_exchange(CALLED, VACANT, Relaxed, Relaxed);
        }
    }

    /// Vacates the role. No thread sleeps.
    pub fn reset(&self) {
        self.0.store(VACANT, Relaxed);
    }
}

impl Default for Role {
    fn default() -> Role {
        Role::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::doorbell::NAP;

    #[test]
    fn one_lane_has_the_role_until_its_thread_leaves() {
        let role = Role::new();
        let doorbells = [Doorbell::new(), Doorbell::new()];
        assert!(role.is_vacant() && !role.must_pass_on(0));
        assert!(role.claim(0) && role.claim(0) && !role.claim(1));
        assert!(!role.is_vacant() && !role.must_pass_on(1) && role.must_pass_on(0));
        role.pass_on(0, doorbells.iter());
        assert!(role.is_vacant(), "no thread sleeps");
        assert!(!role.must_pass_on(0) && !role.must_pass_on(1));
        assert!(role.claim(1));
    }

    #[test]
    fn a_thread_that_was_woken_for_the_role_and_leaves_passes_it_on() {
        let role = Role::new();
        let doorbells = [Doorbell::new(), Doorbell::new()];
        assert!(role.claim(2));
        let woken = || doorbells.each_ref().map(|of| of.wishes() & SLEEPING == 0);
        let [first, second] = &doorbells;
        let leave_twice = || {
            role.pass_on(2, doorbells.iter());
            assert_eq!(woken(), [true, false], "exactly one");
            assert!(role.is_vacant() && role.must_pass_on(0));
            role.pass_on(0, doorbells[1..].iter());
            assert_eq!(woken(), [true, true]);
            assert!(role.claim(1) && !role.must_pass_on(0));
            true
        };
        second.sleep(NAP, || {
            first.sleep(NAP, leave_twice);
            true
        });
    }
}
