//! Spinning of an oversubscribed rank, if no other rank is likely to need its core.
//!
//! A waiting oversubscribed rank yields its core immediately,
//! and runs again after all other ranks on that core.
//! If its message has not arrived by then, the sender is on another core,
//! and switching among the waiting ranks has no use:
//! each poll costs a context switch, and any of the ranks may have the core when its message arrives.
//! So a rank that runs again spins for about as long as the other core may need,
//! and then continues before the other ranks on its core.
//! This keeps the ranks in their order of arrival:
//! a root that finishes one call first is also first in the next call.
//! The root then publishes its data before other ranks poll for them;
//! otherwise most ranks are scheduled one additional time without finding data.
//! Measured with 16 ranks on two cores and alternating broadcasts and barriers:
//! 1.05 context switches per rank and pair of calls, and 1.65 without spinning.
//!
//! If the spin fails, the awaited rank is late for another reason and may need this core; each failure halves the frequency of spins.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a spin lasts: about the time of a few context switches on the other core.
const LENGTH: Duration = Duration::from_micros(8);

const LOOKS: u32 = 8;

/// Number of consecutive failures after which the frequency does not decrease further.
const RAREST: u32 = 10;

/// A thread's record of earlier spins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Habit {
    vain: u32,
    /// The number of further opportunities for a spin that will be skipped.
    skip: u32,
}

impl Habit {
    /// Returns the new record, and true if the rank should spin now.
    fn asked(self) -> (Habit, bool) {
        match self.skip {
            0 => (self, true),
            left => (
                Habit {
                    skip: left - 1,
                    ..self
                },
                false,
            ),
        }
    }

    fn after(self, came: bool) -> Habit {
        if came {
            return Habit::default();
        }
        let vain = (self.vain + 1).min(RAREST);
        Habit {
            vain,
            skip: (1 << vain) - 1,
        }
    }
}

thread_local! {
    static HABIT: Cell<Habit> = const { Cell::new(Habit { vain: 0, skip: 0 }) };
}

/// Spins until `done` returns true, for a limited time, or skips this opportunity. Returns true if `done` has returned true.
pub fn spin_hold(done: &mut dyn FnMut() -> bool) -> bool {
    let (habit, taken) = HABIT.get().asked();
    let came = taken && watch(done);
    HABIT.set(match taken {
        true => habit.after(came),
        false => habit,
    });
    came
}

fn watch(done: &mut dyn FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < LENGTH {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the opportunities at which the rank spins, if a spin succeeds where `helps` returns true.
    fn kept(occasions: u32, helps: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut habit = Habit::default();
        let mut kept = Vec::new();
        for occasion in 0..occasions {
            let (asked, taken) = habit.asked();
            habit = asked;
            if taken {
                kept.push(occasion);
                habit = habit.after(helps(occasion));
            }
        }
        kept
    }

    #[test]
    fn what_is_in_vain_is_done_more_and_more_rarely() {
        assert_eq!(kept(100, |_| false), [0, 2, 6, 14, 30, 62]);
        let often = kept(10_000, |_| false).len();
        assert!((15..25).contains(&often), "{often}");
    }

    #[test]
    fn what_helps_is_done_always() {
        assert_eq!(kept(50, |_| true).len(), 50);
        assert_eq!(
            kept(10, |occasion| occasion != 3),
            [0, 1, 2, 3, 5, 6, 7, 8, 9]
        );
    }

    #[test]
    fn the_core_is_kept_until_it_is_done_and_not_for_ever() {
        let mut looks = 0;
        assert!(watch(&mut || {
            looks += 1;
            looks == 5
        }));
        assert_eq!(looks, 5);
        assert!(!watch(&mut || false));
    }
}
