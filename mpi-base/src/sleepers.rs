//! Sleepers: one bit for each member of a group that may sleep on its [doorbell](crate::doorbell) while it waits for the others.
//!
//! A process that publishes news for all members reads these few words in place of the doorbells of all members, each of which is a cache line that its owner writes.
//! The bits belong to one group, so members that sleep for another reason are not woken.
//!
//! A member announces itself before it sleeps, and its doorbell's protocol does the rest:
//!
//! ```text
//! publisher                           member
//!   publish news (release)              set its bit
//!   fence(SeqCst)                       doorbell: SLEEPING, fence(SeqCst)
//!   for each bit: ring the doorbell     if there is news: stay awake
//! ```
//!
//! SYNC POINT `sleepers.bits`: one of the two fences comes first; either the member's recheck sees the news, or the publisher sees the bit, and `SLEEPING` behind it.
//! A bit that stays set costs the publisher one read of a doorbell.

use crate::atomic::{AtomicU64, Ordering, fence};
use std::ops::Deref;

/// The members of a group that may sleep, in words that are zero at first.
pub struct Sleepers<M> {
    words: M,
}

impl<M: Deref<Target = [AtomicU64]>> Sleepers<M> {
    /// The bits of `members` members in `words`; `None` if there are more members than bits.
    pub fn new(words: M, members: u32) -> Option<Sleepers<M>> {
        (members as usize <= words.len() * u64::BITS as usize).then_some(Sleepers { words })
    }

    fn of(&self, member: u32) -> (&AtomicU64, u64) {
        let bit = 1 << (member % u64::BITS);
        (&self.words[(member / u64::BITS) as usize], bit)
    }

    /// Announces that a member may sleep from now on; the member must poll once more before each sleep, as [`Doorbell::sleep`](crate::doorbell::Doorbell::sleep) does.
    #[cold]
    pub fn announce(&self, member: u32) {
        let (word, bit) = self.of(member);
        // SYNC POINT sleepers.bits: the fence is the doorbell's.
        word.fetch_or(bit, Ordering::Relaxed);
    }

    /// Withdraws a member's announcement.
    #[cold]
    pub fn withdraw(&self, member: u32) {
        let (word, bit) = self.of(member);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Executes the publisher's fence, and calls `ring` for each member that may sleep; the news have been published before.
    #[inline]
    pub fn ring_each(&self, mut ring: impl FnMut(u32)) {
        // SYNC POINT sleepers.bits
        fence(Ordering::SeqCst);
        for (first, word) in (0..).step_by(u64::BITS as usize).zip(self.words.iter()) {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                ring(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_announced_member_is_rung_and_no_other() {
        const MEMBERS: u32 = 130;
        let words: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let sleepers = Sleepers::new(&words[..], MEMBERS).expect("enough bits");
        let rung = || {
            let mut rung = Vec::new();
            sleepers.ring_each(|member| rung.push(member));
            rung
        };
        assert!(rung().is_empty());
        for member in [129, 0, 63, 64, 5] {
            sleepers.announce(member);
        }
        sleepers.announce(5);
        sleepers.withdraw(5);
        assert_eq!(rung(), [0, 63, 64, 129]);
        assert!(Sleepers::new(&words[..2], MEMBERS).is_none());
    }
}
