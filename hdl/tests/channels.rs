//! Tests of version 2: model and RTL are equal, at each clock edge and in each flip-flop, under two simulators.
//!
//! The random stimulus imitates ports and cables: members that arrive and withdraw; correct, wrong, incomplete, noisy and too fast frames;
//! two nodes that send at the same time, one that stops sending, and resets. The directed stimulus exercises each rule.
//! The model counts the coverage; a state, transition or reply that was never reached fails the test.

#[path = "common/channels/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "one of the scripts is for the coverage of branches only"
)]
mod channels;
mod common;

use channels::{Coverage, Edge, LEASE_BITS, compare, directed, random, saturating, text};
use common::{cache, each, or_skip};
use fpga_model::channels::ChannelMachine;
use hdl::formal::Mutant;
use hdl::tool::ToolError;
use hdl::verilator::Verilated;
use hdl::{CHANNEL_TRACE_BENCH, channel_claims, icarus};
use std::path::Path;
use std::sync::Mutex;

fn blank(nodes: usize, channels: usize) -> ChannelMachine {
    ChannelMachine::new(nodes, channels)
        .expect("a legal size")
        .with_lease_bits(LEASE_BITS)
}

fn parameters(nodes: usize, channels: usize) -> [(&'static str, usize); 3] {
    [
        ("N", nodes),
        ("C", channels),
        ("LEASE_BITS", LEASE_BITS as usize),
    ]
}

/// Simulates random edges at each size, and at the first size also the directed and the saturating stimulus.
fn check<R>(what: &str, sizes: &[(usize, usize)], edges: usize, rtl: R)
where
    R: Fn(usize, usize, &str, &Path) -> Result<String, ToolError> + Sync,
{
    let (coverage, skipped) = (Mutex::new(Coverage::default()), Mutex::new(false));
    each(sizes, |&(nodes, channels)| {
        let blank = blank(nodes, channels);
        let mut stimuli: Vec<Vec<Edge>> = vec![random(blank, edges)];
        if (nodes, channels) == sizes[0] {
            stimuli.push(directed(blank));
            stimuli.push(saturating(blank));
        }
        for edges in stimuli {
            let folder = tempfile::tempdir().expect("a folder");
            let played = rtl(nodes, channels, &text(&edges, &blank), folder.path());
            let Some(trace) = or_skip(what, played) else {
                *skipped.lock().expect("no panic in here") = true;
                return;
            };
            let mut reached = Coverage::default();
            compare(what, blank, &edges, &trace, &mut reached);
            coverage.lock().expect("no panic in here").add(&reached);
        }
    });
    if skipped.into_inner().expect("no panic in here") {
        return;
    }
    let coverage = coverage.into_inner().expect("no panic in here");
    coverage.report(what);
    assert_eq!(coverage.missing(), [""; 0], "never seen under {what}");
}

fn under_icarus(sizes: &[(usize, usize)], edges: usize) {
    check(
        "Icarus",
        sizes,
        edges,
        |nodes, channels, stimulus, folder| {
            icarus::channel_trace(&parameters(nodes, channels), stimulus, folder)
        },
    );
}

fn under_verilator(sizes: &[(usize, usize)], edges: usize) {
    check(
        "Verilator",
        sizes,
        edges,
        |nodes, channels, stimulus, folder| {
            Verilated::channels(&parameters(nodes, channels), &cache())?.trace(stimulus, folder)
        },
    );
}

#[test]
fn the_channels_do_what_the_model_does_at_every_edge_under_icarus() {
    // Four fifths of all edges are those of the directed stimulus; Icarus plays them faster at a small size.
    under_icarus(&[(3, 2), (4, 5), (1, 1)], 20_000);
}

#[test]
fn the_channels_do_what_the_model_does_at_every_edge_under_verilator() {
    // With `--long` another test simulates 60 nodes.
    under_verilator(&[(8, 5)], 15_000);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_channels_do_what_the_model_does_at_all_sizes() {
    let sizes = [
        (4, 5),
        (60, 5),
        (64, 2),
        (8, 5),
        (7, 3),
        (6, 2),
        (5, 1),
        (3, 4),
        (2, 5),
    ];
    under_icarus(&sizes, 40_000);
    // At the sizes (64, 2) and (3, 5) the random stimulus does not reach every reply.
    under_verilator(&[(60, 5), (64, 2), (3, 5)], 100_000);
}

/// The stimuli that kill mutants of version 2 (`tests/mutation.rs`).
const SCRIPTS: [fn(ChannelMachine) -> Vec<Edge>; 11] = [
    channels::every_bit,
    channels::every_state,
    channels::drops,
    channels::unquiet_claims,
    channels::every_code,
    channels::counts,
    channels::handovers,
    channels::exact_limits,
    channels::sessions,
    channels::every_channel,
    channels::wrong_checks,
];

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_channels_do_what_the_model_does_under_the_stimuli_that_kill_mutants() {
    let (nodes, channels) = (3, 2);
    let blank = blank(nodes, channels);
    let built = Verilated::channels(&parameters(nodes, channels), &cache());
    let Some(built) = or_skip("Verilator", built) else {
        return;
    };
    each(&SCRIPTS, |script| {
        let edges = script(blank);
        let folder = tempfile::tempdir().expect("a folder");
        let trace = built.trace(&text(&edges, &blank), folder.path());
        let trace = trace.expect("Verilator was there");
        compare("Verilator", blank, &edges, &trace, &mut Coverage::default());
    });
}

/// Mutants whose counters wrap instead of saturating; proofs do not reach such counts.
const WRAPPING: [Mutant; 2] = [
    Mutant {
        fault: "the counter of limits that ran out wraps",
        file: "channel_machine.v",
        from: "overdue && !overdue_q && !(&expired_q)",
        to: "overdue && !overdue_q",
    },
    Mutant {
        fault: "the counter of early releases wraps",
        file: "channel_machine.v",
        from: "early && !(&early_q)",
        to: "early",
    },
];

#[test]
fn a_counter_that_wraps_is_detected_by_the_stimulus_that_fills_it() {
    let (nodes, channels) = (2, 1);
    let blank = blank(nodes, channels);
    let stimulus = text(&saturating(blank), &blank);
    let play = |design| {
        let folder = tempfile::tempdir().expect("a folder");
        let parameters = parameters(nodes, channels);
        let bench = &CHANNEL_TRACE_BENCH;
        let played = icarus::play(bench, &design, &parameters, &stimulus, folder.path());
        or_skip("counters under Icarus", played)
    };
    let Some(whole) = play(channel_claims::design()) else {
        return;
    };
    each(&WRAPPING, |mutant| {
        let broken = channel_claims::design().mutated(*mutant);
        let trace = play(broken.expect("one place to break"));
        assert!(
            trace.expect("Icarus was there") != whole,
            "{}",
            mutant.fault
        );
    });
}

/// Tests the contract of channels/README.md: a pulse of less than three periods never passes the filter,
/// a pulse of four or more always does; between them its phase decides.
#[test]
fn a_pulse_of_the_rtl_under_three_periods_never_counts_and_one_of_four_always_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(trace) = or_skip("pulses under Icarus", icarus::line_pulses(folder.path())) else {
        return;
    };
    let mut between = 0;
    for line in trace.lines() {
        let numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        let [width, pulses, counted] = numbers.collect::<Vec<u32>>()[..] else {
            panic!("{line:?} is not three numbers");
        };
        match width {
            ..=300 => assert_eq!(counted, 0, "of {pulses} pulses of {width} hundredths"),
            400.. => assert_eq!(counted, pulses, "pulses of {width} hundredths"),
            _ => between += counted,
        }
    }
    assert_eq!(trace.lines().count(), 500);
    // A pulse of 3 + x periods covers four clock edges in a fraction x of all phases.
    // For widths of 3.01 to 3.99 periods that is half of the phases on average.
    assert!((400..600).contains(&between), "{between} of 990");
}
