//! Agreement in shared memory: the members (processes of one node) reach the same decision
//! although some of them may die.
//!
//! In each round every member writes its own slot exactly once, and reads the other slots.
//! Memory remains after the process that wrote it has died.
//! So no messages are needed if every member knows for certain which other members are dead.
//! A round is *settled* for a member when every other member has written its slot,
//! or has died without writing it.
//!
//! Guarantee: all members for which a round is settled read the same values.
//! Reason: a slot is written one time, and a member is treated as dead only if it is dead,
//! so the slot of a dead member does not change any more.
//!
//! Two sets of slots serve the rounds alternately.
//! No member overwrites a slot that another member still has to read:
//! a round is settled only after all living members have written,
//! and they write only after the previous round is settled for them.
//!
//! A member that has decided may publish the decision: the others then read one line, not all slots.
//! All members that publish write the same value. A decision cannot be published too late:
//! no later round with the same set begins before the publishing member has returned.
//!
//! SYNC POINT `slot.mark`: a member stores the round's mark (Release) after the slot's words;
//! another member loads the mark (Acquire) before the words.
//! SYNC POINT `slot.left`: a member stores the flag that it has left (Release) after its last read;
//! the owner of the memory loads the flags (Acquire) of all living members before it frees the memory.

use crate::atomic::{AtomicU64, Ordering};
use crate::cells::LINE;
use std::ops::Deref;

/// The number of rounds whose slots exist at the same time.
const SETS: u64 = 2;

/// Number of words in front of a slot's data: the round's mark,
/// and the flag of a member that has left.
const HEAD: usize = 2;

const WORD: usize = size_of::<u64>();

/// Returns the length in words of one slot with `says` data words:
/// a whole number of cache lines, so that each line has one writer.
fn slot(says: usize) -> usize {
    (HEAD + says).next_multiple_of(LINE / WORD)
}

/// Returns the number of words for the slots of `members` members with `says` data words each.
/// The memory must initially be zero.
pub fn words(members: u32, says: usize) -> usize {
    (members as usize * slot(says) + LINE / WORD) * SETS as usize
}

/// One member's view of the slots of all members.
pub struct ShmAgreement<M> {
    memory: M,
    me: u32,
    members: u32,
    says: usize,
}

impl<M: Deref<Target = [AtomicU64]>> ShmAgreement<M> {
    /// Creates the view of member `me`.
    /// Returns `None` if `memory` is shorter than [`words`] or `me` is not less than `members`.
    pub fn new(memory: M, me: u32, members: u32, says: usize) -> Option<ShmAgreement<M>> {
        let fits = memory.len() >= words(members, says) && me < members;
        fits.then_some(ShmAgreement {
            memory,
            me,
            members,
            says,
        })
    }

    /// Returns the number of members.
    pub fn members(&self) -> u32 {
        self.members
    }

    #[inline]
    fn slot(&self, member: u32, round: u64) -> &[AtomicU64] {
        let len = slot(self.says);
        let at = (member as usize * SETS as usize + (round % SETS) as usize) * len;
        &self.memory[at..at + len]
    }

    /// Writes this member's slot of a round, exactly one time per round; missing words are zero.
    #[inline]
    pub fn write(&self, round: u64, words: &[u64]) {
        let slot = self.slot(self.me, round);
        for (at, place) in slot[HEAD..HEAD + self.says].iter().enumerate() {
            place.store(words.get(at).copied().unwrap_or(0), Ordering::Relaxed);
        }
        // SYNC POINT slot.mark
        slot[0].store(round + 1, Ordering::Release);
    }

    /// Returns true if a member has written its slot of a round.
    #[inline]
    pub fn has_written(&self, member: u32, round: u64) -> bool {
        // SYNC POINT slot.mark
        self.slot(member, round)[0].load(Ordering::Acquire) == round + 1
    }

    /// Returns the first member from `from` on that is alive and has not written its slot.
    /// If the round is settled, returns the number of members.
    #[inline]
    pub fn settled(&self, round: u64, from: u32, mut is_dead: impl FnMut(u32) -> bool) -> u32 {
        let mut next = from;
        // A slot of a dead member is read only after its death was detected.
        while next < self.members && (self.has_written(next, round) || is_dead(next)) {
            next += 1;
        }
        next
    }

    /// Returns data word `at` of a member that has written its slot.
    #[inline]
    pub fn word(&self, member: u32, round: u64, at: usize) -> u64 {
        self.slot(member, round)[HEAD + at].load(Ordering::Relaxed)
    }

    /// Returns the cache line of the published decision: the round's mark and the decision.
    #[inline]
    fn conclusion(&self, round: u64) -> &[AtomicU64] {
        let behind = self.members as usize * SETS as usize * slot(self.says);
        let at = behind + (round % SETS) as usize * (LINE / WORD);
        &self.memory[at..at + LINE / WORD]
    }

    /// Publishes the decision of a round for the other members.
    #[inline]
    pub fn conclude(&self, round: u64, word: u64) {
        let line = self.conclusion(round);
        line[1].store(word, Ordering::Relaxed);
        // SYNC POINT slot.mark
        line[0].store(round + 1, Ordering::Release);
    }

    /// Returns the decision of a round, if a member has published it.
    #[inline]
    pub fn concluded(&self, round: u64) -> Option<u64> {
        let line = self.conclusion(round);
        // SYNC POINT slot.mark
        let is_there = line[0].load(Ordering::Acquire) == round + 1;
        is_there.then(|| line[1].load(Ordering::Relaxed))
    }

    /// Publishes that this member no longer reads the slots.
    pub fn leave(&self) {
        // SYNC POINT slot.left
        self.slot(self.me, 0)[1].store(1, Ordering::Release);
    }

    /// Returns true if a member has called [`ShmAgreement::leave`].
    pub fn has_left(&self, member: u32) -> bool {
        // SYNC POINT slot.left
        self.slot(member, 0)[1].load(Ordering::Acquire) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn memory(members: u32, says: usize) -> Vec<AtomicU64> {
        (0..words(members, says))
            .map(|_| AtomicU64::new(0))
            .collect()
    }

    #[test]
    fn a_round_is_settled_when_each_member_has_written_or_is_dead() {
        let memory = memory(3, 2);
        let member = |me| ShmAgreement::new(&memory[..], me, 3, 2).unwrap();
        member(0).write(7, &[1, 2]);
        member(2).write(7, &[5]);
        assert_eq!(member(0).settled(7, 0, |_| false), 1);
        assert_eq!(member(0).settled(7, 1, |other| other == 1), 3);
        assert!(!member(2).has_written(1, 7));
        assert_eq!([0, 1].map(|at| member(1).word(0, 7, at)), [1, 2]);
        assert_eq!([0, 1].map(|at| member(1).word(2, 7, at)), [5, 0]);
    }

    #[test]
    fn the_next_round_has_other_slots_and_the_one_after_it_the_same() {
        let memory = memory(2, 1);
        let member = ShmAgreement::new(&memory[..], 0, 2, 1).unwrap();
        member.write(0, &[1]);
        member.write(1, &[2]);
        assert!(member.has_written(0, 0) && member.has_written(0, 1));
        assert!(!member.has_written(0, 2));
        member.write(2, &[3]);
        assert!(!member.has_written(0, 0));
        assert_eq!(member.word(0, 1, 0), 2);
    }

    #[test]
    fn a_conclusion_is_of_its_round() {
        let memory = memory(3, 1);
        let member = |me| ShmAgreement::new(&memory[..], me, 3, 1).unwrap();
        assert_eq!(member(0).concluded(0), None);
        member(2).conclude(5, 77);
        assert_eq!(member(0).concluded(5), Some(77));
        assert_eq!(
            [3, 4, 6, 7].map(|round| member(0).concluded(round)),
            [None; 4]
        );
        assert!((0..3).all(|other| !member(0).has_written(other, 5)));
    }

    #[test]
    fn leaving_touches_no_round() {
        let memory = memory(2, 1);
        let member = ShmAgreement::new(&memory[..], 1, 2, 1).unwrap();
        member.write(4, &[9]);
        assert!(!member.has_left(1));
        member.leave();
        assert!(member.has_left(1) && !member.has_left(0));
        assert!(member.has_written(1, 4));
        assert_eq!(member.word(1, 4, 0), 9);
    }

    #[test]
    fn memory_that_is_too_short_is_refused() {
        let memory = memory(2, 1);
        assert!(ShmAgreement::new(&memory[..], 0, 3, 1).is_none());
        assert!(ShmAgreement::new(&memory[1..], 0, 2, 1).is_none());
        assert!(ShmAgreement::new(&memory[..], 2, 2, 1).is_none());
    }
}
