//! Tests of the guarantees of the eureka line, observed only at its pins.

use fpga_model::LATENCY_EDGES;
use fpga_model::eureka::EurekaLine;
use proptest::prelude::*;

fn line(nodes: usize, samples: u16) -> EurekaLine {
    EurekaLine::new(nodes, samples).expect("a legal size")
}

#[test]
fn a_nodes_arrival_takes_as_many_edges_as_its_release() {
    for samples in [1, 2, 7] {
        let mut line = line(60, samples);
        let edges = (1..).find(|_| line.step(1 << 42, false));
        assert_eq!(edges, Some(LATENCY_EDGES + u64::from(samples) - 1));
        assert_eq!(edges, Some(line.latency_edges()));
        assert_eq!(line.first(), Some(42));
    }
}

#[test]
fn of_those_that_come_at_one_edge_the_lowest_is_first_until_the_barrier_releases() {
    let mut line = line(64, 1);
    let mut hold = |inputs: u64, release: bool| {
        for _ in 0..LATENCY_EDGES {
            line.step(inputs, release);
        }
        (line.found(), line.first())
    };
    assert_eq!(hold(1 << 63 | 1 << 7, false), (true, Some(7)));
    // A node that raises its wire later is not first;
    // the first node stays first after it lowers its wire.
    assert_eq!(hold(1 << 63 | 1, false), (true, Some(7)));
    assert_eq!(hold(0, false), (true, Some(7)));
    assert_eq!(hold(0, true), (false, None));
    assert_eq!(hold(1, true), (true, Some(0)));
    // A wire that is still high when the barrier releases raises the line again.
    assert_eq!(hold(1, false), (true, Some(0)));
    assert_eq!(hold(0, false), (true, Some(0)));
    assert_eq!(hold(0, true), (false, None));
}

#[test]
fn what_cannot_be_built_is_refused() {
    assert!(EurekaLine::new(0, 1).is_err());
    assert!(EurekaLine::new(65, 1).is_err());
    assert!(EurekaLine::new(4, 0).is_err());
}

proptest! {
    #[test]
    fn it_rises_after_a_nodes_wire_and_falls_after_the_release_of_the_barrier(
        nodes in 1usize..=64,
        history in prop::collection::vec((any::<u64>(), 0u8..6), 4..80),
        sparse in any::<bool>(),
    ) {
        let mut line = line(nodes, 1);
        let wires = u64::MAX >> (64 - nodes);
        let words: Vec<u64> = history
            .windows(3)
            .map(|w| if sparse { w[0].0 & w[1].0 & w[2].0 & 0x8101 } else { w[0].0 } & wires)
            .collect();
        let (mut first, mut level) = (None, false);
        for at in 0..words.len() {
            let released = history[at].1 == 0;
            level ^= released;
            let found = line.step(words[at], level);
            // The line evaluates at this edge the levels that were at the pins two edges ago.
            let told = at.checked_sub(2).map_or(0, |at| words[at]);
            first = match first {
                _ if released => None,
                None if told != 0 => Some(told.trailing_zeros() as usize),
                kept => kept,
            };
            prop_assert_eq!(found, first.is_some());
            prop_assert_eq!(line.first(), first);
        }
    }
}

proptest! {
    #[test]
    fn many_edges_at_once_are_as_many_steps(
        before in prop::collection::vec((any::<u64>(), any::<bool>()), 0..8),
        inputs in any::<u64>(),
        release in any::<bool>(),
        edges in 0u64..300,
        samples in 1u16..5,
    ) {
        let mut stepped = line(5, samples);
        for (inputs, release) in before {
            stepped.step(inputs, release);
        }
        let mut forwarded = stepped;
        let mut loaded = line(5, samples).load(stepped.registers());
        for _ in 0..edges {
            stepped.step(inputs, release);
        }
        prop_assert_eq!(forwarded.fast_forward(inputs, release, edges), stepped.found());
        prop_assert_eq!(forwarded, stepped);
        if samples == 1 {
            loaded.fast_forward(inputs, release, edges);
            prop_assert_eq!(loaded.registers(), stepped.registers());
        }
    }
}
