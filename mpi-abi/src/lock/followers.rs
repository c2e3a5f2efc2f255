//! The list of the threads that follow a leader, each with the condition of its wait.
//!
//! The list has pointers to values on the stacks of these threads.
//! `GlobalLock::follow` adds a value before it releases the lock, and removes it after it has acquired the lock again, also if the thread panics in between.
//! Only the owner of the lock accesses the list and calls the conditions.
//! A condition that panics does not unwind the leader:
//! [`Follower::resume_panic`] continues the panic in the follower's call.
//! The message on stderr names the leader's thread, since the panic hook runs there.

use mpi_core::engine::Condition;
use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};

/// A thread that waits without the lock.
pub(super) struct Follower {
    /// The condition of its wait, if the leader may evaluate it.
    awaits: Option<NonNull<Condition<'static>>>,
    /// The panic of the condition in the call of another thread.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// True if the thread should poll.
    released: AtomicBool,
    /// True while the thread sleeps. Written under the lock's mutex `inside`.
    pub sleeps: AtomicBool,
    /// Wakes the thread.
    pub news: Condvar,
}

/// The threads that follow.
pub(super) struct Following(UnsafeCell<Vec<NonNull<Follower>>>);

// SAFETY: only the owner of the lock accesses the list and calls the conditions in it:
// `GlobalLock::wait_step`, `release` and `follow` call the functions below under the lock.
unsafe impl Sync for Following {}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").finish_non_exhaustive()
    }
}

impl Following {
    pub(super) const fn new() -> Self {
        Following(UnsafeCell::new(Vec::new()))
    }

    /// Returns the follower at an index. The caller owns the lock.
    fn at(&self, index: usize) -> Option<&Follower> {
        // SAFETY: the caller owns the lock, so no other thread changes the list.
        let follower = unsafe { &*self.0.get() }.get(index).copied();
        // SAFETY: `Listed::run` borrows the value. It adds the value before it releases the lock, and its end removes the value
        // after it has acquired the lock again, also while the thread unwinds. The caller owns the lock, so the value is not removed now.
        follower.map(|follower| unsafe { &*follower.as_ptr() })
    }

    /// Returns all followers. The caller owns the lock.
    pub fn all(&self) -> impl Iterator<Item = &Follower> {
        (0..).map_while(|index| self.at(index))
    }

    /// Adds a follower. The caller owns the lock.
    pub fn add(&self, follower: &Follower) {
        // SAFETY: the caller owns the lock, and no reference to the list exists.
        unsafe { &mut *self.0.get() }.push(NonNull::from(follower));
    }

    /// Releases the followers whose waits may be complete. Returns true if there are any. The caller owns the lock.
    pub fn release_complete(&self) -> bool {
        let mut any = false;
        for follower in self.all() {
            if !follower.released.load(Relaxed) && follower.may_be_complete() {
                follower.released.store(true, Ordering::Release);
                any = true;
            }
        }
        any
    }

    /// Removes a follower. The caller owns the lock.
    pub fn remove(&self, follower: &Follower) {
        // SAFETY: the caller owns the lock, and no reference to the list exists.
        unsafe { &mut *self.0.get() }.retain(|other| *other != NonNull::from(follower));
    }
}

impl Follower {
    pub fn new(awaits: Option<&mut Condition<'_>>) -> Self {
        let forget = |condition: &mut Condition<'_>| {
            // SAFETY: only the type of the pointer changes. It is used only while the follower is in the list.
            // The caller of `wait_step` borrows the condition for this time, so the condition and what it borrows exist.
            unsafe {
                std::mem::transmute::<NonNull<Condition<'_>>, NonNull<Condition<'static>>>(
                    NonNull::from(condition),
                )
            }
        };
        Follower {
            awaits: awaits.map(forget),
            panic: Mutex::new(None),
            released: AtomicBool::new(false),
            sleeps: AtomicBool::new(false),
            news: Condvar::new(),
        }
    }

    /// Returns true if the leader may evaluate the condition.
    pub fn has_condition(&self) -> bool {
        self.awaits.is_some()
    }

    /// Returns true if another thread has found that this thread must poll.
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::Acquire)
    }

    /// Returns true if the thread must poll, because its wait may be complete. The caller owns the lock.
    pub fn may_be_complete(&self) -> bool {
        let Some(condition) = self.awaits else {
            return true;
        };
        let evaluate = || {
            // SAFETY: the follower is in the list, so its thread is between `add` and `remove` and does not use the condition.
            // The caller owns the lock, so no other thread calls it at the same time.
            // Its result does not depend on the thread that calls it (`Engine::wait_for_messages`).
            unsafe { (*condition.as_ptr())() }
        };
        // After a panic only the follower's thread uses what the condition borrows, and it panics, too.
        catch_unwind(AssertUnwindSafe(evaluate)).unwrap_or_else(|panic| {
            *self.panic() = Some(panic);
            true
        })
    }

    fn panic(&self) -> std::sync::MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues the panic of the condition, if it has panicked in the call of another thread.
    /// The caller is the follower's thread, and the follower is in no list.
    pub fn resume_panic(&self) {
        let panic = self.panic().take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}
