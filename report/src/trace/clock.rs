//! Offset of another host's clock, measured by exchanges of a request and a reply.
//!
//! The other clock is read between a request and its reply.
//! The midpoint of request and reply is an estimate, whose error is at most half the round trip.
//! Of several exchanges the one with the shortest round trip is used.
//! Source: F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989.
//! Clocks run at different speeds, so the offset is interpolated
//! linearly between the exchanges at the job's start and at its end.
//!
//! Guarantee: a corrected clock is still monotonic.

use mpi_base::node::Event;

/// The result of one exchange: a reading of the other clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    theirs: u64,
    /// The time of this clock minus the time of the other clock, in nanoseconds.
    ahead: i128,
    /// The maximum error of `ahead` in nanoseconds.
    error: u64,
}

impl Reading {
    /// Creates a reading: the other clock had the value `theirs` between the request and the reply,
    /// whose times on this clock are `asked` and `heard`.
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

/// The minimum distance of two readings from which a drift is computed,
/// as a multiple of their errors.
/// Of readings with a smaller distance, only the one with the smaller error is used.
const FAR_APART: u64 = 1000;

/// The readings of another host's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The best reading of each series, in order of time.
    best: Vec<Option<Reading>>,
}

impl Clock {
    /// Begins a new series of readings.
    pub fn begin(&mut self) {
        self.best.push(None);
    }

    /// Adds a reading to the current series, which keeps the reading with the smallest error.
    pub fn read(&mut self, reading: Reading) {
        if let Some(best) = self.best.last_mut()
            && best.is_none_or(|best| reading.error < best.error)
        {
            *best = Some(reading);
        }
    }

    /// Returns the readings that are far enough apart to compute a drift.
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

    /// Converts a time of the other clock to this host's clock.
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

    /// Converts the times of an event to this host's clock.
    pub fn set(&self, event: &mut Event) {
        event.at = self.ours(event.at);
        if event.until > 0 {
            event.until = self.ours(event.until);
        }
    }

    /// Returns the maximum error in nanoseconds; `None` if the clock was never read.
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
        // The other clock runs too fast by one thousandth.
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
