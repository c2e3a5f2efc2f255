//! Choice of the number of iterations of a row.
//!
//! The OSU loops run a fixed number of iterations.
//! With some libraries, 60 ranks on 2 cores would then measure for hours.
//! `mpi-bench` runs the warm-up in batches of doubling size under a clock.
//! Rank 0 decides and broadcasts the decision, so all ranks leave the loops together.

use std::time::{Duration, Instant};

use crate::mpi::{MpiError, World};

/// The share of the row's time limit that warm-up may use is 1 / `WARMUP_SHARE`.
const WARMUP_SHARE: u32 = 5;

/// The requested numbers of iterations, and the row's time limit.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub warmup: u64,
    pub iterations: u64,
    pub budget: Duration,
}

/// Keeps all ranks busy with barriers for `length`.
///
/// On a virtual machine, the first rows on idle cores took up to five times their usual time.
/// After a quarter of a second of work, the rows took their usual time.
/// A library that starts in 10 ms would be measured only in the slow phase.
/// A library that takes 1 s to start would not be affected.
pub fn keep_busy(world: &World<'_>, length: Duration) -> Result<(), MpiError> {
    let begin = Instant::now();
    let mut next = 1;
    while next > 0 {
        let started = Instant::now();
        for _ in 0..next {
            world.barrier()?;
        }
        // Rank 0's clock decides, since all ranks must execute the same number of barriers.
        let more = if begin.elapsed() >= length {
            0
        } else if started.elapsed() < length / 8 {
            next * 2
        } else {
            next
        };
        next = world.bcast_number(more)?;
    }
    Ok(())
}

impl Pace {
    /// Warms up by calling `batch(n)`.
    /// Returns the number of iterations to measure, which is the same on every rank.
    pub fn settle(
        &self,
        world: &World<'_>,
        mut batch: impl FnMut(u64) -> Result<(), MpiError>,
    ) -> Result<u64, MpiError> {
        world.barrier()?;
        let begin = Instant::now();
        let (mut done, mut next) = (0, 1);
        loop {
            let started = Instant::now();
            batch(next)?;
            done += next;
            let each = started.elapsed() / u32::try_from(next).unwrap_or(u32::MAX);
            let enough =
                done >= self.warmup.max(1) || begin.elapsed() >= self.budget / WARMUP_SHARE;
            let decision = if enough { self.fitting(each) } else { 0 };
            let decision = world.bcast_number(decision)?;
            if decision > 0 {
                return Ok(decision);
            }
            next = (next * 2).min(self.warmup.saturating_sub(done).max(1));
        }
    }

    /// Returns the number of iterations of duration `each` in the time limit:
    /// at least 1 and at most the requested number.
    fn fitting(&self, each: Duration) -> u64 {
        let fit = self.budget.as_nanos() / each.as_nanos().max(1);
        u64::try_from(fit)
            .unwrap_or(u64::MAX)
            .clamp(1, self.iterations.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        warmup: 10,
        iterations: 1000,
        budget: Duration::from_secs(2),
    };

    #[test]
    fn slow_operations_are_measured_less_often() {
        assert_eq!(PACE.fitting(Duration::from_millis(100)), 20);
        assert_eq!(PACE.fitting(Duration::from_secs(100)), 1);
    }

    #[test]
    fn fast_operations_are_measured_as_often_as_wished() {
        assert_eq!(PACE.fitting(Duration::from_nanos(200)), 1000);
        assert_eq!(PACE.fitting(Duration::ZERO), 1000);
    }
}
