//! The start-up self-test: one node enters late, and no node may leave before it has entered.
//!
//! The test detects faults that `open` cannot:
//! an input that is inverted or floats, a wire that is cut, stuck or connected to another node.
//!
//! # The protocol, for each late node and each of the two directions of the wires
//!
//! 1. Every node but the late one enters, then all call the fence.
//! 2. Every node but the late one polls for a while and must find the barrier closed, then all call the fence.
//! 3. The late node enters, and all must be released within the limit.
//!
//! The fences, not the clock, make the late node last, so a slow machine cannot make a correct barrier fail in step 2.
//! A node that has detected a fault no longer enters but still calls every fence,
//! so no node hangs in the fence; the other nodes detect the fault by the limit of step 3.

#[cfg(feature = "std")]
use crate::toggle::stopwatch;
use crate::{EnterError, SelfTestError, ToggleBarrier, WaitError};
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};

/// The parameters of a self-test; every node passes the same, except for `me`.
#[derive(Debug, Clone, Copy)]
pub struct SelfTest {
    /// The number of this node.
    pub me: usize,
    /// Time for which the barrier must not release while a node is missing.
    pub hold: Duration,
    /// Time limit of the release after all nodes have entered.
    pub limit: Duration,
}

/// Runs the self-test with each of the `late` nodes in turn; see the module documentation.
///
/// `fence` must return only after every node has called it; `progress` is called between polls.
#[cfg(feature = "std")]
pub fn self_test<O, I, F>(
    barrier: &mut ToggleBarrier<O, I>,
    test: SelfTest,
    late: impl IntoIterator<Item = usize>,
    fence: impl FnMut() -> Result<(), F>,
    progress: impl FnMut(),
) -> Result<(), SelfTestError<O::Error, F>>
where
    O: OutputPin,
    I: InputPin<Error = O::Error>,
{
    self_test_by(stopwatch(), barrier, test, late, fence, progress)
}

/// `self_test` with another clock than the machine's, as in [`ToggleBarrier::wait_by`].
pub fn self_test_by<O, I, F>(
    mut now: impl FnMut() -> Duration,
    barrier: &mut ToggleBarrier<O, I>,
    test: SelfTest,
    late: impl IntoIterator<Item = usize>,
    mut fence: impl FnMut() -> Result<(), F>,
    mut progress: impl FnMut(),
) -> Result<(), SelfTestError<O::Error, F>>
where
    O: OutputPin,
    I: InputPin<Error = O::Error>,
{
    let mut verdict = if barrier.is_entered() {
        Err(SelfTestError::NotIdle)
    } else {
        Ok(())
    };
    for late in late {
        // Two barriers exercise both directions of the wires.
        for _direction in 0..2 {
            let round = Round {
                late,
                driven: !barrier.level(),
                test,
            };
            verdict = verdict.and_then(|()| round.all_but_late_enter(barrier));
            fence().map_err(SelfTestError::Fence)?;
            verdict = verdict.and_then(|()| round.nobody_leaves(barrier, &mut now, &mut progress));
            fence().map_err(SelfTestError::Fence)?;
            verdict = verdict.and_then(|()| round.all_leave(barrier, &mut now, &mut progress));
        }
    }
    verdict
}

/// The parameters of one barrier of the test.
struct Round {
    late: usize,
    driven: PinState,
    test: SelfTest,
}

impl Round {
    fn is_late(&self) -> bool {
        self.test.me == self.late
    }

    fn all_but_late_enter<O, I, F>(
        &self,
        barrier: &mut ToggleBarrier<O, I>,
    ) -> Result<(), SelfTestError<O::Error, F>>
    where
        O: OutputPin,
        I: InputPin<Error = O::Error>,
    {
        if self.is_late() {
            Ok(())
        } else {
            enter(barrier)
        }
    }

    fn nobody_leaves<O, I, F>(
        &self,
        barrier: &mut ToggleBarrier<O, I>,
        now: &mut impl FnMut() -> Duration,
        progress: &mut impl FnMut(),
    ) -> Result<(), SelfTestError<O::Error, F>>
    where
        O: OutputPin,
        I: InputPin<Error = O::Error>,
    {
        let start = now();
        while !self.is_late() {
            if barrier.poll()?.is_ready() {
                return Err(SelfTestError::LeftEarly {
                    late: self.late,
                    driven: self.driven,
                });
            }
            if now().saturating_sub(start) >= self.test.hold {
                break;
            }
            progress();
        }
        Ok(())
    }

    fn all_leave<O, I, F>(
        &self,
        barrier: &mut ToggleBarrier<O, I>,
        now: &mut impl FnMut() -> Duration,
        progress: &mut impl FnMut(),
    ) -> Result<(), SelfTestError<O::Error, F>>
    where
        O: OutputPin,
        I: InputPin<Error = O::Error>,
    {
        if self.is_late() {
            enter(barrier)?;
        }
        barrier
            .wait_by(now, progress, self.test.limit)
            .map_err(|e| match e {
                WaitError::Pin(fault) => SelfTestError::Pin(fault),
                WaitError::TimedOut { waited, driven } => SelfTestError::NotReleased {
                    late: self.late,
                    driven,
                    waited,
                },
            })
    }
}

fn enter<O, I, F>(barrier: &mut ToggleBarrier<O, I>) -> Result<(), SelfTestError<O::Error, F>>
where
    O: OutputPin,
    I: InputPin<Error = O::Error>,
{
    barrier.enter().map_err(|e| match e {
        EnterError::Pin(fault) => SelfTestError::Pin(fault),
        EnterError::AlreadyEntered => SelfTestError::NotIdle,
    })
}
