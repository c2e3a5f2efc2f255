//! A second simulation of LogGP, which verifies the rules:
//! it is event-driven, and each collective is a list of every rank's messages.
//!
//! The simulation shares no code with `rule` or `collectives`. Each event checks one rank's clocks.
//! It performs the rank's next operation, or is scheduled again at the time at
//! which the operation is possible, like an event in the main loop of LogGOPSim.

use super::{ALGORITHMS, BARRIERS, COLLECTIVES, Collective, Network};
use crate::virtual_time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone)]
enum Act {
    Send(usize, u64),
    /// Receives one message from each of these ranks, in order of arrival.
    Receive(Vec<usize>),
}
use Act::{Receive, Send};

/// Returns the time in picoseconds at which the last rank has completed its operations.
fn simulate(net: &Network, acts: &[Vec<Act>]) -> u64 {
    let [l, o, g, big_g] = [net.latency, net.overhead, net.gap, net.byte_gap].map(|time| time.ps());
    let train = |bytes: u64| big_g * bytes.saturating_sub(1);
    let count = acts.len();
    let mut next = vec![0; count];
    let mut waiting: Vec<Option<Vec<usize>>> = vec![None; count];
    let (mut cpu, mut out, mut into) = (vec![0; count], vec![0; count], vec![0; count]);
    let mut inbox: Vec<Vec<(u64, usize, u64)>> = vec![Vec::new(); count];
    let mut events: BinaryHeap<_> = (0..count).map(|rank| Reverse((0u64, rank))).collect();
    while let Some(Reverse((now, rank))) = events.pop() {
        let Some(act) = acts[rank].get(next[rank]) else {
            continue;
        };
        match act {
            Send(to, bytes) => {
                let free = cpu[rank].max(out[rank]);
                if free > now {
                    events.push(Reverse((free, rank)));
                    continue;
                }
                cpu[rank] = now + o;
                out[rank] = now + g + train(*bytes);
                let there = now + o + train(*bytes) + l;
                inbox[*to].push((there, rank, *bytes));
                events.push(Reverse((there, *to)));
                next[rank] += 1;
                events.push(Reverse((cpu[rank], rank)));
            }
            Receive(from) => {
                let left = waiting[rank].get_or_insert_with(|| from.clone());
                if left.is_empty() {
                    waiting[rank] = None;
                    next[rank] += 1;
                    events.push(Reverse((now, rank)));
                    continue;
                }
                // Takes the earliest message of an expected sender;
                // messages of one sender stay in order.
                let found = inbox[rank]
                    .iter()
                    .enumerate()
                    .filter(|(_, (there, from, _))| *there <= now && left.contains(from))
                    .min_by_key(|(at, (there, ..))| (*there, *at));
                let Some((at, _)) = found else {
                    continue;
                };
                let free = cpu[rank].max(into[rank]);
                if free > now {
                    events.push(Reverse((free, rank)));
                    continue;
                }
                let (_, from, bytes) = inbox[rank].remove(at);
                let place = left
                    .iter()
                    .position(|rank| *rank == from)
                    .expect("waited for");
                left.remove(place);
                cpu[rank] = now + o;
                into[rank] = now + g + train(bytes);
                events.push(Reverse((cpu[rank], rank)));
            }
        }
    }
    for (rank, acts) in acts.iter().enumerate() {
        assert_eq!(next[rank], acts.len(), "rank {rank} waits indefinitely");
    }
    cpu.into_iter().max().unwrap_or(0)
}

fn doublings(ranks: usize) -> impl Iterator<Item = usize> + Clone {
    (0..)
        .map(|bit| 1usize << bit)
        .take_while(move |far| *far < ranks)
}

fn children(rank: usize, ranks: usize) -> Vec<(usize, u64)> {
    let lowest = match rank {
        0 => usize::MAX,
        rank => 1 << rank.trailing_zeros(),
    };
    let far = doublings(ranks).take_while(|far| *far < lowest);
    let children = far.filter(|far| rank + far < ranks);
    children
        .map(|far| (rank + far, far.min(ranks - rank - far) as u64))
        .collect()
}

fn parent(rank: usize) -> usize {
    rank & (rank - 1)
}

fn up(rank: usize, ranks: usize, bytes: &dyn Fn(u64) -> u64) -> Vec<Act> {
    let mut acts = vec![Receive(children(rank, ranks).iter().map(|c| c.0).collect())];
    if rank > 0 {
        let below = (1usize << rank.trailing_zeros()).min(ranks - rank);
        acts.push(Send(parent(rank), bytes(below as u64)));
    }
    acts
}

fn down(rank: usize, ranks: usize, bytes: &dyn Fn(u64) -> u64) -> Vec<Act> {
    let mut acts = Vec::new();
    if rank > 0 {
        acts.push(Receive(vec![parent(rank)]));
    }
    acts.extend(
        children(rank, ranks)
            .iter()
            .rev()
            .map(|(child, below)| Send(*child, bytes(*below))),
    );
    acts
}

fn round(to: usize, from: usize, bytes: u64) -> [Act; 2] {
    [Send(to, bytes), Receive(vec![from])]
}

fn ring(rank: usize, ranks: usize, rounds: usize, bytes: u64) -> Vec<Act> {
    let both = round((rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes);
    (0..rounds).flat_map(|_| both.clone()).collect()
}

fn folded(rank: usize, ranks: usize, bytes: [u64; 2], exchanges: &[(usize, u64)]) -> Vec<Act> {
    let power = 1 << ranks.ilog2();
    if rank >= power {
        return round(rank - power, rank - power, bytes[0]).to_vec();
    }
    let beyond = (rank + power < ranks).then_some(rank + power);
    let mut acts: Vec<_> = beyond
        .map(|beyond| Receive(vec![beyond]))
        .into_iter()
        .collect();
    for (far, bytes) in exchanges {
        acts.extend(round(rank ^ far, rank ^ far, *bytes));
    }
    acts.extend(beyond.map(|beyond| Send(beyond, bytes[1])));
    acts
}

/// Returns the operations of one rank in this collective.
fn acts(what: (&str, &str), rank: usize, ranks: usize, bytes: u64) -> Vec<Act> {
    let far = doublings(ranks);
    let exchanges = |bytes: &dyn Fn(usize) -> u64| -> Vec<_> {
        (0..ranks.ilog2() as usize)
            .map(|bit| (1 << bit, bytes(bit)))
            .collect()
    };
    let halves = exchanges(&|bit| bytes.div_ceil(2 << bit));
    let block = bytes.div_ceil(ranks as u64);
    match what {
        ("barrier", "dissemination") => far
            .flat_map(|far| round((rank + far) % ranks, (rank + ranks - far) % ranks, bytes))
            .collect(),
        ("barrier" | "allreduce", "recursive_doubling") => {
            folded(rank, ranks, [bytes; 2], &exchanges(&|_| bytes))
        }
        ("barrier", "tree") | ("allreduce", "reduce_bcast") => {
            [up(rank, ranks, &|_| bytes), down(rank, ranks, &|_| bytes)].concat()
        }
        ("bcast", "binomial") => down(rank, ranks, &|_| bytes),
        ("bcast", "scatter_allgather") => [
            down(rank, ranks, &|below| below * block),
            ring(rank, ranks, ranks - 1, block),
        ]
        .concat(),
        ("reduce", "binomial") => up(rank, ranks, &|_| bytes),
        ("reduce" | "gather", "linear") => match rank {
            0 => vec![Receive((1..ranks).collect())],
            _ => vec![Send(0, bytes)],
        },
        ("allreduce", "ring") => ring(rank, ranks, 2 * (ranks - 1), block),
        ("allreduce", "rabenseifner") => {
            let both: Vec<_> = halves.iter().chain(halves.iter().rev()).copied().collect();
            folded(rank, ranks, [bytes; 2], &both)
        }
        ("allgather", "bruck") => far
            .flat_map(|far| {
                let blocks = far.min(ranks - far) as u64;
                round(
                    (rank + ranks - far) % ranks,
                    (rank + far) % ranks,
                    blocks * bytes,
                )
            })
            .collect(),
        ("allgather", "neighbor_exchange") if ranks.is_multiple_of(2) => {
            let neighbour = |round: usize| match (rank + round) % 2 {
                0 => (rank + 1) % ranks,
                _ => (rank + ranks - 1) % ranks,
            };
            let size = |round| if round == 0 { bytes } else { 2 * bytes };
            let rounds = 0..ranks / 2;
            rounds
                .flat_map(|r| round(neighbour(r), neighbour(r), size(r)))
                .collect()
        }
        ("allgather", "ring" | "neighbor_exchange") => ring(rank, ranks, ranks - 1, bytes),
        ("alltoall", "bruck") => far
            .flat_map(|far| {
                let blocks = (0..ranks).filter(|block| block & far != 0).count() as u64;
                round(
                    (rank + far) % ranks,
                    (rank + ranks - far) % ranks,
                    blocks * bytes,
                )
            })
            .collect(),
        ("alltoall", "pairwise") => (1..ranks)
            .flat_map(|far| round((rank + far) % ranks, (rank + ranks - far) % ranks, bytes))
            .collect(),
        ("alltoall", "linear") => {
            let others = (1..ranks).map(|far| (rank + far) % ranks);
            let mut acts: Vec<_> = others.clone().map(|other| Send(other, bytes)).collect();
            acts.push(Receive(others.collect()));
            acts
        }
        ("gather", "binomial") => up(rank, ranks, &|below| below * bytes),
        ("reduce_scatter", "halving") => folded(rank, ranks, [bytes, block], &halves),
        ("scan", "recursive_doubling") => far
            .flat_map(|far| {
                let send = (rank + far < ranks).then(|| Send(rank + far, bytes));
                let receive = (rank >= far).then(|| Receive(vec![rank - far]));
                send.into_iter().chain(receive)
            })
            .collect(),
        _ => panic!("no messages are known of {what:?}"),
    }
}

/// Returns the time of a chain with the best of its segment sizes.
fn chain(net: &Network, ranks: usize, bytes: u64) -> u64 {
    let whole = bytes.max(1);
    let sizes = (0..=whole.ilog2()).map(|bits| whole >> bits);
    let time = |size: u64| {
        let one = |rank: usize| {
            let receive = (rank > 0).then(|| Receive(vec![rank - 1]));
            let send = (rank + 1 < ranks).then(|| Send(rank + 1, size));
            receive.into_iter().chain(send).collect::<Vec<_>>()
        };
        let segments = bytes.div_ceil(size).max(1) as usize;
        let all: Vec<_> = (0..ranks)
            .map(|rank| vec![one(rank); segments].concat())
            .collect();
        simulate(net, &all)
    };
    sizes.map(time).min().expect("a size")
}

const NETWORKS: [Network; 3] = [
    Network::LOGGOPSIM,
    Network::HDR,
    // A network whose gap is longer than its latency, overhead and transfer time.
    Network {
        latency: Time::from_ns(300),
        overhead: Time::from_ns(50),
        gap: Time::from_ns(2000),
        byte_gap: Time::from_ns(3),
        bytes: 16,
    },
];

#[test]
fn every_rule_takes_what_its_messages_take() {
    let check = |rule: &Collective, net: Network, ranks: usize, bytes: u64| {
        let what = (rule.call, rule.algorithm);
        if what == ("bcast", "chain") && (ranks > 9 || bytes > 100) {
            return;
        }
        let simulated = match what {
            ("bcast", "chain") => chain(&net, ranks, bytes),
            _ => {
                let all: Vec<_> = (0..ranks)
                    .map(|rank| acts(what, rank, ranks, bytes))
                    .collect();
                simulate(&net, &all)
            }
        };
        let time = rule.time(net, ranks as u64, bytes);
        assert_eq!(
            time.ps(),
            simulated,
            "{what:?} of {ranks} ranks, {bytes} bytes: {net}"
        );
    };
    for net in NETWORKS {
        for ranks in (2..=13).chain([16, 31, 33]) {
            BARRIERS
                .iter()
                .for_each(|rule| check(rule, net, ranks, net.bytes));
            for bytes in [1, 100, 1500] {
                COLLECTIVES
                    .iter()
                    .for_each(|rule| check(rule, net, ranks, bytes));
            }
        }
    }
}

/// Hence `hwbarr scale` and `hwbarr run` report the same time for the same barrier.
#[test]
fn a_barrier_takes_as_long_by_its_rule_as_by_its_schedule() {
    let pairs = [
        ("dissemination", "dissemination"),
        ("recursive_doubling", "butterfly"),
        ("tree", "binomial tree"),
    ];
    for (rule, schedule) in pairs {
        let rule = BARRIERS.iter().find(|r| r.algorithm == rule).expect(rule);
        let algorithm = ALGORITHMS
            .iter()
            .find(|a| a.name == schedule)
            .expect(schedule);
        for net in NETWORKS {
            for ranks in (2..=70).chain([1024]) {
                let schedule = algorithm.schedule(ranks).expect("a schedule");
                let left = net.leave_times(&schedule, &vec![Time::ZERO; ranks]);
                let time = rule.time(net, ranks as u64, 0);
                assert_eq!(Some(&time), left.iter().max(), "{ranks} ranks");
            }
        }
    }
}
