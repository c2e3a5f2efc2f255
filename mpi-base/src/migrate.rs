//! Moving a thread to another core without binding it, and a limit to the rate of such moves.
//!
//! The affinity mask is narrowed only while the kernel moves the thread, and is then restored.
//! A move costs tens of microseconds. If the thread soon needs another move,
//! the pause before the next move doubles.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::time::{Duration, Instant};

/// Minimum pause after a move of a thread; [`LONGEST`] is the maximum pause.
const PAUSE: Duration = Duration::from_millis(1);
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// The state of a thread's moves: the earliest time of the next move, and the current pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    not_before: Option<Instant>,
    pause: Duration,
}

impl Moves {
    /// The state of a thread that has never moved.
    pub const NEW: Moves = Moves {
        not_before: None,
        pause: PAUSE,
    };

    /// Returns true if the pause after the thread's last move has passed at time `now`.
    pub fn may(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| time <= now)
    }

    /// Records a move at time `now`.
    pub fn count(&mut self, now: Instant) {
        // If `LONGEST` has passed since the end of the last pause, the pause is reset to the minimum.
        // Otherwise the last move did not help, and the pause doubles.
        let calm = |time: Instant| now.duration_since(time) > LONGEST;
        self.pause = match self.not_before {
            Some(time) if !calm(time) => (self.pause * 2).min(LONGEST),
            _ => PAUSE,
        };
        self.not_before = Some(now + self.pause);
    }
}

/// Moves this thread to another core of its mask; the kernel chooses the core.
/// Does nothing if no other core is allowed or the kernel refuses.
#[cold]
pub fn aside() {
    through(|mask| {
        let mut others = *mask;
        others.unset(sched_getcpu());
        others
    });
}

/// Moves this thread to `core`; returns false if its mask or the kernel forbids it.
pub fn to(core: usize) -> bool {
    to_one_of(&[core])
}

/// Moves this thread to one of `cores`; the kernel chooses among those in its mask.
/// Returns false if its mask contains none of them or the kernel refuses.
#[cold]
pub fn to_one_of(cores: &[usize]) -> bool {
    through(|mask| {
        let mut some = CpuSet::new();
        let allowed = |core: &&usize| **core < CpuSet::MAX_CPU && mask.is_set(**core);
        cores
            .iter()
            .filter(allowed)
            .for_each(|core| some.set(*core));
        some
    })
}

/// Sets the thread's mask to the subset `part` of it, then restores the mask.
/// Returns true if the kernel accepted the subset.
fn through(part: impl FnOnce(&CpuSet) -> CpuSet) -> bool {
    let Ok(mask) = sched_getaffinity(None) else {
        return false;
    };
    let narrow = part(&mask);
    if narrow.count() == 0 || sched_setaffinity(None, &narrow).is_err() {
        return false;
    }
    // The kernel has accepted this mask before.
    // If the kernel refuses it now, the thread keeps the subset, which is also a valid mask.
    let _ = sched_setaffinity(None, &mask);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::processors;

    /// Runs `test` in a thread bound to its current core; its mask must be unchanged afterwards.
    fn bound(test: fn(usize)) {
        let thread = std::thread::spawn(move || {
            let (mut one, core) = (CpuSet::new(), sched_getcpu());
            one.set(core);
            // The kernel may have moved the thread to another core between the two calls;
            // this call moves the thread back.
            sched_setaffinity(None, &one).unwrap();
            test(core);
            assert_eq!(sched_getaffinity(None).unwrap(), one);
        });
        thread.join().unwrap();
    }

    /// Number of attempts: the kernel may move a thread back immediately, but not every time.
    const TRIES: usize = 100;

    #[test]
    fn stepping_aside_changes_the_core_and_not_the_mask() {
        let before = sched_getaffinity(None).unwrap();
        std::thread::spawn(move || {
            let moved = (0..TRIES).any(|_| {
                let core = sched_getcpu();
                aside();
                assert_eq!(sched_getaffinity(None).unwrap(), before);
                sched_getcpu() != core
            });
            assert_eq!(moved, before.count() > 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn going_to_a_core_leaves_the_mask_as_it_was() {
        let before = sched_getaffinity(None).unwrap();
        std::thread::spawn(move || {
            for core in processors().unwrap() {
                let there = (0..TRIES).any(|_| {
                    assert!(to(core));
                    assert_eq!(sched_getaffinity(None).unwrap(), before);
                    sched_getcpu() == core
                });
                assert!(there, "never on {core}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn going_to_one_of_some_cores_leaves_the_mask_as_it_was() {
        let before = sched_getaffinity(None).unwrap();
        let all = processors().unwrap();
        // Each part has fewer cores than the mask (if the mask has several), so a missing restoration is noticed.
        for cores in all.chunks(all.len().div_ceil(2)) {
            let there = (0..TRIES).any(|_| {
                assert!(to_one_of(cores));
                assert_eq!(sched_getaffinity(None).unwrap(), before);
                cores.contains(&sched_getcpu())
            });
            assert!(there, "never on {cores:?}");
        }
    }

    #[test]
    fn a_thread_that_is_bound_stays() {
        bound(|_| aside());
        bound(|core| {
            let others: Vec<_> = (0..CpuSet::MAX_CPU + 1)
                .filter(|other| *other != core)
                .collect();
            assert!(!to_one_of(&others));
            assert!(to_one_of(&[CpuSet::MAX_CPU, core]));
        });
        bound(|core| {
            assert!(to(core));
            assert!((0..CpuSet::MAX_CPU + 1).all(|other| other == core || !to(other)));
        });
    }

    #[test]
    fn moves_become_rarer_until_it_has_been_calm() {
        let (mut moves, start) = (Moves::NEW, Instant::now());
        assert!(moves.may(start));
        let mut now = start;
        for pause in [1, 2, 4, 8].map(Duration::from_millis) {
            moves.count(now);
            assert!(!moves.may(now + pause - Duration::from_nanos(1)));
            now += pause;
            assert!(moves.may(now));
        }
        for _ in 0..20 {
            moves.count(now);
            now += LONGEST;
            assert!(moves.may(now));
        }
        now += 2 * LONGEST;
        moves.count(now);
        assert!(moves.may(now + PAUSE));
    }
}
