//! How long the library's software collectives take under LogGP, in closed form, for any number of ranks.
//!
//! One rule for each algorithm of the library, by the library's names; the papers are at the heads of their files in `mpi-core/coll/src/algo`.
//! A rule follows the longest chain of messages. A message of m bytes is received `o + (m-1) G + L + o` after its send began,
//! and a rank that sends or receives several of them in a row does one every `max(g, o, (m-1) G)`.
//! All ranks start together, combining costs nothing, and nothing contends: the kindest view of software.
//! The barriers are compared with the schedules of [`ALGORITHMS`](super::ALGORITHMS), message by message, by a test.

use super::Network;
use crate::virtual_time::Time;

/// A software collective of the library.
#[derive(Debug, Clone, Copy)]
pub struct Collective {
    /// What it does, as the library names it.
    pub call: &'static str,
    /// How.
    pub algorithm: &'static str,
    time: fn(Network, u64, u64) -> Time,
}

impl Collective {
    /// From the start until the last rank is through, for so many ranks, with `bytes` of data (at each rank, or for each pair of ranks).
    pub fn time(&self, network: Network, ranks: u64, bytes: u64) -> Time {
        match ranks {
            0 | 1 => Time::ZERO,
            _ => (self.time)(network, ranks, bytes),
        }
    }
}

/// The barriers.
pub const BARRIERS: &[Collective] = &[
    rule("barrier", "dissemination", |net, ranks, _| {
        times(rounds(ranks), net.message(1))
    }),
    rule("barrier", "recursive_doubling", |net, ranks, _| {
        times(doublings(ranks), net.message(1))
    }),
    rule("barrier", "tree", |net, ranks, _| {
        times(2 * rounds(ranks), net.message(1))
    }),
];

/// The others.
pub const COLLECTIVES: &[Collective] = &[
    rule("bcast", "binomial", |net, ranks, bytes| {
        times(rounds(ranks), net.message(bytes))
    }),
    rule("bcast", "chain", |net, ranks, bytes| {
        // With the best of the segments that are powers of two.
        let sizes = (0..=bytes.max(1).ilog2()).map(|bits| bytes.max(1) >> bits);
        let time = |size: u64| {
            let segments = bytes.div_ceil(size).max(1);
            // A rank in the middle receives one segment and sends it on before the next.
            let step = net.apart(size).max(times(2, net.overhead));
            times(ranks - 1, net.message(size)) + times(segments - 1, step)
        };
        sizes.map(time).min().unwrap_or_default()
    }),
    rule("bcast", "scatter_allgather", |net, ranks, bytes| {
        let scatter = halves(bytes, rounds(ranks)).map(|part| net.message(part));
        sum(scatter) + times(ranks - 1, net.message(bytes.div_ceil(ranks)))
    }),
    rule("reduce", "binomial", |net, ranks, bytes| {
        times(rounds(ranks), net.message(bytes))
    }),
    rule("reduce", "linear", |net, ranks, bytes| {
        net.message(bytes) + times(ranks - 2, net.apart(bytes))
    }),
    rule("allreduce", "recursive_doubling", |net, ranks, bytes| {
        times(doublings(ranks), net.message(bytes))
    }),
    rule("allreduce", "reduce_bcast", |net, ranks, bytes| {
        times(2 * rounds(ranks), net.message(bytes))
    }),
    rule("allreduce", "ring", |net, ranks, bytes| {
        times(2 * (ranks - 1), net.message(bytes.div_ceil(ranks)))
    }),
    rule("allreduce", "rabenseifner", |net, ranks, bytes| {
        let folds = doublings(ranks) - u64::from(ranks.ilog2());
        let parts = || halves(bytes, ranks.ilog2().into()).map(|part| net.message(part));
        times(folds, net.message(bytes)) + sum(parts()) + sum(parts())
    }),
    rule("allgather", "bruck", |net, ranks, bytes| {
        let blocks = (0..rounds(ranks)).map(|round| (1 << round).min(ranks - (1 << round)));
        sum(blocks.map(|blocks| net.message(blocks * bytes)))
    }),
    rule("allgather", "ring", |net, ranks, bytes| {
        times(ranks - 1, net.message(bytes))
    }),
    rule("allgather", "neighbor_exchange", |net, ranks, bytes| {
        net.message(bytes) + times((ranks / 2).saturating_sub(1), net.message(2 * bytes))
    }),
    rule("alltoall", "bruck", |net, ranks, bytes| {
        times(rounds(ranks), net.message(bytes * ranks / 2))
    }),
    rule("alltoall", "pairwise", |net, ranks, bytes| {
        times(ranks - 1, net.message(bytes))
    }),
    rule("alltoall", "linear", |net, ranks, bytes| {
        let step = net.apart(bytes).max(times(2, net.overhead));
        net.message(bytes) + times(ranks - 2, step)
    }),
    rule("gather", "binomial", |net, ranks, bytes| {
        let blocks = (0..rounds(ranks)).map(|round| (1 << round).min(ranks - (1 << round)));
        sum(blocks.map(|blocks| net.message(blocks * bytes)))
    }),
    rule("gather", "linear", |net, ranks, bytes| {
        net.message(bytes) + times(ranks - 2, net.apart(bytes))
    }),
    rule("reduce_scatter", "halving", |net, ranks, bytes| {
        let folds = doublings(ranks) - u64::from(ranks.ilog2());
        let parts = halves(bytes, ranks.ilog2().into()).map(|part| net.message(part));
        times(folds, net.message(bytes)) + sum(parts)
    }),
    rule("scan", "recursive_doubling", |net, ranks, bytes| {
        times(rounds(ranks), net.message(bytes))
    }),
];

const fn rule(
    call: &'static str,
    algorithm: &'static str,
    time: fn(Network, u64, u64) -> Time,
) -> Collective {
    Collective {
        call,
        algorithm,
        time,
    }
}

impl Network {
    /// From the begin of a message's send until it has been received.
    fn message(self, bytes: u64) -> Time {
        times(2, self.overhead) + self.latency + self.train(bytes)
    }

    /// How far apart one rank's messages are.
    fn apart(self, bytes: u64) -> Time {
        self.gap.max(self.overhead).max(self.train(bytes))
    }

    /// The bytes of a message after its first.
    fn train(self, bytes: u64) -> Time {
        times(bytes.saturating_sub(1), self.byte_gap)
    }
}

/// ceil(log2 n).
fn rounds(ranks: u64) -> u64 {
    ranks.next_power_of_two().ilog2().into()
}

/// Rounds of recursive doubling; ranks beyond a power of two are folded in before and told after.
fn doublings(ranks: u64) -> u64 {
    let folded = !ranks.is_power_of_two();
    u64::from(ranks.ilog2()) + 2 * u64::from(folded)
}

/// A half, a quarter, and so on, so many of them.
fn halves(bytes: u64, count: u64) -> impl Iterator<Item = u64> {
    (1..=count).map(move |round| bytes.div_ceil(1 << round))
}

fn times(count: u64, time: Time) -> Time {
    Time::from_ps(time.ps().saturating_mul(count))
}

fn sum(times: impl Iterator<Item = Time>) -> Time {
    times.fold(Time::ZERO, |sum, time| sum + time)
}

#[cfg(test)]
mod tests {
    use super::super::ALGORITHMS;
    use super::*;

    /// The rule of a barrier and its schedule, message by message.
    fn agree(rule: &str, schedule: &str, ranks: &[u64]) {
        let network = Network {
            bytes: 1,
            ..Network::LOGGOPSIM
        };
        let find = |rules: &[Collective]| *rules.iter().find(|r| r.algorithm == rule).expect(rule);
        let algorithm = ALGORITHMS.iter().find(|a| a.name == schedule);
        for &ranks in ranks {
            let schedule = algorithm.expect(schedule).schedule(ranks as usize);
            let together = vec![Time::ZERO; ranks as usize];
            let left = network.leave_times(&schedule.expect("a schedule"), &together);
            let rule = find(BARRIERS).time(network, ranks, 0);
            assert_eq!(Some(&rule), left.iter().max(), "{ranks} ranks");
        }
    }

    #[test]
    fn dissemination_takes_what_its_messages_take() {
        agree("dissemination", "dissemination", &[2, 3, 4, 16, 60, 1024]);
    }

    #[test]
    fn recursive_doubling_takes_what_its_messages_take() {
        agree("recursive_doubling", "butterfly", &[2, 4, 16, 64, 1024]);
    }

    #[test]
    fn the_longest_way_in_the_tree_is_up_and_down_all_its_levels() {
        agree("tree", "binomial tree", &[2, 4, 16, 64]);
    }

    #[test]
    fn long_data_want_the_algorithms_that_are_made_for_them() {
        let time = |call, algorithm, bytes| {
            let rules = COLLECTIVES.iter();
            let rule = rules
                .clone()
                .find(|r| (r.call, r.algorithm) == (call, algorithm));
            rule.expect(algorithm).time(Network::LOGGOPSIM, 64, bytes)
        };
        for (call, short, long) in [
            ("allreduce", "recursive_doubling", "rabenseifner"),
            ("allreduce", "recursive_doubling", "ring"),
            ("bcast", "binomial", "chain"),
            ("alltoall", "bruck", "pairwise"),
        ] {
            assert!(time(call, short, 8) < time(call, long, 8), "{call} {long}");
            assert!(
                time(call, long, 1 << 20) < time(call, short, 1 << 20),
                "{call} {long}"
            );
        }
    }

    #[test]
    fn a_rank_alone_waits_for_nobody() {
        for rule in BARRIERS.iter().chain(COLLECTIVES) {
            assert_eq!(rule.time(Network::LOGGOPSIM, 1, 8), Time::ZERO);
            assert!(rule.time(Network::LOGGOPSIM, 2, 8) > Time::ZERO);
        }
    }
}
