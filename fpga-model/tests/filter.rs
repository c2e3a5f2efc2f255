//! Tests of the filter against a second definition, which uses the past samples of each wire.

use fpga_model::filter::{BadFilter, FilteredMachine, MAX_SAMPLES};
use fpga_model::{LATENCY_EDGES, ToggleMachine};
use proptest::prelude::*;

fn machine(nodes: usize, samples: u16) -> FilteredMachine {
    FilteredMachine::new(nodes, samples).expect("a legal size")
}

/// The second definition of the filtered barrier:
/// a wire has the level of its last `samples` samples if they agree, else its previous level.
struct Told {
    nodes: usize,
    samples: usize,
    history: Vec<u64>,
    held: u64,
    output: bool,
}

impl Told {
    fn step(&mut self, inputs: u64) -> bool {
        // Because of the two stages, the samples evaluated now were at the pins two edges ago.
        self.history.push(inputs);
        let known = self.history.len().saturating_sub(2);
        let sample = |back: usize| known.checked_sub(back + 1).map_or(0, |at| self.history[at]);
        for node in 0..self.nodes {
            let ones = (0..self.samples)
                .filter(|&back| sample(back) >> node & 1 == 1)
                .count();
            if ones == self.samples {
                self.held |= 1 << node;
            } else if ones == 0 {
                self.held &= !(1 << node);
            }
        }
        let all = u64::MAX >> (64 - self.nodes);
        self.output ^= self.held ^ if self.output { all } else { 0 } == all;
        self.output
    }
}

proptest! {
    #[test]
    fn it_does_what_the_history_of_each_wire_says(
        nodes in 1..=6usize,
        samples in 1..=9u16,
        toggles in proptest::collection::vec((any::<u64>(), 1..14usize), 1..80),
    ) {
        let mut machine = machine(nodes, samples);
        let mut told = Told { nodes, samples: samples.into(), history: Vec::new(), held: 0, output: false };
        let mut inputs = 0;
        for (change, edges) in toggles {
            // One third of the changes lets all nodes arrive at the same time;
            // with random changes only, a barrier of many nodes would never release.
            inputs = if change % 3 == 0 { !machine.outputs() } else { inputs ^ change } & machine.wires();
            for _ in 0..edges {
                prop_assert_eq!(machine.step(inputs) != 0, told.step(inputs));
            }
        }
    }

    #[test]
    fn one_sample_is_the_plain_barrier(nodes in 1..=64usize, inputs in proptest::collection::vec(any::<u64>(), 1..200)) {
        let mut filtered = machine(nodes, 1);
        let mut plain = ToggleMachine::new(nodes).expect("a legal size");
        for word in inputs {
            let word = if word % 3 == 0 { !plain.outputs() } else { word };
            filtered.step(word);
            plain.step(word);
            prop_assert_eq!(filtered.registers(), plain.registers());
        }
    }

    #[test]
    fn fast_forward_is_so_many_steps(
        nodes in 1..=64usize,
        samples in 1..=40u16,
        legs in proptest::collection::vec((any::<u64>(), 0..60u64), 1..30),
    ) {
        let (mut fast, mut slow) = (machine(nodes, samples), machine(nodes, samples));
        for (word, cycles) in legs {
            let inputs = if word % 3 == 0 { !fast.outputs() } else { word };
            let foreseen = fast.edges_to_release(inputs);
            let before = slow.outputs();
            let mut seen = None;
            for edge in 1..=cycles {
                if slow.step(inputs) != before && seen.is_none() {
                    seen = Some(edge);
                }
            }
            prop_assert_eq!(seen, foreseen.filter(|&edge| edge <= cycles));
            fast.fast_forward(inputs, cycles);
            prop_assert_eq!(fast, slow);
        }
    }
}

#[test]
fn a_release_comes_one_edge_later_for_each_further_sample() {
    for samples in [1, 2, 4, 7, 128, MAX_SAMPLES] {
        let mut machine = machine(60, samples);
        let all = machine.wires();
        for inputs in [all, 0, all] {
            let edges = machine.edges_to_release(inputs);
            assert_eq!(edges, Some(LATENCY_EDGES + u64::from(samples) - 1));
            machine.fast_forward(inputs, 1000);
            assert_eq!(machine.outputs(), inputs);
        }
        assert_eq!(machine.releases(), 3);
    }
}

#[test]
fn a_pulse_of_fewer_samples_is_nothing_and_one_of_as_many_is_an_arrival() {
    for samples in [2, 4, 7, 128] {
        for width in 1..=2 * samples {
            let mut machine = machine(3, samples);
            machine.fast_forward(0b110, 1000);
            for _ in 0..width {
                machine.step(0b111);
            }
            machine.fast_forward(0b110, 1000);
            assert_eq!(
                machine.releases() > 0,
                width >= samples,
                "{samples} {width}"
            );
        }
    }
}

#[test]
fn a_bouncing_contact_arrives_when_it_has_come_to_rest() {
    let mut machine = machine(1, 4);
    for edge in 0..40 {
        machine.step(u64::from(edge % 4 < 3));
        assert_eq!(machine.releases(), 0);
    }
    machine.fast_forward(1, 10);
    assert_eq!(machine.releases(), 1);
}

#[test]
fn flip_flops_can_be_read_and_set() {
    let filter = machine(60, 200)
        .filter()
        .with(59, true, 137)
        .with(3, false, 5);
    assert_eq!(
        (
            filter.held,
            filter.count(59),
            filter.count(3),
            filter.count(0)
        ),
        (1 << 59, 137, 5, 0)
    );
}

#[test]
fn what_cannot_be_built_is_refused_with_a_sentence() {
    assert_eq!(FilteredMachine::new(4, 0), Err(BadFilter::Samples(0)));
    let said = |nodes, samples| {
        FilteredMachine::new(nodes, samples)
            .err()
            .map(|e| e.to_string())
    };
    assert_eq!(
        said(4, 257).as_deref(),
        Some("a filter of 257 samples cannot be built: 1 to 256 samples make a level")
    );
    assert!(said(65, 4).is_some_and(|said| said.contains("65 nodes")));
}
