//! Counting of post, start, complete and wait: a member's counts of others' posts and completions,
//! and the wake-up of a member that waits for them.
//!
//! Each member publishes to each other member how often it has posted and completed
//! ([`super::Line`], or messages between nodes).
//! The other member counts how many of these events it has consumed ([`Awaited`]):
//! an access epoch consumes one post, an exposure epoch one completion.
//! With `MPI_MODE_NOCHECK` the post has arrived. An access epoch does not wait for the post,
//! but still consumes it.
//!
//! Guarantee: the n-th post belongs to the n-th epoch.
//! An early post is kept for its epoch. A post from outside of an epoch's group
//! does not start that epoch. The counters may wrap around.
//! An epoch's accesses are ordered after the target's stores before its post. The target's later
//! accesses are ordered after the accesses of the members that have completed.

#![allow(unsafe_code)]

use super::settle;
use crate::atomic::{AtomicU32, Ordering};

/// The numbers of another member's posts and completions that this member has consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    posts: u32,
    completions: u32,
}

impl Awaited {
    /// Begins an access epoch at the other member; the epoch consumes that member's next post.
    #[inline]
    pub fn start(&mut self) {
        self.posts = self.posts.wrapping_add(1);
    }

    /// Returns true if the number `posted` includes the post that the last started epoch consumes.
    #[inline]
    pub fn has_posted(self, posted: u32) -> bool {
        has_reached(posted, self.posts)
    }

    /// Returns true if the other member has completed its accesses of the exposure epoch;
    /// `completed` is the other member's number of completions.
    #[inline]
    pub fn has_completed(self, completed: u32) -> bool {
        has_reached(completed, self.completions.wrapping_add(1))
    }

    /// Ends the exposure epoch; the next epoch consumes the next completion.
    #[inline]
    pub fn end(&mut self) {
        self.completions = self.completions.wrapping_add(1);
    }
}

/// The total number of posts and completions that a member has received from all members.
/// Only the last arrival that a waiting member needs wakes it, so the member wakes one time.
///
/// SYNC POINT `window.arrival`: a waiting rank stores the count at which it must be woken:
/// the number received plus the number missing.
/// Further arrivals can only raise this count, so a stale value is never too large.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Arrivals {
    count: AtomicU32,
    wake_at: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Arrivals {}

impl Arrivals {
    /// Returns a count of zero arrivals.
    pub fn new() -> Arrivals {
        Arrivals::default()
    }

    /// Counts an arrival. The caller has stored the post or completion before.
    /// Returns true if the caller may have to wake the member.
    #[inline]
    pub fn arrive(&self) -> bool {
        // SYNC POINT window.arrival
        let count = self.count.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        settle();
        has_reached(count, self.wake_at.load(Ordering::SeqCst))
    }

    /// Returns true if no arrival is missing. Otherwise returns false,
    /// and the member will be woken after `missing()` more arrivals (owner only).
    #[inline]
    pub fn are_in(&self, missing: impl FnOnce() -> u32) -> bool {
        let come = self.count.load(Ordering::SeqCst);
        let missing = missing();
        if missing == 0 {
            return true;
        }
        // SYNC POINT window.arrival
        self.wake_at
            .store(come.wrapping_add(missing), Ordering::SeqCst);
        settle();
        false
    }
}

/// Returns true if a wrapping counter has reached `expected`, which must be less than 2^31 ahead.
#[inline]
pub fn has_reached(counter: u32, expected: u32) -> bool {
    counter.wrapping_sub(expected) as i32 >= 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_takes_the_post_and_the_completion_of_its_own_number() {
        let mut awaited = Awaited::default();
        awaited.start();
        assert!(!awaited.has_posted(0) && awaited.has_posted(1) && awaited.has_posted(2));
        // The second post arrived before its epoch began; a third epoch needs another post.
        awaited.start();
        assert!(awaited.has_posted(2));
        awaited.start();
        assert!(!awaited.has_posted(2));
        assert!(!awaited.has_completed(0) && awaited.has_completed(1));
        awaited.end();
        assert!(!awaited.has_completed(1) && awaited.has_completed(2));
    }

    #[test]
    fn counters_that_start_again_from_zero_are_still_ahead() {
        let mut awaited = Awaited {
            posts: u32::MAX,
            completions: u32::MAX,
        };
        assert!(awaited.has_posted(u32::MAX) && !awaited.has_completed(u32::MAX));
        awaited.start();
        assert!(!awaited.has_posted(u32::MAX) && awaited.has_posted(0));
        assert!(awaited.has_completed(0));
        assert!(has_reached(1, u32::MAX) && !has_reached(u32::MAX, 1));
    }
}
