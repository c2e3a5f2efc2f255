//! Tests that a board's netlist with place-and-route delays has the same outputs as the RTL.

mod common;
#[allow(
    dead_code,
    unused_imports,
    reason = "the stimuli alone, without the comparison"
)]
#[path = "common/subjects.rs"]
mod subjects;

use common::{each, or_skip};
use hdl::fpga::{ICE40_HX8K, ICE40_HX8K_START, ICEBREAKER, ICESTICK, KIT, Target};
use hdl::play::{Play, bit, bits, in_bits};
use hdl::random::Random;
use hdl::{coverage, formal, icarus, timed_netlist};

/// The outputs agree at 20 ns, half of the iCEstick's clock period, and differ at 2 ns, less than the longest path.
#[test]
fn the_netlist_with_delays_does_what_the_rtl_does_until_the_clock_is_too_fast() {
    let subject = subjects::toggle(1500);
    let folder = tempfile::tempdir().expect("a folder");
    let rtl = or_skip(
        subject.name,
        coverage::verilog_trace(&subject, folder.path()),
    );
    let target: &Target = &ICESTICK;
    let at = |period: usize| {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = timed_netlist::played(
            &subject.play,
            &subject.verilog,
            target,
            &subject.stimulus,
            period,
            folder.path(),
        );
        or_skip("the netlist with delays", trace)
    };
    let (Some(rtl), Some(slow), Some(fast)) = (rtl, at(20_000), at(2_000)) else {
        return;
    };
    let differ = |trace: &str| {
        trace
            .lines()
            .zip(rtl.lines())
            .filter(|(one, other)| one != other)
            .count()
    };
    assert_eq!(slow.lines().count(), rtl.lines().count());
    assert_eq!(differ(&slow), 0, "at 50 MHz");
    assert!(differ(&fast) > 0, "at 500 MHz the delays must be seen");
}

/// Returns barriers in which the nodes enter in random order, some at one edge.
fn arrivals(nodes: usize) -> String {
    let mut random = Random::default();
    let (mut lines, mut text) = (0_u64, String::new());
    for _ in 0..6 {
        let mut missing: Vec<usize> = (0..nodes).collect();
        while !missing.is_empty() {
            for _ in 0..1 + random.below(nodes as u64 / 2) {
                let at = random.below(missing.len().max(1) as u64) as usize;
                if at < missing.len() {
                    lines ^= 1 << missing.swap_remove(at);
                }
            }
            text += &format!("{}\n", in_bits(lines, nodes));
        }
        for _ in 0..4 {
            text += &format!("{}\n", in_bits(lines, nodes));
        }
    }
    text
}

/// Compares each board's top level, at its pins, with the barrier's RTL: equal at the board's clock, different at a too fast one.
fn boards_keep_up(boards: &[Target]) {
    each(boards, |board| {
        let nodes = board.wires as usize;
        let stimulus = arrivals(nodes);
        let part = Play {
            top: hdl::TOP,
            parameters: vec![("N", nodes)],
            inputs: vec![bit("rst_i"), bits("node_i", nodes)],
            outputs: vec![bits("node_o", nodes)],
        };
        let reset: String = stimulus.lines().map(|line| format!("0{line}\n")).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let rtl = icarus::played(
            &part,
            &formal::texts(&hdl::RTL),
            &reset,
            None,
            folder.path(),
        );
        let whole = Play {
            top: board.top,
            parameters: board.parameters.to_vec(),
            inputs: vec![bits("node_i", nodes)],
            outputs: vec![bit("release_o"), bit("lamp_high_o"), bit("lamp_low_o")],
        };
        let at = |period: usize| {
            let folder = tempfile::tempdir().expect("a folder");
            let trace =
                timed_netlist::board_played(&whole, board, &stimulus, period, folder.path());
            or_skip(board.name, trace)
        };
        let period = (1e6 / board.clock_mhz) as usize;
        let (Some(rtl), Some(slow), Some(fast)) = (or_skip(board.name, rtl), at(period), at(5_000))
        else {
            return;
        };
        let wanted: Vec<_> = rtl.lines().map(|line| &line[line.len() - 1..]).collect();
        let level: Vec<_> = slow.lines().map(|line| &line[..1]).collect();
        assert!(wanted.contains(&"1") && wanted.contains(&"0"));
        assert_eq!(level, wanted, "{} at {period} ps", board.name);
        for line in slow.lines() {
            assert!(
                ["110", "001"].contains(&line),
                "{}: lamps {line}",
                board.name
            );
        }
        assert!(
            slow != fast,
            "{}: the delays must be seen at 5 ns",
            board.name
        );
    });
}

#[test]
fn the_whole_top_of_a_board_on_its_pins_does_what_the_rtl_does_at_its_clock() {
    boards_keep_up(&[KIT]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn so_does_the_top_of_each_larger_ice40_board() {
    boards_keep_up(&[ICE40_HX8K, ICE40_HX8K_START, ICESTICK, ICEBREAKER]);
}
