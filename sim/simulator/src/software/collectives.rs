//! Durations of the library's software collectives under LogGP, message by message.
//!
//! Each algorithm of the library has one rule, which has the algorithm's name.
//! The papers are cited at the heads of the files in `mpi-core/coll/src/algo`.
//! All ranks start at the same time, combining data costs nothing,
//! and there is no contention, so the durations are lower limits for real software.
//! Module `rule` has the cost of a message, also for the schedules of
//! [`ALGORITHMS`](super::ALGORITHMS).
//! If all ranks do the same at the same time, one rank is simulated ([`alike`]), else all ranks.
//! A test compares each rule with an event-driven simulation that shares no code with the rules.

use super::Network;
use super::rule::Rank;
use crate::virtual_time::Time;

/// A software collective of the library, with one algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Collective {
    /// The operation, as the library names it.
    pub call: &'static str,
    /// The algorithm, as the library names it.
    pub algorithm: &'static str,
    time: fn(&Network, u64, u64) -> Time,
}

impl Collective {
    /// Maximum number of ranks that are simulated.
    pub const MOST_RANKS: u64 = 1 << 20;

    /// Returns the time from the start until the last of `ranks` ranks has completed.
    /// `bytes` is the length of the data at each rank, or for each pair of ranks.
    ///
    /// A barrier's messages have the network's message length.
    /// For more than [`MOST_RANKS`](Self::MOST_RANKS) ranks, returns the maximum `Time`.
    pub fn time(&self, network: Network, ranks: u64, bytes: u64) -> Time {
        match ranks {
            0 | 1 => Time::ZERO,
            2..=Self::MOST_RANKS => (self.time)(&network, ranks, bytes),
            _ => Time::from_ps(u64::MAX),
        }
    }
}

/// The barrier algorithms of the library.
pub const BARRIERS: &[Collective] = &[
    rule("barrier", "dissemination", |net, ranks, _| {
        alike(net, repeated(net.bytes, rounds(ranks)))
    }),
    rule("barrier", "recursive_doubling", |net, ranks, _| {
        folded(
            net,
            ranks,
            net.bytes,
            &doubling(ranks, |_| net.bytes),
            net.bytes,
        )
    }),
    rule("barrier", "tree", |net, ranks, _| {
        let mut all = Tree::new(net, ranks);
        all.up(|_| net.bytes);
        all.down(|_| net.bytes);
        all.last()
    }),
];

/// The other collective algorithms of the library.
pub const COLLECTIVES: &[Collective] = &[
    rule("bcast", "binomial", |net, ranks, bytes| {
        let mut all = Tree::new(net, ranks);
        all.down(|_| bytes);
        all.last()
    }),
    rule("bcast", "chain", |net, ranks, bytes| {
        // Chooses the best segment size;
        // candidates are the message length divided by powers of two.
        let sizes = (0..=bytes.max(1).ilog2()).map(|bits| bytes.max(1) >> bits);
        sizes
            .map(|size| chain(net, ranks, bytes, size))
            .min()
            .unwrap_or_default()
    }),
    rule("bcast", "scatter_allgather", |net, ranks, bytes| {
        let block = bytes.div_ceil(ranks);
        let mut all = Tree::new(net, ranks);
        all.down(|below| below * block);
        ring_after(net, &mut all.ranks, block)
    }),
    rule("reduce", "binomial", |net, ranks, bytes| {
        let mut all = Tree::new(net, ranks);
        all.up(|_| bytes);
        all.last()
    }),
    rule("reduce", "linear", linear),
    rule("allreduce", "recursive_doubling", |net, ranks, bytes| {
        folded(net, ranks, bytes, &doubling(ranks, |_| bytes), bytes)
    }),
    rule("allreduce", "reduce_bcast", |net, ranks, bytes| {
        let mut all = Tree::new(net, ranks);
        all.up(|_| bytes);
        all.down(|_| bytes);
        all.last()
    }),
    rule("allreduce", "ring", |net, ranks, bytes| {
        alike(net, repeated(bytes.div_ceil(ranks), 2 * (ranks - 1)))
    }),
    rule("allreduce", "rabenseifner", |net, ranks, bytes| {
        let halves = halving(ranks, bytes);
        let there_and_back: Vec<_> = halves.iter().chain(halves.iter().rev()).copied().collect();
        folded(net, ranks, bytes, &there_and_back, bytes)
    }),
    rule("allgather", "bruck", |net, ranks, bytes| {
        let blocks = (0..rounds(ranks)).map(|round| (1 << round).min(ranks - (1 << round)));
        alike(net, blocks.map(|blocks| blocks * bytes))
    }),
    rule("allgather", "ring", |net, ranks, bytes| {
        alike(net, repeated(bytes, ranks - 1))
    }),
    rule(
        "allgather",
        "neighbor_exchange",
        |net, ranks, bytes| match ranks % 2 {
            0 => alike(
                net,
                std::iter::once(bytes).chain(repeated(2 * bytes, ranks / 2 - 1)),
            ),
            // With an odd number of ranks one rank has no partner, so the library uses the ring.
            _ => alike(net, repeated(bytes, ranks - 1)),
        },
    ),
    rule("alltoall", "bruck", |net, ranks, bytes| {
        let with_bit = |round: u32| {
            (0..ranks)
                .filter(move |block| block >> round & 1 == 1)
                .count()
        };
        let sizes = (0..rounds(ranks) as u32).map(|round| with_bit(round) as u64 * bytes);
        alike(net, sizes)
    }),
    rule("alltoall", "pairwise", |net, ranks, bytes| {
        alike(net, repeated(bytes, ranks - 1))
    }),
    rule("alltoall", "linear", |net, ranks, bytes| {
        // Each rank sends all its messages and then receives.
        // All ranks act alike, so the messages from the other ranks arrive at
        // the times at which this rank's own messages arrive at their receivers.
        let mut rank = Rank::default();
        let there: Vec<_> = (1..ranks).map(|_| rank.send(net, bytes)).collect();
        for there in there {
            rank.receive(net, there, bytes);
        }
        rank.now
    }),
    rule("gather", "binomial", |net, ranks, bytes| {
        let mut all = Tree::new(net, ranks);
        all.up(|below| below * bytes);
        all.last()
    }),
    rule("gather", "linear", linear),
    rule("reduce_scatter", "halving", |net, ranks, bytes| {
        let halves = halving(ranks, bytes);
        folded(net, ranks, bytes, &halves, bytes.div_ceil(ranks))
    }),
    rule("scan", "recursive_doubling", |net, ranks, bytes| {
        let mut all = vec![Rank::default(); ranks as usize];
        for round in 0..rounds(ranks) {
            let distance = 1 << round;
            let last = all.len() - distance;
            let there: Vec<_> = all[..last]
                .iter_mut()
                .map(|rank| rank.send(net, bytes))
                .collect();
            for (rank, there) in all[distance..].iter_mut().zip(there) {
                rank.receive(net, there, bytes);
            }
        }
        last(&all)
    }),
];

const fn rule(
    call: &'static str,
    algorithm: &'static str,
    time: fn(&Network, u64, u64) -> Time,
) -> Collective {
    Collective {
        call,
        algorithm,
        time,
    }
}

/// Returns the time of rounds in which every rank sends and receives one message of these lengths.
/// All ranks send at the same time, so one rank is simulated, which receives its own messages.
fn alike(net: &Network, rounds: impl IntoIterator<Item = u64>) -> Time {
    let mut rank = Rank::default();
    for bytes in rounds {
        let there = rank.send(net, bytes);
        rank.receive(net, there, bytes);
    }
    rank.now
}

/// Maximum number of ranks of a ring that is simulated message by message.
const WHOLE_RING: usize = 1024;

/// Returns the time of a ring algorithm whose ranks do not start at the same time.
/// With more than [`WHOLE_RING`] ranks, all are assumed to start when the last rank can start:
/// that rank's block is sent around the whole ring in any case.
/// No case is known in which this assumption changes the time.
fn ring_after(net: &Network, ranks: &mut [Rank], bytes: u64) -> Time {
    let count = ranks.len();
    if count > WHOLE_RING {
        let rounds = repeated(bytes, count as u64 - 1);
        return last(ranks) + alike(net, rounds);
    }
    for _ in 1..count {
        let there: Vec<_> = ranks.iter_mut().map(|rank| rank.send(net, bytes)).collect();
        for (number, rank) in ranks.iter_mut().enumerate() {
            rank.receive(net, there[(number + count - 1) % count], bytes);
        }
    }
    last(ranks)
}

fn repeated(bytes: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |_| bytes)
}

/// Returns the time of an algorithm among the largest power of two of the ranks; `exchanges` are
/// pairs (bit, bytes), and partners' ranks differ in the bit.
/// Each remaining rank sends `fold_in` bytes to a partner before the
/// exchanges and receives `fold_out` bytes from the partner afterwards.
fn folded(
    net: &Network,
    ranks: u64,
    fold_in: u64,
    exchanges: &[(u32, u64)],
    fold_out: u64,
) -> Time {
    let power = 1usize << ranks.ilog2();
    let mut core = vec![Rank::default(); power];
    let mut beyond = vec![Rank::default(); ranks as usize - power];
    for (rank, partner) in beyond.iter_mut().zip(&mut core) {
        let there = rank.send(net, fold_in);
        partner.receive(net, there, fold_in);
    }
    for &(bit, bytes) in exchanges {
        let there: Vec<_> = core.iter_mut().map(|rank| rank.send(net, bytes)).collect();
        for (number, rank) in core.iter_mut().enumerate() {
            rank.receive(net, there[number ^ 1 << bit], bytes);
        }
    }
    for (rank, partner) in beyond.iter_mut().zip(&mut core) {
        let there = partner.send(net, fold_out);
        rank.receive(net, there, fold_out);
    }
    last(&core).max(last(&beyond))
}

/// Returns the exchanges of recursive doubling as pairs (bit, bytes).
fn doubling(ranks: u64, bytes: impl Fn(u32) -> u64) -> Vec<(u32, u64)> {
    (0..ranks.ilog2()).map(|bit| (bit, bytes(bit))).collect()
}

/// Returns the exchanges of recursive halving as pairs (bit, bytes):
/// half of the bytes, a quarter, ...
fn halving(ranks: u64, bytes: u64) -> Vec<(u32, u64)> {
    doubling(ranks, |bit| bytes.div_ceil(2 << bit))
}

/// Returns the time until one rank has received a message from every other rank.
fn linear(net: &Network, ranks: u64, bytes: u64) -> Time {
    let there = Rank::default().send(net, bytes);
    let mut root = Rank::default();
    for _ in 1..ranks {
        root.receive(net, there, bytes);
    }
    root.now
}

/// Returns the time of a pipeline in which each rank receives a segment and forwards it before it
/// receives the next one.
/// All inner ranks do the same, so the interval between segments is that of one inner rank.
fn chain(net: &Network, ranks: u64, bytes: u64, size: u64) -> Time {
    let segments = bytes.div_ceil(size).max(1);
    let hop = alike(net, [size]);
    let overheads = match ranks {
        2 => net.overhead,
        _ => net.overhead + net.overhead,
    };
    let apart = overheads.max(net.gap + net.train(size));
    times(hop, ranks - 1) + times(apart, segments - 1)
}

/// The ranks of a binomial tree; a rank's parent is the rank with the lowest set bit cleared.
struct Tree<'n> {
    net: &'n Network,
    ranks: Vec<Rank>,
}

impl<'n> Tree<'n> {
    fn new(net: &'n Network, ranks: u64) -> Self {
        Self {
            net,
            ranks: vec![Rank::default(); ranks as usize],
        }
    }

    /// Returns the children of a rank, smallest subtree first,
    /// each with its subtree's number of ranks.
    fn children(&self, rank: usize) -> impl DoubleEndedIterator<Item = (usize, u64)> + use<> {
        let all = self.ranks.len();
        let below = match rank {
            0 => all.next_power_of_two(),
            rank => rank & rank.wrapping_neg(),
        };
        let last = match (all - rank - 1).checked_ilog2() {
            Some(last) => (last + 1).min(below.ilog2()),
            None => 0,
        };
        (0..last).map(move |bit| {
            let child = rank + (1 << bit);
            (child, (1usize << bit).min(all - child) as u64)
        })
    }

    /// Every rank receives from its children, in order of arrival, and sends to its parent.
    /// `bytes` returns the length of a message that contains the data of this number of ranks.
    fn up(&mut self, bytes: impl Fn(u64) -> u64) {
        let mut there = vec![Time::ZERO; self.ranks.len()];
        let mut coming = Vec::new();
        for rank in (0..self.ranks.len()).rev() {
            coming.clear();
            coming.extend(
                self.children(rank)
                    .map(|(child, below)| (there[child], bytes(below))),
            );
            coming.sort_unstable();
            let mut state = self.ranks[rank];
            for &(there, bytes) in &coming {
                state.receive(self.net, there, bytes);
            }
            if rank > 0 {
                let lowest = rank & rank.wrapping_neg();
                let below = lowest.min(self.ranks.len() - rank) as u64;
                there[rank] = state.send(self.net, bytes(below));
            }
            self.ranks[rank] = state;
        }
    }

    /// Every rank receives from its parent and sends to its children, largest subtree first.
    /// `bytes` returns the length of a message that contains the data of this number of ranks.
    fn down(&mut self, bytes: impl Fn(u64) -> u64) {
        let mut there = vec![(Time::ZERO, 0); self.ranks.len()];
        for rank in 0..self.ranks.len() {
            let mut state = self.ranks[rank];
            if rank > 0 {
                let (there, bytes) = there[rank];
                state.receive(self.net, there, bytes);
            }
            for (child, below) in self.children(rank).rev() {
                let bytes = bytes(below);
                there[child] = (state.send(self.net, bytes), bytes);
            }
            self.ranks[rank] = state;
        }
    }

    fn last(&self) -> Time {
        last(&self.ranks)
    }
}

/// Returns the time at which the last rank completes.
fn last(ranks: &[Rank]) -> Time {
    ranks.iter().map(|rank| rank.now).max().unwrap_or_default()
}

/// Returns ceil(log2 n), the number of rounds for `n` ranks.
fn rounds(ranks: u64) -> u64 {
    ranks.next_power_of_two().ilog2().into()
}

fn times(time: Time, count: u64) -> Time {
    Time::from_ps(time.ps().saturating_mul(count))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_single_rank_does_not_wait() {
        for rule in BARRIERS.iter().chain(COLLECTIVES) {
            assert_eq!(rule.time(Network::LOGGOPSIM, 1, 8), Time::ZERO);
            assert!(rule.time(Network::LOGGOPSIM, 2, 8) > Time::ZERO);
        }
    }

    #[test]
    fn more_ranks_than_are_followed_are_no_number() {
        let most = Collective::MOST_RANKS;
        let times = [most, most + 1].map(|ranks| BARRIERS[0].time(Network::LOGGOPSIM, ranks, 0));
        assert!(times[0] < Time::from_ps(u64::MAX));
        assert_eq!(times[1], Time::from_ps(u64::MAX));
    }
}
