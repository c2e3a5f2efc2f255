//! Test of the eureka line: model and RTL are equal, at each clock edge and in each flip-flop.

mod common;

use common::or_skip;
use common::stimulus::Edge;
use fpga_model::eureka::{EurekaLine, EurekaRegisters};
use hdl::icarus;
use hdl::random::Random;
use std::fmt::Write as _;

/// The design's inputs before one edge.
struct Applied {
    edge: Edge,
    /// The level of the barrier's release output.
    release: bool,
}

/// Returns random inputs: nodes raise and lower their wires,
/// often no node, sometimes several at one edge, with glitches and rare resets;
/// the barrier sometimes releases. The more samples the filter has, the rarer is each event.
fn random(nodes: usize, samples: u16, edges: usize) -> Vec<Applied> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ nodes as u64);
    let wires = u64::MAX >> (64 - nodes);
    let rarer = u64::from(samples - 1);
    let (mut inputs, mut release) = (0, false);
    (0..edges)
        .map(|_| {
            match random.below(24 + 8 * rarer) {
                0 => inputs |= 1 << random.below(nodes as u64),
                1 => inputs |= random.next_u64() & random.next_u64() & wires,
                2 => inputs &= random.next_u64(),
                3 | 4 => inputs = 0,
                _ => {}
            }
            release ^= random.one_in(20 + rarer);
            let reset = random.one_in(400 + 4 * rarer);
            Applied {
                edge: Edge { reset, inputs },
                release,
            }
        })
        .collect()
}

#[test]
fn the_rtl_does_what_the_model_does_at_every_edge() {
    let mut won = 0;
    for (nodes, samples) in [
        (1, 1),
        (2, 1),
        (7, 1),
        (60, 1),
        (64, 1),
        (3, 4),
        (60, 4),
        (2, 128),
        (2, 256),
    ] {
        let (mut found, mut kept, mut resets) = (0, 0, 0);
        let folder = tempfile::tempdir().expect("a folder");
        let edges = random(nodes, samples, 20_000);
        let parameters = [("N", nodes), ("FILTER", usize::from(samples))];
        let stimulus = edges.iter().fold(String::new(), |mut text, applied| {
            let Edge { reset, inputs } = applied.edge;
            let [reset, release] = [reset, applied.release].map(u8::from);
            let _ = writeln!(text, "{reset} {release} {inputs:x}");
            text
        });
        let trace = icarus::eureka_trace(&parameters, &stimulus, folder.path());
        let Some(trace) = or_skip("the eureka line under Icarus", trace) else {
            return;
        };
        let mut line = EurekaLine::new(nodes, samples).expect("a legal size");
        assert_eq!(line.nodes(), nodes);
        assert_eq!(trace.lines().count(), edges.len());
        for (number, (Applied { edge, release }, text)) in
            edges.iter().zip(trace.lines()).enumerate()
        {
            let before = line.registers();
            match edge.reset {
                true => line.reset(),
                false => {
                    line.step(edge.inputs, *release);
                }
            }
            let EurekaRegisters {
                stage1,
                stage2,
                found: is_found,
                first,
                ..
            } = line.registers();
            found += u32::from(is_found && !before.found);
            won += u32::from(first.trailing_zeros() as usize > nodes / 2 && first != 0);
            kept += u32::from(before.found && is_found && line.seen() & first == 0);
            resets += u32::from(edge.reset && before.found);
            let seen: Vec<_> = text
                .split(' ')
                .map(|word| u64::from_str_radix(word, 16))
                .collect();
            assert_eq!(
                seen,
                [u64::from(is_found), first, stage1, stage2, line.seen()].map(Ok),
                "{nodes} nodes, {samples} samples, edge {} {edge:?}: found, first, stage1, stage2, seen",
                number + 1
            );
        }
        // At this size the stimulus must have caused every transition.
        assert!(
            found > 3 && kept > 3 && resets > 1,
            "{nodes} nodes, {samples} samples: {found} {kept} {resets}"
        );
    }
    assert!(won > 100, "{won}");
}
