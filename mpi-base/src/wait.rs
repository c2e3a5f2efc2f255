//! The waiting policy: a process polls, then yields, then sleeps on its doorbell.
//!
//! A [`WaitPolicy`] determines the duration of each of these stages.
//! The policy is computed one time, from the numbers of cores and of ranks on these cores.
//! Measured for a barrier of sixty ranks on two cores:
//! 440 ms if ranks only spin, 3 ms if they spin for long before yielding.
//! On oversubscribed cores the awaited rank usually needs the waiter's core,
//! so each poll without a result is followed by a yield.
//! Ten more polls before each yield slowed a ring of messages by a tenth.
//! With one core per rank a wake-up costs about 40 us, so a waiter first spins for about that time.
//!
//! On a core shared with a process that computes, a yield costs a time slice of 3 to 4 ms,
//! because the scheduler gives that process the rest of the waiter's slice.
//! A rank that sleeps on its doorbell is scheduled within 10 to 30 us after it is woken.
//! So a waiter whose yield was long sleeps and does not yield again ([`LastYield::Long`]),
//! and the next waits of the process have the policy [`WaitPolicy::without_yields`].
//! A yield is long if it took more than one message's time for each rank that may share the core
//! ([`WaitPolicy::for_ranks`]). Then one of these ranks computes,
//! and a message from another core has to wait for that rank, too.
//!
//! A yield that returns immediately has found no other thread that needs the core.
//! A sleep on an idle core costs the core's wake-up, 30 to 50 us on a virtual machine.
//! So such yields count as a fraction of a yield ([`AT_ONCE`]),
//! and a waiter on an idle core polls for about the time of a wake-up before it sleeps.

use std::time::{Duration, Instant};

use crate::atomic::spin_loop;
use crate::doorbell::{Doorbell, NAP};
use crate::occupancy::Occupancy;
use crate::yield_now::{Yielded, timed_yield};

/// The number of repetitions or the duration of each stage of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// Number of polls in the first stage, without a pause between them.
    pub spins: u32,
    /// Duration of the stage in which a pause (spin-loop hint) separates two polls.
    pub pauses: Duration,
    /// Number of polls that are each preceded by a yield of the core to another thread.
    pub yields: u32,
    /// The value of `yields` for a thread of a process that has more waiting threads than cores.
    pub yields_to_threads: u32,
    /// A yield that is longer than this ends the stage of yields; the waiter then sleeps.
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
        // A program that polls may have work to do: with 4 instead of 16, the rate of hpcc's
        // random accesses fell to a third.
        looks: 16,
    };

    /// Returns the policy for ranks on cores with this occupancy.
    pub fn of(occupancy: Occupancy) -> WaitPolicy {
        match occupancy {
            Occupancy::Dedicated => WaitPolicy::DEDICATED,
            Occupancy::Oversubscribed => WaitPolicy::OVERSUBSCRIBED,
        }
    }

    /// Returns the policy for a rank whose core is shared with a process that computes:
    /// the waiter sleeps instead of yielding.
    pub const fn without_yields(self) -> WaitPolicy {
        WaitPolicy {
            yields: 0,
            yields_to_threads: 0,
            ..self
        }
    }

    /// Returns the policy for `ranks` ranks that share a core.
    /// The number of ranks determines which yields are long.
    ///
    /// A yield during which each of these ranks handles a short message is not long;
    /// a yield during which one of these ranks computes is long.
    pub fn for_ranks(self, ranks: usize) -> WaitPolicy {
        /// `SHARE`: the time in microseconds in which a rank handles a message.
        /// `COMPUTATION`: if a yield exceeds the shares of all ranks by this time, in microseconds,
        /// one of the ranks computes.
        const SHARE: u64 = 10;
        const COMPUTATION: u64 = 25;
        let round = Yielded::micros(COMPUTATION + SHARE * ranks as u64);
        WaitPolicy {
            long: round.min(Yielded::LONG),
            ..self
        }
    }

    /// Returns the first stage of a wait with this policy.
    #[inline]
    fn first(&self) -> Stage {
        match self.spins {
            0 if self.pauses.is_zero() => Stage::yields(self.yields),
            left => Stage::Spin { left },
        }
    }
}

/// One wait. The caller polls, and calls [`Waiter::pause`] after each poll without a result.
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
    /// The kind of the last yield since the last call of [`Waiter::take_yield`].
    last_yield: LastYield,
    /// True if the last step was a sleep that ended by timeout.
    timed_out: bool,
}

/// The kind of a waiter's last yield.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastYield {
    /// The waiter has not yielded.
    #[default]
    None,
    /// A yield that met no computation: other threads exchanged messages, or no other thread ran.
    Short,
    /// A yield during which a thread computed on this core, with its duration.
    Long(Yielded),
}

/// Number of yields on an idle core that together count as one yield to another thread.
pub const AT_ONCE: u32 = 8;

/// The stage of a wait; the policy determines the duration of each stage.
#[derive(Debug)]
enum Stage {
    Spin {
        left: u32,
    },
    Pause {
        until: Instant,
        count: u32,
    },
    /// The stage in which the waiter yields the core between two polls.
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

/// Number of pauses between two readings of the clock.
const LOOK: u32 = 16;

impl Waiter {
    /// Returns the waiter of a wait that begins now; each wait has its own waiter.
    pub fn new(policy: WaitPolicy) -> Waiter {
        Waiter {
            policy,
            stage: policy.first(),
            last_yield: LastYield::None,
            timed_out: false,
        }
    }

    /// Returns the kind of the last yield since the last call of this function.
    #[inline]
    pub fn take_yield(&mut self) -> LastYield {
        std::mem::take(&mut self.last_yield)
    }

    /// Records that a sleep of this wait ended by timeout.
    pub fn note_timeout(&mut self) {
        self.timed_out = true;
    }

    /// Returns true if a sleep of this wait ended by timeout since the last call of this function.
    #[inline(always)]
    pub fn take_timeout(&mut self) -> bool {
        std::mem::take(&mut self.timed_out)
    }

    /// Records a long yield, after which this wait yields no more.
    #[cold]
    fn meet_load(&mut self, took: Yielded) {
        self.last_yield = LastYield::Long(took);
        self.policy = self.policy.without_yields();
        self.stage = Stage::Yield { left: 0 };
    }

    /// Returns true if a step of this wait may be a yield to other threads of its process.
    #[inline]
    pub fn may_yield_to_threads(&self) -> bool {
        match self.stage {
            Stage::Spin { .. } | Stage::Pause { .. } => self.policy.yields_to_threads > 0,
            Stage::Yield { left } => left > 0,
            Stage::Sleep { .. } => false,
        }
    }

    /// Records a yield to other threads of the process, which counts as one step of this wait.
    pub fn has_yielded_to_threads(&mut self, took: Yielded) {
        if matches!(self.stage, Stage::Spin { .. } | Stage::Pause { .. }) {
            self.stage = Stage::yields(self.policy.yields_to_threads);
        }
        self.spend(took);
        // Only `LONG` counts here: a thread of this process that sends many messages may run longer
        // than a rank that only waits.
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

    /// Subtracts a yield of duration `took` from the remaining yields of this stage.
    #[inline(always)]
    fn spend(&mut self, took: Yielded) {
        self.last_yield = LastYield::Short;
        let cost = match took < Yielded::IDLE {
            true => 1,
            false => AT_ONCE,
        };
        if let Stage::Yield { left } = &mut self.stage {
            *left = left.saturating_sub(cost);
        }
    }

    /// Restarts the stages of the wait; the caller has received a message.
    #[inline]
    pub fn reset(&mut self) {
        self.stage = self.policy.first();
    }

    /// Returns true if the polling stages have ended, so that the next [`Waiter::pause`] may sleep.
    #[inline]
    pub fn is_tired(&self) -> bool {
        matches!(self.stage, Stage::Sleep { .. })
    }

    /// Returns true in the first call after the change from polling to sleeping, else false.
    #[cold]
    pub fn begins_to_sleep(&mut self) -> bool {
        match &mut self.stage {
            Stage::Sleep { is_new } => std::mem::take(is_new),
            _ => false,
        }
    }

    /// Performs a pause, a yield or a sleep as one step. Before a sleep, the step calls `news`,
    /// which must poll every source that rings `doorbell`.
    #[inline]
    pub fn pause(&mut self, doorbell: &Doorbell, news: impl FnOnce() -> bool) {
        self.pause_or(|nap| doorbell.sleep(nap, news));
    }

    /// Performs one step of the wait. When the polling stages have ended, a step
    /// calls `sleep` with the maximum duration of the sleep. `sleep` returns true if it ended by timeout.
    #[inline]
    pub fn pause_or(&mut self, sleep: impl FnOnce(Duration) -> bool) {
        match &mut self.stage {
            Stage::Spin { left } if *left > 0 => *left -= 1,
            Stage::Yield { left } if *left > 0 => {
                // `timed_yield` is inlined: after a yield, the returns of all enclosing calls are mispredicted
                // (module `yield_now`).
                let took = timed_yield();
                self.count_yield(took);
            }
            _ => self.rest(sleep),
        }
    }

    #[cold]
    fn rest(&mut self, sleep: impl FnOnce(Duration) -> bool) {
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
                        // If the rank has its own core, the yield is only a short system call.
                        // If the kernel has placed two ranks on one core, the yield saves a time slice,
                        // and moves one of the ranks.
                        yield_core(now);
                    }
                }
            }
            Stage::Yield { .. } => self.stage = Stage::Sleep { is_new: true },
            Stage::Sleep { .. } => self.timed_out = sleep(self.policy.nap),
        }
    }
}

#[cfg(not(loom))]
use crate::shared_core::yield_core;

/// Does nothing under loom, where threads have no cores.
#[cfg(loom)]
fn yield_core(_: Instant) {
    crate::yield_now::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns the number of steps before the first step that calls `news`.
    /// That step would sleep.
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
        // A yield follows each poll of this stage but the last one, which a sleep follows.
        // The number of yields depends on the core:
        // more yields fit on an idle core, and next to a process that computes
        // the first yield may be the last one.
        let yields = WaitPolicy::OVERSUBSCRIBED.yields;
        let steps = 2..=AT_ONCE * yields + 2;
        assert!(steps.contains(&first), "{first} steps");
        assert!(matches!(waiter.take_yield(), LastYield::Long(_)) || first >= yields + 2);
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
        assert_eq!(waiter.take_yield(), LastYield::Long(Yielded::LONG));
        assert_eq!(waiter.take_yield(), LastYield::None);
        // The next poll ends the stage, and the step after it sleeps.
        assert_eq!(steps_before_sleep(&mut waiter), 2);
        waiter.reset();
        assert_eq!(steps_before_sleep(&mut waiter), 2);
        let beside_load = WaitPolicy::OVERSUBSCRIBED.without_yields();
        assert_eq!(steps_before_sleep(&mut Waiter::new(beside_load)), 2);
    }

    #[test]
    fn a_sleep_that_ended_by_timeout_is_reported_once() {
        let mut waiter = Waiter::new(WaitPolicy::OVERSUBSCRIBED.without_yields());
        steps_before_sleep(&mut waiter);
        assert!(!waiter.take_timeout());
        waiter.pause_or(|_| true);
        assert!(waiter.take_timeout() && !waiter.take_timeout());
        waiter.pause_or(|_| false);
        assert!(!waiter.take_timeout());
        waiter.note_timeout();
        assert!(waiter.take_timeout() && !waiter.take_timeout());
    }

    /// Returns the number of yields of duration `took` after which the wait may sleep.
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
