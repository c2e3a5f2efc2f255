//! How a process waits: it polls, then yields, then sleeps on its doorbell.
//!
//! Which of these and how long is data, a [`WaitPolicy`] computed once from the cores and the ranks that share them.
//! Measured with sixty ranks on two cores: pure spinning takes 440 ms for a barrier, a long spin before yielding 3 ms,
//! ten spins with a few yields 0.12 to 0.24 ms.
//! With a core for each rank a wake-up costs about 40 us, so it pays to spin about that long first.

use std::time::{Duration, Instant};

use crate::atomic::spin_loop;
use crate::bell::{Bell, NAP};
use crate::switch::switch;

/// The steps of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// Polls at full speed.
    pub spins: u32,
    /// Polls with a pause between, for this long.
    pub pauses: Duration,
    /// Polls after giving the core to somebody else.
    pub yields: u32,
    /// The longest sleep at once.
    pub nap: Duration,
    /// A program that looks without waiting (`MPI_Test` in a loop) gives the core away after so many looks in vain.
    pub looks: u32,
}

impl WaitPolicy {
    /// A core for each rank.
    pub const ROOMY: WaitPolicy = WaitPolicy {
        spins: 200,
        pauses: Duration::from_micros(50),
        yields: 0,
        nap: NAP,
        looks: 256,
    };

    /// More ranks than cores.
    pub const CROWDED: WaitPolicy = WaitPolicy {
        spins: 10,
        pauses: Duration::ZERO,
        yields: 6,
        nap: NAP,
        looks: 4,
    };

    /// The policy for `local_ranks` ranks on `cores` cores.
    pub fn new(cores: usize, local_ranks: usize) -> WaitPolicy {
        if local_ranks <= cores {
            WaitPolicy::ROOMY
        } else {
            WaitPolicy::CROWDED
        }
    }
}

/// One wait, step by step.
///
/// ```text
/// let mut waiter = Waiter::new(policy);
/// while !done() {
///     if progress() > 0 { waiter.reset() } else { waiter.pause(bell, || pending()) }
/// }
/// ```
#[derive(Debug)]
pub struct Waiter {
    policy: WaitPolicy,
    stage: Stage,
}

/// Where a wait is; each stage lasts as long as the policy says.
#[derive(Debug)]
enum Stage {
    Spin { left: u32 },
    Pause { until: Instant, count: u32 },
    Yield { left: u32 },
    Sleep,
}

/// The clock is read once in so many pauses.
const LOOK: u32 = 16;

impl Waiter {
    /// At the beginning of a wait; a new one for each.
    pub fn new(policy: WaitPolicy) -> Waiter {
        Waiter {
            policy,
            stage: Stage::Spin { left: policy.spins },
        }
    }

    /// Starts over, because something came.
    #[inline]
    pub fn reset(&mut self) {
        self.stage = Stage::Spin {
            left: self.policy.spins,
        };
    }

    /// Whether it is still in its first stage, polling at full speed.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        matches!(self.stage, Stage::Spin { .. })
    }

    /// Whether the time for polling is over, so that the next step may sleep.
    pub fn is_tired(&self) -> bool {
        matches!(self.stage, Stage::Sleep)
    }

    /// Waits one step; `news` must look at every source that rings `bell`, and is asked right before a sleep.
    #[inline]
    pub fn pause(&mut self, bell: &Bell, news: impl FnOnce() -> bool) {
        self.pause_or(|nap| bell.sleep(nap, news));
    }

    /// Waits one step; `sleep` is called, with the longest time it may take, when the time for polling is over.
    #[inline]
    pub fn pause_or(&mut self, sleep: impl FnOnce(Duration)) {
        match &mut self.stage {
            Stage::Spin { left } if *left > 0 => *left -= 1,
            _ => self.rest(sleep),
        }
    }

    #[cold]
    fn rest(&mut self, sleep: impl FnOnce(Duration)) {
        match &mut self.stage {
            Stage::Spin { .. } => {
                self.stage = if self.policy.pauses.is_zero() {
                    Stage::Yield {
                        left: self.policy.yields,
                    }
                } else {
                    Stage::Pause {
                        until: Instant::now() + self.policy.pauses,
                        count: 0,
                    }
                };
            }
            Stage::Pause { until, count } => {
                spin_loop();
                *count = count.wrapping_add(1);
                if count.is_multiple_of(LOOK) {
                    let now = Instant::now();
                    if now >= *until {
                        self.stage = Stage::Yield {
                            left: self.policy.yields,
                        };
                    } else {
                        // With a core of its own this costs a short system call; where the system has put both ranks on one core, it saves a time slice, and one of them moves.
                        yield_core(now);
                    }
                }
            }
            Stage::Yield { left: 0 } => self.stage = Stage::Sleep,
            Stage::Yield { left } => {
                *left -= 1;
                switch();
            }
            Stage::Sleep => sleep(self.policy.nap),
        }
    }
}

#[cfg(not(loom))]
use crate::crowding::yield_core;

/// Models have no cores to move between.
#[cfg(loom)]
fn yield_core(_: Instant) {
    switch();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Steps a waiter takes before it asks for news the first time, that is, before it would sleep.
    fn steps_before_sleep(waiter: &mut Waiter) -> u32 {
        let bell = Bell::new();
        let asked = Cell::new(false);
        let mut steps = 0;
        while !asked.get() {
            steps += 1;
            waiter.pause(&bell, || {
                asked.set(true);
                true
            });
        }
        steps
    }

    #[test]
    fn ranks_that_fit_the_cores_spin_and_others_yield() {
        assert_eq!(WaitPolicy::new(4, 4), WaitPolicy::ROOMY);
        assert_eq!(WaitPolicy::new(4, 5), WaitPolicy::CROWDED);
    }

    #[test]
    fn a_waiter_goes_through_every_stage_and_starts_over_when_reset() {
        let mut waiter = Waiter::new(WaitPolicy::CROWDED);
        let first = steps_before_sleep(&mut waiter);
        assert!(first > WaitPolicy::CROWDED.spins + WaitPolicy::CROWDED.yields);
        assert!(waiter.is_tired());
        assert_eq!(steps_before_sleep(&mut waiter), 1);
        waiter.reset();
        assert_eq!(steps_before_sleep(&mut waiter), first);
        assert!(steps_before_sleep(&mut Waiter::new(WaitPolicy::ROOMY)) > WaitPolicy::ROOMY.spins);
    }
}
