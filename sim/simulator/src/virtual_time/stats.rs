//! Latency statistics: exact quantiles by nearest rank, since all samples are kept.

use super::Time;

/// The phases of the last arriver's latency, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// From the node's entry until its wire has been seen idle; only a returning barrier checks that.
    Ready,
    /// Until the node's level is at the connector.
    Write,
    /// From the connector to the node's board: the edge, the cable, the receivers.
    WireOut,
    /// From the node's board until the last arrival is at the root: the boards below the root, if there are any.
    Below,
    /// The wait for the first edge and two synchroniser stages.
    Synchroniser,
    /// The edge at which the state machine decides, which is also the output register.
    Machine,
    /// From the machine to the connector: the buffers, the edge, the cable.
    WireBack,
    /// Until a read has sampled the release, and further reads have confirmed it if required.
    Poll,
    /// Until the wire is on its way back to idle, in a returning barrier.
    Rest,
}

impl Phase {
    /// In the order of time.
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

    /// Returns the name in tables.
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

/// Sorted samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution(Vec<Time>);

impl Distribution {
    /// Sorts the samples.
    pub fn new(mut samples: Vec<Time>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the smallest sample that at least `percent` of the samples do not exceed; zero if there is none.
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

    /// Returns the median: half of the samples are not larger.
    pub fn median(&self) -> Time {
        self.percentile(50.0)
    }

    /// Returns the largest sample.
    pub fn worst(&self) -> Time {
        self.0.last().copied().unwrap_or_default()
    }
}

/// The latencies of a run.
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
    /// From the first entry to the last, per barrier: the imbalance of the nodes.
    pub skew: Distribution,
    /// Virtual time from power-on to the end of the last barrier.
    pub duration: Time,
    /// The time at which each node entered each barrier: the input of a comparison with other barriers.
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
