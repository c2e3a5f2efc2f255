//! Tests of the model's guarantees, with directed and with random stimulus.

use fpga_model::{BadNodeCount, LATENCY_EDGES, MAX_NODES, Registers, ToggleMachine};
use proptest::prelude::*;

fn machine(nodes: usize) -> ToggleMachine {
    ToggleMachine::new(nodes).expect("a legal node count")
}

#[test]
fn a_barrier_has_1_to_64_nodes() {
    assert_eq!(ToggleMachine::new(0), Err(BadNodeCount(0)));
    assert_eq!(ToggleMachine::new(MAX_NODES + 1), Err(BadNodeCount(65)));
    for nodes in 1..=MAX_NODES {
        assert_eq!(machine(nodes).nodes(), nodes);
    }
    assert_eq!(
        BadNodeCount(65).to_string(),
        "a barrier of 65 nodes cannot be built: it has 1 to 64 wire pairs"
    );
}

#[test]
fn the_release_comes_three_edges_after_the_last_arrival_in_both_directions() {
    for nodes in [1, 2, 7, 60, 64] {
        let mut m = machine(nodes);
        let all = m.wires();
        for (inputs, released) in [(all, all), (0, 0), (all, all)] {
            let before = m.releases();
            assert_eq!(m.edges_to_release(inputs), Some(LATENCY_EDGES));
            assert_eq!(m.step(inputs), all ^ released, "edge 1 only samples");
            assert_eq!(m.step(inputs), all ^ released, "edge 2 only synchronises");
            assert_eq!(m.step(inputs), released, "edge 3 releases");
            assert_eq!(m.releases(), before + 1);
            assert!(m.is_settled(inputs));
            assert_eq!(m.edges_to_release(inputs), None);
        }
    }
}

#[test]
fn one_missing_node_holds_everyone_for_any_number_of_cycles() {
    for nodes in [2, 7, 60] {
        for missing in 0..nodes {
            let mut m = machine(nodes);
            let arrived = m.wires() & !(1 << missing);
            assert_eq!(m.fast_forward(arrived, u64::MAX), 0);
            assert_eq!(m.releases(), 0);
        }
    }
}

#[test]
fn wires_that_do_not_exist_are_not_connected() {
    let mut m = machine(7);
    assert_eq!(m.fast_forward(u64::MAX, 3), 0x7f);
    assert_eq!(m.fast_forward(u64::MAX << 7, 3), 0);
    assert_eq!(m.releases(), 2);
}

#[test]
fn reset_clears_every_flip_flop_and_keeps_the_count() {
    let mut m = machine(5);
    m.fast_forward(m.wires(), 3);
    m.reset();
    assert_eq!(
        m.registers(),
        Registers {
            releases: 1,
            ..Registers::default()
        }
    );
}

fn any_machine() -> impl Strategy<Value = ToggleMachine> {
    // All ones and all zeros are frequent, because only such levels cause releases.
    let level = || prop_oneof![Just(0), Just(u64::MAX), any::<u64>()];
    (1..=MAX_NODES, level(), level(), any::<bool>()).prop_map(|(nodes, stage1, stage2, high)| {
        let output = if high { u64::MAX } else { 0 };
        machine(nodes).load(Registers {
            stage1,
            stage2,
            output,
            releases: 0,
        })
    })
}

proptest! {
    #[test]
    fn fast_forward_equals_stepping(
        start in any_machine(),
        inputs in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        cycles in 0..20u64,
    ) {
        let mut stepped = start;
        let mut seen = Vec::new();
        for edge in 1..=cycles {
            let before = stepped.outputs();
            if stepped.step(inputs) != before {
                seen.push((edge, stepped.outputs()));
            }
        }
        let mut jumped = start;
        let mut reported = Vec::new();
        jumped.fast_forward_with(inputs, cycles, |edge, outputs| reported.push((edge, outputs)));
        prop_assert_eq!(stepped, jumped);
        prop_assert_eq!(&seen, &reported);
        if cycles >= LATENCY_EDGES {
            prop_assert_eq!(start.edges_to_release(inputs), seen.first().map(|&(edge, _)| edge));
        }
    }

    #[test]
    fn a_settled_machine_is_one_that_no_edge_changes(
        start in any_machine(),
        inputs in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        cycles in 0..5u64,
    ) {
        let mut m = start;
        m.fast_forward(inputs, cycles);
        let mut later = m;
        later.fast_forward(inputs, 1_000_000);
        prop_assert_eq!(m.is_settled(inputs), m == later);
    }

    #[test]
    fn the_output_toggles_only_when_every_sampled_input_differs_from_it(
        nodes in 1..=8usize,
        stimulus in prop::collection::vec(any::<u64>(), 3..200),
    ) {
        let mut m = machine(nodes);
        for window in stimulus.windows(2) {
            let before = m.registers();
            m.step(window[0]);
            let toggled = m.outputs() != before.output;
            prop_assert_eq!(toggled, before.stage2 ^ before.output == m.wires());
            prop_assert_eq!(m.registers().stage2, before.stage1);
        }
    }
}
