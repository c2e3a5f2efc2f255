//! How the clock of another host stands to ours, from questions and answers.
//!
//! Each answer was read between our question and our hearing of it, so halfway between the two it is wrong by half the time of the round at most;
//! of several rounds the quickest is believed (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989).
//! Clocks run at different speeds: between the rounds at the beginning and those at the end of a job the difference is taken to have changed evenly.
//!
//! Promise: a clock that is set this way still runs forward.

use mpi_base::node::Event;

/// What one round has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    theirs: u64,
    /// Ours less theirs.
    ahead: i128,
    /// By how much that may be wrong.
    error: u64,
}

impl Reading {
    /// We asked and heard at these times of our clock, and in between it was so late there.
    pub fn between(asked: u64, heard: u64, theirs: u64) -> Reading {
        let error = heard.saturating_sub(asked) / 2;
        let ours = asked.saturating_add(error);
        Reading {
            theirs,
            ahead: i128::from(ours) - i128::from(theirs),
            error,
        }
    }
}

/// Between two readings the difference counts as changing only if they are so many times their errors apart;
/// else the better of the two stands for both.
const FAR_APART: u64 = 1000;

/// Another host's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The best reading of each series, in the order of time.
    best: Vec<Option<Reading>>,
}

impl Clock {
    /// A new series of readings begins.
    pub fn begin(&mut self) {
        self.best.push(None);
    }

    /// A reading of the present series, of which the one with the least error is kept.
    pub fn read(&mut self, reading: Reading) {
        if let Some(best) = self.best.last_mut()
            && best.is_none_or(|best| reading.error < best.error)
        {
            *best = Some(reading);
        }
    }

    /// Readings that are far enough apart.
    fn readings(&self) -> Vec<Reading> {
        let mut kept: Vec<Reading> = Vec::new();
        for &reading in self.best.iter().flatten() {
            let Some(last) = kept.last_mut() else {
                kept.push(reading);
                continue;
            };
            let errors = last.error.saturating_add(reading.error).max(1);
            let apart = reading.theirs.saturating_sub(last.theirs);
            if apart / FAR_APART >= errors {
                kept.push(reading);
            } else if reading.error < last.error {
                *last = reading;
            }
        }
        kept
    }

    /// The time of our clock.
    pub fn ours(&self, theirs: u64) -> u64 {
        let readings = self.readings();
        let after = readings.partition_point(|reading| reading.theirs <= theirs);
        let ahead = match (readings.get(after.wrapping_sub(1)), readings.get(after)) {
            (Some(before), Some(after)) => {
                let (since, whole) = (theirs - before.theirs, after.theirs - before.theirs);
                let change = (after.ahead - before.ahead) * i128::from(since);
                before.ahead + change / i128::from(whole)
            }
            (Some(only), None) | (None, Some(only)) => only.ahead,
            (None, None) => 0,
        };
        (i128::from(theirs) + ahead).clamp(0, u64::MAX.into()) as u64
    }

    /// Sets the times of an event.
    pub fn set(&self, event: &mut Event) {
        event.at = self.ours(event.at);
        if event.until > 0 {
            event.until = self.ours(event.until);
        }
    }

    /// By how much times may be wrong, in nanoseconds; `None` if the host never answered.
    pub fn precision(&self) -> Option<u64> {
        self.readings().iter().map(|reading| reading.error).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_is_believed() {
        let mut clock = Clock::default();
        assert_eq!((clock.ours(5), clock.precision()), (5, None));
        clock.begin();
        clock.read(Reading::between(1000, 9000, 500_000));
        clock.read(Reading::between(10_000, 10_200, 510_000));
        clock.read(Reading::between(20_000, 26_000, 520_000));
        assert_eq!(clock.ours(510_000), 10_100);
        assert_eq!(clock.ours(510_007), 10_107);
        assert_eq!(clock.precision(), Some(100));
    }

    #[test]
    fn a_clock_that_runs_faster_is_slowed_down() {
        let mut clock = Clock::default();
        clock.begin();
        clock.read(Reading::between(999, 1001, 5000));
        clock.begin();
        // A thousandth too fast.
        clock.read(Reading::between(1_000_999, 1_001_001, 1_006_000));
        assert_eq!(clock.ours(5000), 1000);
        assert_eq!(clock.ours(505_500), 501_000);
        assert_eq!(clock.ours(1_006_000), 1_001_000);
        assert_eq!(clock.ours(2_006_000), 2_001_000);
    }

    #[test]
    fn readings_that_are_too_close_to_tell_a_speed_are_one() {
        let mut clock = Clock::default();
        for (asked, heard, theirs) in [(0, 4000, 0), (5000, 5200, 3000)] {
            clock.begin();
            clock.read(Reading::between(asked, heard, theirs));
        }
        assert_eq!(clock.ours(0), 2100);
        assert_eq!(clock.ours(3000), 5100);
    }
}
