//! Post, start, complete, wait: what a member counts of the others, and when it is woken.
//!
//! Each member says to each other one how often it has posted and how often it has completed ([`super::Line`], or messages between nodes).
//! The other one keeps how much of that it has used up ([`Awaited`]): an access epoch uses up one post, an exposure epoch one completion,
//! also an access epoch whose post nobody waits for because the program asserts that it has come.
//!
//! Promise: a post is for the epoch of its own number. One that comes ahead of time is kept for its epoch, one of a member outside of a group
//! lets nobody of the group in, and the counters may start again from zero.
//! An epoch begins after what the member did before its post, and ends after what the others did before they completed.

#![allow(unsafe_code)]

use super::settle;
use crate::atomic::{AtomicU32, Ordering};

/// What a member has used up of what another one has said to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    posts: u32,
    completions: u32,
}

impl Awaited {
    /// An access epoch at the other member begins, which takes one more of its posts.
    #[inline]
    pub fn start(&mut self) {
        self.posts = self.posts.wrapping_add(1);
    }

    /// Whether the post of the epoch that was started last is among as many posts as `posted`.
    #[inline]
    pub fn has_posted(self, posted: u32) -> bool {
        has_reached(posted, self.posts)
    }

    /// Whether the other member's part of the exposure epoch is over, which has completed as often as `completed`.
    #[inline]
    pub fn has_completed(self, completed: u32) -> bool {
        has_reached(completed, self.completions.wrapping_add(1))
    }

    /// The exposure epoch is over; the next one takes the next completion.
    #[inline]
    pub fn end(&mut self) {
        self.completions = self.completions.wrapping_add(1);
    }
}

/// How many posts and completions have come to a member from whomever, so that it is woken by the last one that it waits for and not by each.
///
/// SYNC POINT `window.arrival`: a waiting rank says at which number it is to be woken: the number that have come plus the number that are missing.
/// Only what comes can make that number larger, so one that was said before is never too large.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Arrivals {
    count: AtomicU32,
    wake_at: AtomicU32,
}

// SAFETY: atomics only.
#[cfg(not(loom))]
unsafe impl crate::mem::Shared for Arrivals {}

impl Arrivals {
    /// None yet.
    pub fn new() -> Arrivals {
        Arrivals::default()
    }

    /// Something has come, whose counter has been stored before; whether the member may have to be woken.
    #[inline]
    pub fn arrive(&self) -> bool {
        // SYNC POINT window.arrival
        let count = self.count.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        settle();
        has_reached(count, self.wake_at.load(Ordering::SeqCst))
    }

    /// Whether nothing is missing; else the member wants to be woken when as much has come as `missing` says (owner only).
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

/// Whether a counter that only grows has come as far as `expected`, which is at most two thousand million ahead of it.
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
        // The second post came ahead of time; a third epoch needs one more.
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
