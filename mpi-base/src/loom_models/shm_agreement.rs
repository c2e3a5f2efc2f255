//! A model of an agreement: members reach the same decision although one member may die.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering};
use crate::shm_agreement::{ShmAgreement, words};

const MEMBERS: u32 = 3;

/// The words that one member has read, one per member; `None` for an unwritten one.
type Seen = Vec<Option<u64>>;

fn conclude(shared: &(Vec<AtomicU64>, AtomicU64), me: u32) -> Seen {
    let slots = ShmAgreement::new(&shared.0[..], me, MEMBERS, 1).unwrap();
    let is_dead = |member: u32| shared.1.load(Ordering::Acquire) == u64::from(member) + 1;
    let mut next = 0;
    loop {
        next = slots.settled(0, next, is_dead);
        if next == MEMBERS {
            break;
        }
        thread::yield_now();
    }
    (0..MEMBERS)
        .map(|member| {
            let wrote = slots.has_written(member, 0);
            wrote.then(|| slots.word(member, 0, 0))
        })
        .collect()
}

/// SYNC POINT slot.mark: the living members read the same words at any time,
/// and whether or not the dying member has written its word.
fn all_conclude_alike(the_dead_writes: bool) {
    check(move || {
        let memory: Vec<_> = (0..words(MEMBERS, 1)).map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new((memory, AtomicU64::new(0)));
        // The two living members have written, so they wait only for the third member.
        for me in 0..2 {
            let slots = ShmAgreement::new(&shared.0[..], me, MEMBERS, 1).unwrap();
            slots.write(0, &[u64::from(me) + 10]);
        }
        let dies = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let slots = ShmAgreement::new(&shared.0[..], 2, MEMBERS, 1).unwrap();
                if the_dead_writes {
                    slots.write(0, &[12]);
                }
                // The kernel reports a death only after all stores of the process.
                shared.1.store(3, Ordering::Release);
            })
        };
        // A member that reads during the death and one that reads later read the same words.
        let meanwhile = conclude(&shared, 0);
        dies.join().unwrap();
        assert_eq!(meanwhile, conclude(&shared, 1));
        let dead = the_dead_writes.then_some(12);
        assert_eq!(meanwhile, [Some(10), Some(11), dead]);
    });
}

#[test]
fn all_conclude_alike_with_a_member_that_writes_and_dies() {
    all_conclude_alike(true);
}

#[test]
fn all_conclude_alike_with_a_member_that_dies_before_it_writes() {
    all_conclude_alike(false);
}
