//! The waiting policy: a process polls, then yields, then sleeps on its doorbell.
//!
//! A [`WaitPolicy`] determines the steps of a wait and their lengths.
//! It is computed once from the numbers of cores and of ranks on them.
//! Measured for a barrier of sixty ranks on two cores:
//! 440 ms with pure spinning, 3 ms with a long spin before yielding.
//! On oversubscribed cores the awaited rank usually needs this core,
//! so each poll without a result is followed by a yield:
//! ten more polls before each yield slowed a ring of messages by a tenth.
//! With one core per rank a wake-up costs about 40 us, so a waiter first spins for about that time.
//!
//! On a core shared with a process that computes, a yield costs a time slice of 3 to 4 ms,
//! because the scheduler gives that process the rest of the yielder's slice.
//! A rank that sleeps on its doorbell is scheduled within 10 to 30 us after it is woken.
//! So a waiter whose yield was long sleeps without another yield ([`Waiter::has_met_load`]),
//! and the next waits of the process start with the policy [`WaitPolicy::without_yields`].
//! A yield is long if it took more than one turn of each rank that may share the core
//! ([`WaitPolicy::for_ranks`]). Then one of these ranks computes,
//! and a message from another core waits for the same time.
//!
//! A yield that returns at once has found the core idle.
//! A sleep on an idle core costs the core's wake-up, 30 to 50 us on a virtual machine.
//! So such yields count for less ([`AT_ONCE`]),
//! and a waiter on an idle core polls for about the time of a wake-up.

use std::time::{Duration, Instant};

use crate::atomic::spin_loop;
use crate::doorbell::{Doorbell, NAP};
use crate::occupancy::Occupancy;
use crate::yield_now::{Yielded, timed_yield};

/// The number or the duration of each step of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// Number of polls without a pause.
    pub spins: u32,
    /// Duration of polling with a pause between two polls.
    pub pauses: Duration,
    /// Number of polls that each follow a yield of the core to another thread.
    pub yields: u32,
    /// The value of `yields` for a thread of a process that has more waiting threads than cores.
    pub yields_to_threads: u32,
    /// After a yield that is longer than this, the waiter sleeps.
    pub long: Yielded,
    /// Maximum duration of one sleep.
    pub nap: Duration,
    /// Number of polls without a result after which a program that polls without waiting
    /// (`MPI_Test` in a loop) yields the core.
    pub looks: u32,
}

impl WaitPolicy {
    /// The policy if each rank has its own core.
    pub const DEDICATED: WaitPolicy = WaitPolicy {
        spins: 200,
        pauses: Duration::from_micros(50),
        yields: 0,
        yields_to_threads: 12,
        long: Yielded::LONG,
        nap: NAP,
        looks: 256,
    };

    /// The policy if ranks oversubscribe the cores.
    pub const OVERSUBSCRIBED: WaitPolicy = WaitPolicy {
        spins: 0,
        pauses: Duration::ZERO,
        yields: 12,
        yields_to_threads: 12,
        long: Yielded::LONG,
        nap: NAP,
        // A polling rank may have its own work: with 4,
        // random accesses of hpcc had a third of their rate with 16.
        looks: 16,
    };

    /// Returns the policy for ranks on cores of this occupancy.
    pub fn of(occupancy: Occupancy) -> WaitPolicy {
        match occupancy {
            Occupancy::Dedicated => WaitPolicy::DEDICATED,
            Occupancy::Oversubscribed => WaitPolicy::OVERSUBSCRIBED,
        }
    }

    /// Returns the policy for a process that shares its core with a process that computes:
    /// sleeps replace yields.
    pub const fn without_yields(self) -> WaitPolicy {
        WaitPolicy {
            yields: 0,
            yields_to_threads: 0,
            ..self
        }
    }

    /// Returns the policy for `ranks` ranks that share a core.
    ///
    /// A yield in which each of them handles a short message is not long;
    /// a yield in which one of them computes is long.
    pub fn for_ranks(self, ranks: usize) -> WaitPolicy {
        /// The time of a rank that handles messages, and the minimum time that counts as computing,
        /// in microseconds.
        const SHARE: u64 = 10;
        const COMPUTATION: u64 = 25;
        let round = Yielded::micros(COMPUTATION + SHARE * ranks as u64);
        WaitPolicy {
            long: round.min(Yielded::LONG),
            ..self
        }
    }

    /// Returns the first stage of a wait.
    #[inline]
    fn first(&self) -> Stage {
        match self.spins {
            0 if self.pauses.is_zero() => Stage::yields(self.yields),
            left => Stage::Spin { left },
        }
    }
}

/// One wait, performed step by step.
///
/// ```text
/// let mut waiter = Waiter::new(policy);
/// while !done() {
///     if progress() > 0 { waiter.reset() } else { waiter.pause(doorbell, || pending()) }
/// }
/// ```
#[derive(Debug)]
pub struct Waiter {
    policy: WaitPolicy,
    stage: Stage,
    /// The duration of the long yield of this wait; `None` if there was none.
    met_load: Option<Yielded>,
}

/// Number of yields that return at once and together count as one yield that lets another thread
/// run.
pub const AT_ONCE: u32 = 8;

/// The stage of a wait; the policy determines the length of each stage.
#[derive(Debug)]
enum Stage {
    Spin {
        left: u32,
    },
    Pause {
        until: Instant,
        count: u32,
    },
    /// The stage of yields of the core.
    Yield {
        left: u32,
    },
    /// The stage of sleeps; `is_new` is true until [`Waiter::begins_to_sleep`] has been called.
    Sleep {
        is_new: bool,
    },
}

impl Stage {
    fn yields(yields: u32) -> Stage {
        Stage::Yield {
            left: yields.saturating_mul(AT_ONCE),
        }
    }
}

/// Number of pauses after which the clock is read.
const LOOK: u32 = 16;

impl Waiter {
    /// Begins a wait; each wait has its own waiter.
    pub fn new(policy: WaitPolicy) -> Waiter {
        Waiter {
            policy,
            stage: policy.first(),
            met_load: None,
        }
    }

    /// Returns the duration of this wait's long yield,
    /// which gave the core to a process that computes.
    #[inline]
    pub fn has_met_load(&self) -> Option<Yielded> {
        self.met_load
    }

    /// Records a long yield, after which this wait no longer yields.
    #[cold]
    fn meet_load(&mut self, took: Yielded) {
        self.met_load = Some(took);
        self.policy = self.policy.without_yields();
        self.stage = Stage::Yield { left: 0 };
    }

    /// Returns true if this wait may still yield to other threads of its process.
    #[inline]
    pub fn may_yield_to_threads(&self) -> bool {
        match self.stage {
            Stage::Spin { .. } | Stage::Pause { .. } => self.policy.yields_to_threads > 0,
            Stage::Yield { left } => left > 0,
            Stage::Sleep { .. } => false,
        }
    }

    /// Records a yield to other threads of the process, which replaces a step of this wait.
    pub fn has_yielded_to_threads(&mut self, took: Yielded) {
        if matches!(self.stage, Stage::Spin { .. } | Stage::Pause { .. }) {
            self.stage = Stage::yields(self.policy.yields_to_threads);
        }
        self.spend(took);
        // A thread of the same process that sends many messages occupies the core for longer than
        // a waiting rank.
        if took > Yielded::LONG {
            self.meet_load(took);
        }
    }

    #[inline(always)]
    fn count_yield(&mut self, took: Yielded) {
        self.spend(took);
        if took > self.policy.long {
            self.meet_load(took);
        }
    }

    /// Reduces the number of remaining yields by a yield of duration `took`.
    #[inline(always)]
    fn spend(&mut self, took: Yielded) {
        let cost = match took < Yielded::IDLE {
            true => 1,
            false => AT_ONCE,
        };
        if let Stage::Yield { left } = &mut self.stage {
            *left = left.saturating_sub(cost);
        }
    }

    /// Restarts the stages of the wait, because a message has arrived.
    #[inline]
    pub fn reset(&mut self) {
        self.stage = self.policy.first();
    }

    /// Returns true if the polling stages have ended, so the next step may sleep.
    #[inline]
    pub fn is_tired(&self) -> bool {
        matches!(self.stage, Stage::Sleep { .. })
    }

    /// Returns true once whenever the wait changes from polling to sleeping.
    #[cold]
    pub fn begins_to_sleep(&mut self) -> bool {
        match &mut self.stage {
            Stage::Sleep { is_new } => std::mem::take(is_new),
            _ => false,
        }
    }

    /// Performs one step of the wait; `news` must poll every source that rings `doorbell`,
    /// and runs directly before a sleep.
    #[inline]
    pub fn pause(&mut self, doorbell: &Doorbell, news: impl FnOnce() -> bool) {
        self.pause_or(|nap| doorbell.sleep(nap, news));
    }

    /// Performs one step of the wait; after the polling stages,
    /// calls `sleep` with its maximum duration.
    #[inline]
    pub fn pause_or(&mut self, sleep: impl FnOnce(Duration)) {
        match &mut self.stage {
            Stage::Spin { left } if *left > 0 => *left -= 1,
            Stage::Yield { left } if *left > 0 => {
                // The function is inlined: after a yield, the returns of the enclosing calls are
                // mispredicted (`yield_now`).
                let took = timed_yield();
                self.count_yield(took);
            }
            _ => self.rest(sleep),
        }
    }

    #[cold]
    fn rest(&mut self, sleep: impl FnOnce(Duration)) {
        match &mut self.stage {
            Stage::Spin { .. } => {
                self.stage = if self.policy.pauses.is_zero() {
                    Stage::yields(self.policy.yields)
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
                        self.stage = Stage::yields(self.policy.yields);
                    } else {
                        // If the rank has its own core, this costs a short system call.
                        // If the system has placed two ranks on one core, this saves a time slice,
                        // and one of them moves.
                        yield_core(now);
                    }
                }
            }
            Stage::Yield { .. } => self.stage = Stage::Sleep { is_new: true },
            Stage::Sleep { .. } => sleep(self.policy.nap),
        }
    }
}

#[cfg(not(loom))]
use crate::shared_core::yield_core;

/// Does nothing: loom models have no cores to move between.
#[cfg(loom)]
fn yield_core(_: Instant) {
    crate::yield_now::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns the number of steps that a waiter takes before it first calls `news`,
    /// when it would sleep.
    fn steps_before_sleep(waiter: &mut Waiter) -> u32 {
        let doorbell = Doorbell::new();
        let asked = Cell::new(false);
        let mut steps = 0;
        while !asked.get() {
            steps += 1;
            waiter.pause(&doorbell, || {
                asked.set(true);
                true
            });
        }
        steps
    }

    #[test]
    fn ranks_that_fit_the_cores_spin_and_others_yield() {
        let policy = |ranks| WaitPolicy::of(Occupancy::of(4, ranks));
        assert_eq!(policy(4), WaitPolicy::DEDICATED);
        assert_eq!(policy(5), WaitPolicy::OVERSUBSCRIBED);
    }

    #[test]
    fn a_waiter_passes_every_stage_and_starts_over_when_reset() {
        let mut waiter = Waiter::new(WaitPolicy::OVERSUBSCRIBED);
        let first = steps_before_sleep(&mut waiter);
        // Every poll except the one that ends the stage is followed by a yield,
        // and the last one by a sleep.
        // Yields on an idle core count for less; next to a process that computes,
        // one yield may be the last.
        let yields = WaitPolicy::OVERSUBSCRIBED.yields;
        let steps = 2..=AT_ONCE * yields + 2;
        assert!(steps.contains(&first), "{first} steps");
        assert!(waiter.has_met_load().is_some() || first >= yields + 2);
        assert!(waiter.is_tired());
        assert!(waiter.begins_to_sleep() && !waiter.begins_to_sleep());
        assert_eq!(steps_before_sleep(&mut waiter), 1);
        waiter.reset();
        assert!(steps.contains(&steps_before_sleep(&mut waiter)));
        assert!(
            steps_before_sleep(&mut Waiter::new(WaitPolicy::DEDICATED))
                > WaitPolicy::DEDICATED.spins
        );
    }

    #[test]
    fn a_waiter_that_met_a_computing_process_sleeps_without_another_yield() {
        let mut waiter = Waiter::new(WaitPolicy::OVERSUBSCRIBED);
        waiter.meet_load(Yielded::LONG);
        assert_eq!(waiter.has_met_load(), Some(Yielded::LONG));
        // One more poll ends the stage, and the next step sleeps.
        assert_eq!(steps_before_sleep(&mut waiter), 2);
        waiter.reset();
        assert_eq!(steps_before_sleep(&mut waiter), 2);
        let beside_load = WaitPolicy::OVERSUBSCRIBED.without_yields();
        assert_eq!(steps_before_sleep(&mut Waiter::new(beside_load)), 2);
    }

    /// Returns the number of yields of this duration after which the wait may sleep.
    fn yields_of(took: Yielded) -> u32 {
        let mut waiter = Waiter::new(WaitPolicy::DEDICATED);
        let mut yields = 0;
        while waiter.may_yield_to_threads() {
            waiter.has_yielded_to_threads(took);
            yields += 1;
        }
        yields
    }

    #[test]
    fn yields_on_an_idle_core_count_for_less_and_a_long_one_is_the_last() {
        let yields = WaitPolicy::DEDICATED.yields_to_threads;
        assert_eq!(yields_of(Yielded::micros(0)), AT_ONCE * yields);
        assert_eq!(yields_of(Yielded::micros(2)), yields);
        assert_eq!(yields_of(Yielded::micros(4_000)), 1);
    }

    #[test]
    fn a_round_of_ranks_that_handle_messages_is_not_long_and_a_computation_is() {
        let long = |ranks| WaitPolicy::OVERSUBSCRIBED.for_ranks(ranks).long;
        assert!(long(2) < Yielded::micros(50) && long(2) > Yielded::micros(20));
        assert!(long(30) > Yielded::micros(200));
        assert_eq!(long(1_000), Yielded::LONG);
    }
}
