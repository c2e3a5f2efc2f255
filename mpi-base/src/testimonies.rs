//! Words by which processes of one node come to the same conclusion although some of them die.
//!
//! Each member has a slot for each round, writes it once, and reads those of the others.
//! Memory outlives the process that has written it. So where every member knows for certain which others have died,
//! neither messages nor an exchange of words is needed: a round is *settled* for a member when each other member has either written, or is dead and has not written.
//!
//! Promise: all members for which a round is settled read the same.
//! Why: a slot is written once; and a member that is held for dead is dead, so what its slot says when it is looked at after that, it says for ever.
//!
//! Two sets of slots serve the rounds in turn. No member overwrites what another one has yet to read:
//! a round is not settled before all living members have written, which they do when the round before is settled for them.
//!
//! A member that concludes may leave the conclusion for the others, which then read one line in place of all slots.
//! All that do so write the same, and none of them is late: as long as it has not returned, no round with the same set can begin.
//!
//! SYNC POINT `slot.mark`: the mark of a round is stored behind what the slot says.

use crate::atomic::{AtomicU64, Ordering};
use crate::cells::LINE;
use std::ops::Deref;

/// Rounds whose slots exist side by side.
const SETS: u64 = 2;

/// Words before what a slot says: the round's mark, and whether the member has left.
const HEAD: usize = 2;

const WORD: usize = size_of::<u64>();

/// Words of one slot, a whole number of lines, so that each line has one writer.
fn slot(says: usize) -> usize {
    (HEAD + says).next_multiple_of(LINE / WORD)
}

/// How many words the slots of `members` members take, where a slot holds `says` words of its member; the memory begins as zeros.
pub fn words(members: u32, says: usize) -> usize {
    (members as usize * slot(says) + LINE / WORD) * SETS as usize
}

/// The slots of all members, as one of them uses them.
pub struct Testimonies<M> {
    memory: M,
    me: u32,
    members: u32,
    says: usize,
}

impl<M: Deref<Target = [AtomicU64]>> Testimonies<M> {
    /// `memory` has the [`words`] that are needed; `None` if it has not, or if there is no such member.
    pub fn new(memory: M, me: u32, members: u32, says: usize) -> Option<Testimonies<M>> {
        let fits = memory.len() >= words(members, says) && me < members;
        fits.then_some(Testimonies {
            memory,
            me,
            members,
            says,
        })
    }

    /// How many members have slots.
    pub fn members(&self) -> u32 {
        self.members
    }

    #[inline]
    fn slot(&self, member: u32, round: u64) -> &[AtomicU64] {
        let len = slot(self.says);
        let at = (member as usize * SETS as usize + (round % SETS) as usize) * len;
        &self.memory[at..at + len]
    }

    /// Says something in a round, once; the words behind it are zeros.
    #[inline]
    pub fn write(&self, round: u64, words: &[u64]) {
        let slot = self.slot(self.me, round);
        for (at, place) in slot[HEAD..HEAD + self.says].iter().enumerate() {
            place.store(words.get(at).copied().unwrap_or(0), Ordering::Relaxed);
        }
        // SYNC POINT slot.mark
        slot[0].store(round + 1, Ordering::Release);
    }

    /// Whether a member has written in a round.
    #[inline]
    pub fn has_written(&self, member: u32, round: u64) -> bool {
        // SYNC POINT slot.mark
        self.slot(member, round)[0].load(Ordering::Acquire) == round + 1
    }

    /// The members from `from` on, up to one of which it is still open whether it writes; all of them if the round is settled.
    #[inline]
    pub fn settled(&self, round: u64, from: u32, mut is_dead: impl FnMut(u32) -> bool) -> u32 {
        let mut next = from;
        // That a member is dead ends the waiting; what its slot says is read after that.
        while next < self.members && (self.has_written(next, round) || is_dead(next)) {
            next += 1;
        }
        next
    }

    /// A word of what a member that has written says.
    #[inline]
    pub fn word(&self, member: u32, round: u64, at: usize) -> u64 {
        self.slot(member, round)[HEAD + at].load(Ordering::Relaxed)
    }

    /// The line in which a conclusion is left: the round's mark and a word.
    #[inline]
    fn conclusion(&self, round: u64) -> &[AtomicU64] {
        let behind = self.members as usize * SETS as usize * slot(self.says);
        let at = behind + (round % SETS) as usize * (LINE / WORD);
        &self.memory[at..at + LINE / WORD]
    }

    /// Leaves a conclusion for the others.
    #[inline]
    pub fn conclude(&self, round: u64, word: u64) {
        let line = self.conclusion(round);
        line[1].store(word, Ordering::Relaxed);
        // SYNC POINT slot.mark
        line[0].store(round + 1, Ordering::Release);
    }

    /// What another one has concluded.
    #[inline]
    pub fn concluded(&self, round: u64) -> Option<u64> {
        let line = self.conclusion(round);
        // SYNC POINT slot.mark
        let is_there = line[0].load(Ordering::Acquire) == round + 1;
        is_there.then(|| line[1].load(Ordering::Relaxed))
    }

    /// This member does not look at the slots any more.
    pub fn leave(&self) {
        // SYNC POINT slot.left: its last look comes before.
        self.slot(self.me, 0)[1].store(1, Ordering::Release);
    }

    /// Whether a member has left.
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
        let member = |me| Testimonies::new(&memory[..], me, 3, 2).unwrap();
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
        let member = Testimonies::new(&memory[..], 0, 2, 1).unwrap();
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
        let member = |me| Testimonies::new(&memory[..], me, 3, 1).unwrap();
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
        let member = Testimonies::new(&memory[..], 1, 2, 1).unwrap();
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
        assert!(Testimonies::new(&memory[..], 0, 3, 1).is_none());
        assert!(Testimonies::new(&memory[1..], 0, 2, 1).is_none());
        assert!(Testimonies::new(&memory[..], 2, 2, 1).is_none());
    }
}
