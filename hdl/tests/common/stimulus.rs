//! The stimulus of version 1, applied to both the model and the RTL, and its coverage.

use fpga_model::Registers;
use fpga_model::filter::FilteredMachine;
use hdl::random::Random;
use std::fmt::Write as _;

/// The design's inputs before one edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub reset: bool,
    pub inputs: u64,
}

/// Applies the inputs of one edge to the model.
pub fn apply(machine: &mut FilteredMachine, edge: &Edge) {
    if edge.reset {
        machine.reset();
    } else {
        machine.step(edge.inputs);
    }
}

/// Returns random arrivals with rare resets and withdrawals.
/// Drivers do not withdraw an arrival during a barrier, but a cable fault may.
///
/// Withdrawals and resets are rarer the more samples the filter needs; else no level would pass.
pub fn random(nodes: usize, samples: u16, edges: usize) -> Vec<Edge> {
    let mut random = Random(0x2545_f491_4f6c_dd1d ^ nodes as u64);
    let mut machine = FilteredMachine::new(nodes, samples).expect("a legal size");
    let mut inputs = 0;
    (0..edges)
        .map(|_| {
            inputs ^= random.next_u64() & !(inputs ^ machine.outputs()) & machine.wires();
            if random.one_in(16 * u64::from(samples)) {
                inputs ^=
                    random.next_u64() & random.next_u64() & random.next_u64() & machine.wires();
            }
            let edge = Edge {
                reset: random.one_in(500 + 4 * u64::from(samples)),
                inputs,
            };
            apply(&mut machine, &edge);
            edge
        })
        .collect()
}

/// Returns the faults that occur in practice, one after the other: a node that is late, dead, bouncing or reset; a wire stuck at either level;
/// a glitch of each width; then the same with resets of the design in between.
pub fn directed(nodes: usize, samples: u16) -> Vec<Edge> {
    let samples = usize::from(samples);
    let all = FilteredMachine::new(nodes, 1)
        .expect("a legal size")
        .wires();
    let last = 1 << (nodes - 1);
    let mut edges = Vec::new();
    let mut hold = |inputs, times| {
        let edge = Edge {
            reset: false,
            inputs,
        };
        edges.extend(std::iter::repeat_n(edge, times));
    };
    // After this number of edges with constant inputs a new level has passed the filter
    // and has been held for `edges` edges.
    let settled = |edges| edges + samples - 1;
    // Two good barriers, one to each level, and then the same with the last node late.
    for late in [0, 1, 2, 3, 9] {
        hold(all & !last, late);
        hold(all, settled(5));
        hold(last, late);
        hold(0, settled(5));
    }
    // A glitch of each width on one wire while all other nodes have arrived: one that passes the filter releases.
    for width in (1..=4).chain(samples - 1..=samples + 2) {
        hold(all & !last, settled(4));
        hold(all, width);
        hold(all & !last, settled(5));
        hold(0, settled(6));
        hold(all, settled(6));
        hold(0, settled(6));
    }
    // One wire bounces at every edge.
    for at in 0..12 {
        hold(if at % 2 == 0 { all } else { all & !1 }, 1);
    }
    hold(all, settled(5));
    // A wire stuck low, then a wire stuck high: no release.
    hold(1, settled(8));
    hold(0, settled(8));
    hold(all & !1, settled(8));
    hold(0, settled(4));
    // The last node reboots: its wire falls, which counts as an arrival.
    hold(all, settled(6));
    hold(all & !last, settled(1));
    hold(0, settled(6));
    let middle = edges.len() / 2;
    let mut resets = edges.clone();
    for (at, edge) in resets.iter_mut().enumerate() {
        edge.reset = at % (36 + samples) == 11 || at == middle;
    }
    edges.extend(resets);
    edges
}

/// Returns every sequence of `depth` inputs of a small barrier, each after a reset.
pub fn exhaustive(nodes: usize, depth: u32) -> Vec<Edge> {
    let levels = 1u64 << nodes;
    (0..levels.pow(depth))
        .flat_map(|number| {
            let restart = Edge {
                reset: true,
                inputs: 0,
            };
            let inputs = (0..depth).map(move |at| Edge {
                reset: false,
                inputs: number / levels.pow(at) % levels,
            });
            // Two more edges, until the last inputs have passed the synchroniser.
            let rest = [Edge {
                reset: false,
                inputs: number / levels.pow(depth - 1),
            }; 2];
            std::iter::once(restart).chain(inputs).chain(rest)
        })
        .collect()
}

/// Returns the stimulus in the testbench's format.
pub fn text(edges: &[Edge]) -> String {
    edges.iter().fold(String::new(), |mut text, edge| {
        let _ = writeln!(text, "{} {:x}", u8::from(edge.reset), edge.inputs);
        text
    })
}

/// Numbers of visited states and of transitions.
#[derive(Debug, Default, Clone, Copy)]
pub struct Coverage {
    /// Number of edges before which the level was 0, and number before which it was 1.
    pub states: [u64; 2],
    /// Number of transitions from 0 to 1 and from 1 to 0,
    /// and number of edges with some (not all) nodes arrived, in state 0 and in state 1.
    pub rises: u64,
    pub falls: u64,
    pub withheld: [u64; 2],
    pub resets: [u64; 2],
}

impl Coverage {
    /// Returns true if every state and transition was reached.
    /// With one node, no edge can have only some nodes arrived.
    pub fn is_complete(&self, nodes: usize) -> bool {
        let Coverage {
            states,
            rises,
            falls,
            withheld,
            resets,
        } = self;
        let reached = |times: &[u64]| times.iter().all(|n| *n > 0);
        reached(states)
            && reached(resets)
            && reached(&[*rises, *falls])
            && (nodes == 1 || reached(withheld))
    }
}

/// Compares each edge and each flip-flop of a trace with the model.
pub fn compare(
    what: &str,
    (nodes, samples): (usize, u16),
    edges: &[Edge],
    trace: &str,
    coverage: &mut Coverage,
) {
    let mut machine = FilteredMachine::new(nodes, samples).expect("a legal size");
    let mut compared = 0;
    for (number, (edge, line)) in edges.iter().zip(trace.lines()).enumerate() {
        let before = machine.registers();
        let high = before.output != 0;
        let arrived = machine.seen() ^ before.output;
        apply(&mut machine, edge);
        let after = machine.registers();
        let at = usize::from(high);
        coverage.states[at] += 1;
        match (edge.reset, before.output == after.output) {
            (true, _) => coverage.resets[at] += 1,
            (false, false) if high => coverage.falls += 1,
            (false, false) => coverage.rises += 1,
            (false, true) => coverage.withheld[at] += u64::from(arrived != 0),
        }
        let Registers {
            stage1,
            stage2,
            output,
            ..
        } = after;
        let seen: Vec<_> = line
            .split(' ')
            .map(|word| u64::from_str_radix(word, 16))
            .collect();
        assert_eq!(
            seen,
            [output, stage1, stage2, machine.seen()].map(Ok),
            "{what}, {nodes} nodes, {samples} samples, edge {} {edge:?}: outputs, stage1, stage2, seen",
            number + 1
        );
        compared += 1;
    }
    assert_eq!(
        compared,
        edges.len(),
        "{what}: the trace of {nodes} nodes is cut short"
    );
}
