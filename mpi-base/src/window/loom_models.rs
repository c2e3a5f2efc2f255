//! Models of post, start, complete and wait; [`crate::loom_models`] describes how to run them.
//!
//! A member does what `MPI_Win_post`, `start`, `complete` and `wait` do: it counts with
//! [`Awaited`], publishes through [`Line`] and is woken through [`Arrivals`].
//! The data are accessed with relaxed ordering, so only the protocol orders the accesses.
#![allow(unsafe_code)]

use loom::sync::Arc;
use loom::thread;

use super::{Arrivals, Awaited, Line};
use crate::atomic::{AtomicU64, Ordering, fence};
use crate::doorbell::{Doorbell, NAP};
use crate::loom_models::check;

/// The words of a window of `N` members that share a node.
struct Words<const N: usize> {
    /// The line that member `writer` publishes to member `reader`, at `lines[reader][writer]`.
    lines: [[Line; N]; N],
    arrivals: [Arrivals; N],
    doorbells: [Doorbell; N],
    /// Each member's part of the window.
    parts: [AtomicU64; N],
}

/// One member with its counts of the others; only the member's own thread uses it.
struct Member<const N: usize> {
    words: Arc<Words<N>>,
    me: usize,
    awaited: [Awaited; N],
}

fn members<const N: usize>() -> [Member<N>; N] {
    let words = Arc::new(Words {
        lines: std::array::from_fn(|_| std::array::from_fn(|_| Line::new())),
        arrivals: std::array::from_fn(|_| Arrivals::new()),
        doorbells: std::array::from_fn(|_| Doorbell::new()),
        parts: std::array::from_fn(|_| AtomicU64::new(0)),
    });
    std::array::from_fn(|me| Member {
        words: words.clone(),
        me,
        awaited: [Awaited::default(); N],
    })
}

impl<const N: usize> Member<N> {
    fn tell(&self, whom: usize, tell: impl FnOnce(&Line)) {
        tell(&self.words.lines[whom][self.me]);
        if self.words.arrivals[whom].arrive() {
            self.words.doorbells[whom].ring();
        }
    }

    fn wait_for(&self, group: &[usize], has_come: impl Fn(Awaited, &Line) -> bool) {
        let lines = &self.words.lines[self.me];
        let missing = || {
            let each = group.iter();
            each.filter(|&&from| !has_come(self.awaited[from], &lines[from]))
                .count() as u32
        };
        let all_in = || self.words.arrivals[self.me].are_in(missing);
        while !all_in() {
            self.words.doorbells[self.me].sleep(NAP, all_in);
        }
    }

    fn post(&self, group: &[usize]) {
        fence(Ordering::SeqCst);
        for &whom in group {
            self.tell(whom, Line::post);
        }
    }

    fn start(&mut self, group: &[usize]) {
        self.start_nocheck(group);
        self.wait_for(group, |awaited, line| awaited.has_posted(line.posted()));
    }

    fn start_nocheck(&mut self, group: &[usize]) {
        group.iter().for_each(|&whom| self.awaited[whom].start());
    }

    fn complete(&self, group: &[usize]) {
        fence(Ordering::SeqCst);
        for &whom in group {
            self.tell(whom, Line::complete);
        }
    }

    fn wait(&mut self, group: &[usize]) {
        self.wait_for(group, |awaited, line| {
            awaited.has_completed(line.completed())
        });
        group.iter().for_each(|&whom| self.awaited[whom].end());
    }

    fn read(&self, whom: usize) -> u64 {
        self.words.parts[whom].load(Ordering::Relaxed)
    }

    fn write(&self, whom: usize, value: u64) {
        self.words.parts[whom].store(value, Ordering::Relaxed);
    }
}

/// An access epoch sees what the target wrote before its post, and the target sees the epoch's writes
/// after its wait; the model executes two epochs.
#[test]
fn an_epoch_lies_between_the_post_and_the_wait_of_its_number() {
    check(|| {
        let [mut target, mut origin] = members::<2>();
        let origin = thread::spawn(move || {
            for epoch in [1, 2] {
                origin.start(&[0]);
                assert_eq!(origin.read(0), 10 * epoch);
                origin.write(0, 10 * epoch + 1);
                origin.complete(&[0]);
            }
        });
        for epoch in [1, 2] {
            target.write(0, 10 * epoch);
            target.post(&[1]);
            target.wait(&[1]);
            assert_eq!(target.read(0), 10 * epoch + 1);
        }
        origin.join().unwrap();
    });
}

/// Both members expose their parts and access the other's, and sleep until the other is ready:
/// no member stays asleep.
#[test]
fn two_members_that_expose_to_each_other_end_their_epochs() {
    check(|| {
        let run = |mut member: Member<2>| {
            let other = [1 - member.me];
            member.post(&other);
            member.start(&other);
            member.write(other[0], 7);
            member.complete(&other);
            member.wait(&other);
            assert_eq!(member.read(member.me), 7);
        };
        let [first, second] = members::<2>();
        let second = thread::spawn(move || run(second));
        run(first);
        second.join().unwrap();
    });
}

/// A member of the next epoch's group may post at any time;
/// this post does not start the epoch with another member.
#[test]
fn a_post_from_outside_of_the_group_is_kept_for_its_own_epoch() {
    check(|| {
        let [first, second, mut origin] = members::<3>();
        let exposing = |member: Member<3>| {
            thread::spawn(move || {
                member.write(member.me, 5);
                member.post(&[2]);
            })
        };
        let threads = [exposing(first), exposing(second)];
        for whom in [0, 1] {
            origin.start(&[whom]);
            assert_eq!(origin.read(whom), 5);
            origin.complete(&[whom]);
        }
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// A completion of a member outside of the exposure's group belongs to an earlier or later epoch,
/// and does not end the exposure of other members.
#[test]
fn an_exposure_of_two_ends_when_both_have_completed() {
    check(|| {
        let [mut target, first, second] = members::<3>();
        // No member waits for posts: three waiting members are too many for loom,
        // and the models with two members check the wake-up.
        let accessing = |mut member: Member<3>| {
            thread::spawn(move || {
                member.start_nocheck(&[0]);
                // Each accessing member writes its own part of the window.
                member.write(member.me, 3);
                member.complete(&[0]);
            })
        };
        let threads = [accessing(first), accessing(second)];
        target.post(&[1, 2]);
        target.wait(&[1, 2]);
        assert_eq!((target.read(1), target.read(2)), (3, 3));
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// An epoch with `MPI_MODE_NOCHECK` consumes its post, so the next start waits for another post.
#[test]
fn an_epoch_without_check_takes_its_post_with_it() {
    check(|| {
        let [mut target, mut origin] = members::<2>();
        // The program's own notification that the target has exposed its part.
        let exposed = Arc::new(AtomicU64::new(0));
        let told = exposed.clone();
        let origin = thread::spawn(move || {
            while told.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            origin.start_nocheck(&[0]);
            assert_eq!(origin.read(0), 1);
            origin.complete(&[0]);
            origin.start(&[0]);
            assert_eq!(origin.read(0), 2);
            origin.complete(&[0]);
        });
        target.write(0, 1);
        target.post(&[1]);
        exposed.store(1, Ordering::Release);
        target.wait(&[1]);
        target.write(0, 2);
        target.post(&[1]);
        target.wait(&[1]);
        origin.join().unwrap();
    });
}

/// SYNC POINT window.arrival: a rank that waits for two arrivals is woken.
/// Only the second arrival rings the doorbell.
#[test]
fn the_last_of_those_that_are_waited_for_rings() {
    check(|| {
        let [first, second, mut origin] = members::<3>();
        let posting = |member: Member<3>| thread::spawn(move || member.post(&[2]));
        let threads = [posting(first), posting(second)];
        origin.start(&[0, 1]);
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}
