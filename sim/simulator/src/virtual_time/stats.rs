//! Latency statistics: exact quantiles by nearest rank, because all samples are kept.

use super::Time;

/// The phases of the latency of the node that enters last, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The time from the node's entry until a read shows its wire idle;
    /// only a returning barrier reads it.
    Ready,
    /// The time from the end of the previous phase until the node's level is at the connector.
    Write,
    /// The time from the connector to the node's board: the edge, the cable, the receivers.
    WireOut,
    /// The time from the arrival at the node's board until the last arrival at the root;
    /// zero for one board.
    Below,
    /// The wait for the first clock edge, and the two synchroniser stages.
    Synchroniser,
    /// The clock period until the state machine toggles; its state is also the output register.
    Machine,
    /// The time from the machine to the connector: the buffers, the edge, the cable.
    WireBack,
    /// The time until a read has sampled the release, and further reads have confirmed it if required.
    Poll,
    /// In a returning barrier, the time until the node drives its wire back to idle.
    Rest,
}

impl Phase {
    /// All phases, in order of time.
    pub const ALL: [Self; 9] = [
        Self::Ready,
        Self::Write,
        Self::WireOut,
        Self::Below,
        Self::Synchroniser,
        Self::Machine,
        Self::WireBack,
        Self::Poll,
        Self::Rest,
    ];

    /// Returns the phase's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "wire seen at rest",
            Self::Write => "output access",
            Self::WireOut => "edge, cable, receivers, pad",
            Self::Below => "boards below",
            Self::Synchroniser => "synchroniser",
            Self::Machine => "machine",
            Self::WireBack => "pad, buffers, edge, cable back",
            Self::Poll => "poll",
            Self::Rest => "output access back to rest",
        }
    }
}

/// A distribution of times, as sorted samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution(Vec<Time>);

impl Distribution {
    /// Sorts the samples into a distribution.
    pub fn new(mut samples: Vec<Time>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the smallest sample `s` such that at least `percent` % of the samples are at most `s`.
    /// Returns zero if there are no samples.
    pub fn percentile(&self, percent: f64) -> Time {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        self.0
            .get(rank.clamp(1, self.0.len().max(1)) - 1)
            .copied()
            .unwrap_or_default()
    }

    /// Returns all samples, smallest first.
    pub fn samples(&self) -> &[Time] {
        &self.0
    }

    /// Returns the median by nearest rank: the smallest sample that is not below half of the samples.
    pub fn median(&self) -> Time {
        self.percentile(50.0)
    }

    /// Returns the largest sample.
    pub fn worst(&self) -> Time {
        self.0.last().copied().unwrap_or_default()
    }
}

/// The latencies of a run, as distributions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of barriers that the machine released.
    pub releases: u64,
    /// From the last entry of a barrier until the last arriver itself has left: one sample per barrier.
    pub last_arriver: Distribution,
    /// From the last entry of a barrier until every node has left: one sample per barrier.
    pub complete: Distribution,
    /// From the last entry of a barrier until a node has left: one sample per node and barrier.
    pub every_node: Distribution,
    /// The last arriver's latency by phase, in the order of [`Phase::ALL`].
    pub phases: [Distribution; Phase::ALL.len()],
    /// Time from the first entry to the last entry of each barrier: the imbalance of the nodes.
    pub skew: Distribution,
    /// Virtual time from power-on to the end of the last barrier.
    pub duration: Time,
    /// The time at which each node entered each barrier;
    /// software barriers are simulated with the same entries.
    pub entries: Vec<Vec<Time>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let d = Distribution::new((1..=200).rev().map(Time::from_ps).collect());
        let ps = |percent| d.percentile(percent).ps();
        assert_eq!((ps(0.0), ps(50.0), ps(99.0), ps(100.0)), (1, 100, 198, 200));
        assert_eq!(
            (d.median().ps(), d.worst().ps(), d.count()),
            (100, 200, 200)
        );
        let empty = Distribution::default();
        assert_eq!((empty.median(), empty.worst()), (Time::ZERO, Time::ZERO));
    }
}
