//! Keeping a shared core for a moment, when no other rank on it has anything to do.
//!
//! A rank that waits where ranks share cores gives the core away at once, and is back when all others there have had their turn.
//! If what it waits for has still not come, it comes from another core, and all that wait here would be switched in and out for nothing:
//! each look costs a switch, and it is chance which rank has the core when it comes.
//! So a rank that is back keeps it for as long as others may need to come, and goes on first.
//! That keeps ranks in the order in which they have come: a root that was first to finish one call is first in the next, and shows its data before any other asks,
//! where otherwise most are switched in once to find that it has not (16 ranks on two cores, broadcasts and barriers in turn, switches of each for both: 1.65 and 1.05).
//!
//! Where that was in vain, another rank is late for another reason, and may need the core: so it is done half as often each time.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// So long: as a few switches on the other core take.
const LENGTH: Duration = Duration::from_micros(8);

/// The place is looked at as often before the clock is.
const LOOKS: u32 = 8;

/// After so many times in vain in a row it does not become rarer.
const RAREST: u32 = 10;

/// What a thread knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Habit {
    /// Times in vain in a row.
    vain: u32,
    /// So many occasions are let go.
    skip: u32,
}

impl Habit {
    /// The habit behind this occasion, and whether it is taken.
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

/// Keeps the core until `done`, but not for long, and not always; whether it is done.
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

    /// On which of so many occasions the core is kept, if that helps on these.
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
