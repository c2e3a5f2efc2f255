//! Exit skew: the time from the first to the last rank's exit from a repeated operation.

use std::fmt;

/// The distribution of the exit skew; all times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitSkew {
    /// The number of repetitions of the operation.
    pub repetitions: usize,
    /// The median of the skews.
    pub median: u64,
    /// The 90th percentile of the skews.
    pub p90: u64,
    /// The 99th percentile of the skews.
    pub p99: u64,
    /// The maximum skew.
    pub max: u64,
    /// The maximum error of the difference of two ranks' clocks: the sum of the two largest errors.
    pub uncertainty: u64,
}

impl ExitSkew {
    /// Computes the distribution. `exits` has each rank's exit times in nanoseconds,
    /// in the order of the repetitions. All times are on the same clock.
    ///
    /// `errors` are the maximum errors of the ranks' clocks in nanoseconds.
    /// Errors of exact clocks, which are 0, may be omitted.
    /// Returns `None` if there is no rank, or if some rank has no exit time.
    pub fn of(exits: &[Vec<u64>], errors: &[u64]) -> Option<ExitSkew> {
        let repetitions = exits.iter().map(Vec::len).min()?;
        let skew = |number: usize| {
            let of_each = || exits.iter().filter_map(|own| own.get(number));
            let (first, last) = (of_each().min(), of_each().max());
            first.zip(last).map_or(0, |(first, last)| last - first)
        };
        let mut skews: Vec<u64> = (0..repetitions).map(skew).collect();
        skews.sort_unstable();
        let max = *skews.last()?;
        let at_most = |percent: usize| {
            let place = (repetitions * percent).div_ceil(100).saturating_sub(1);
            skews.get(place).copied().unwrap_or(max)
        };
        let mut errors = errors.to_vec();
        errors.sort_unstable();
        Some(ExitSkew {
            repetitions,
            median: at_most(50),
            p90: at_most(90),
            p99: at_most(99),
            max,
            uncertainty: errors.iter().rev().take(2).sum(),
        })
    }
}

impl fmt::Display for ExitSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: u64| ns as f64 / 1e3;
        write!(
            f,
            "the last rank left {:.3} us after the first in the median of {} barriers, {:.3} us in 90 % of them, {:.3} us in 99 %, {:.3} us at most",
            us(self.median),
            self.repetitions,
            us(self.p90),
            us(self.p99),
            us(self.max)
        )?;
        match self.uncertainty {
            0 => f.write_str("; all ranks have the same clock"),
            error => write!(
                f,
                "; a difference of two clocks is known to +-{:.3} us",
                us(error)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_skew_of_a_repetition_is_between_its_first_and_its_last_exit() {
        let exits = [
            vec![100, 210, 300],
            vec![105, 200, 300],
            vec![103, 205, 340, 9],
        ];
        let skew = ExitSkew::of(&exits, &[]).expect("three repetitions");
        assert_eq!(skew.repetitions, 3);
        assert_eq!((skew.median, skew.p90, skew.max), (10, 40, 40));
        assert_eq!(skew.uncertainty, 0);
        assert_eq!(ExitSkew::of(&[vec![1], vec![]], &[]), None);
    }

    #[test]
    fn percentiles_are_ranks_of_the_sorted_skews() {
        let skew = ExitSkew::of(&[vec![0; 200], (1..=200).collect()], &[3, 10, 7]).expect("some");
        assert_eq!(
            (skew.median, skew.p90, skew.p99, skew.max),
            (100, 180, 198, 200)
        );
        assert_eq!(skew.uncertainty, 17, "of the two worst clocks");
    }
}
