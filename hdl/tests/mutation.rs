//! Tests of the contracts: they detect every mutant of a sample that is not equivalent to its design.

#[path = "common/channels/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the comparison of traces is another test's"
)]
mod channels;
mod common;

use channels::{Edge, LEASE_BITS, Mix};
use common::{cache, or_skip};
use fpga_model::channels::ChannelMachine;
use hdl::formal::Design;
use hdl::mutation::{self, Played, Score, Stimulus, Subject, Wait};
use hdl::play::{Play, bit, bits, in_bits};
use hdl::tool::ToolError;
use hdl::{CHANNEL_TOP, channel_claims, eureka_claims, register_claims, toggle_claims};
use std::time::Instant;

/// Mutants that may survive: parts of yosys' description, and the reason.
const KEPT: &[(&[&str], &str)] = &[
    (
        &["-mode const1", "-module apb_front", "-wire psel_i"],
        "PSEL tied to 1 differs only while PENABLE is 1 without PSEL, which the bus forbids",
    ),
    (
        &["-mode const0", "-module channel_line", "-wire rst_i"],
        LINE_WITHOUT_RESET,
    ),
    (
        &["-mode const0", "-cell clock_line", "-port rst_i"],
        LINE_WITHOUT_RESET,
    ),
    (
        &[
            "-mode const0",
            "-module channel_line",
            "slice$1955",
            "-port SRST",
        ],
        "equal: a flush clears the first stage, so the second stage has at most one high sample after it, and four are needed",
    ),
    (
        &[
            "-mode const1",
            "$logic_not$channel_machine.v:120$765",
            "-port Y",
        ],
        "equal: the flags of the last release survive a reset for two edges, in which no node has arrived, because the synchronisers are reset",
    ),
    (
        &[
            "-mode const1",
            "-module channel_frame",
            "$ternary$channel_frame.v:64$",
            "-port B",
        ],
        "equal: the bits that a reply shifts in are never sent, and the next request replaces all of them",
    ),
];

/// Why a reset may leave a serial line as it is.
const LINE_WITHOUT_RESET: &str = "equal: a reset ends the grant, so the line is flushed at the next edge, and its level is not used before";

fn toggle(sample: usize) -> Subject {
    Subject {
        design: Design::toggle_barrier(),
        contract: toggle_claims::CONTRACT,
        parameters: &[("N", 4)],
        steps: 8,
        sample,
    }
}

fn registers(sample: usize) -> Subject {
    Subject {
        design: register_claims::design(),
        contract: register_claims::CONTRACT,
        parameters: &[("N", 2), ("G", 1), ("SYNC", 2)],
        steps: 8,
        sample,
    }
}

fn fronts(sample: usize) -> impl Iterator<Item = Subject> {
    register_claims::BUSES.into_iter().map(move |bus| Subject {
        design: bus.front_alone(),
        contract: bus.contract(),
        parameters: &[],
        steps: 8,
        sample,
    })
}

fn eureka(sample: usize) -> Subject {
    Subject {
        design: eureka_claims::design(),
        contract: eureka_claims::CONTRACT,
        parameters: &[("N", 4)],
        steps: 8,
        sample,
    }
}

/// Returns version 2 as a design of which only this module is mutated.
fn module(top: &'static str) -> Design {
    Design {
        top,
        ..channel_claims::design()
    }
}

fn line(sample: usize) -> Subject {
    Subject {
        design: module("channel_line"),
        contract: channel_claims::LINE,
        parameters: &[],
        steps: 16,
        sample,
    }
}

/// The size at which the complete design of version 2 is mutated.
const NODES: usize = 3;
const CHANNELS: usize = 2;

/// Returns these edges as inputs, and the model's outputs after each.
fn stimulus(mut machine: ChannelMachine, edges: &[Edge], wait: Option<Wait>) -> Stimulus {
    let (mut inputs, mut expected) = (String::new(), String::new());
    for (number, edge) in edges.iter().enumerate() {
        if let Some(wait) = wait.filter(|wait| wait.edge == number) {
            channels::wait(&mut machine, &edges[number - 1].pins, wait.bits);
        }
        let pins = edge.pins;
        let arrivals = pins.arrive[..CHANNELS].iter().rev();
        let arrivals: String = arrivals.map(|lines| in_bits(*lines, NODES)).collect();
        let serial = [pins.select, pins.clock, pins.data].map(|lines| in_bits(lines, NODES));
        let reset = u8::from(edge.reset);
        inputs += &format!("{reset}{arrivals}{}\n", serial.concat());
        channels::apply(&mut machine, edge);
        let released = in_bits(u64::from(machine.releases()), CHANNELS);
        expected += &format!("{released}{}\n", in_bits(machine.last_line(), NODES));
    }
    Stimulus {
        inputs,
        expected,
        wait,
    }
}

/// Returns the complete design of version 2 for 3 nodes and 2 channels, with its stimuli and the outputs of the model:
/// with `all` stimuli, or with those that suffice for a small sample.
fn version_2(sample: usize, all: bool) -> Played {
    let blank = ChannelMachine::new(NODES, CHANNELS).expect("a legal size");
    let blank = blank.with_lease_bits(LEASE_BITS);
    let usual = |edges: &Vec<Edge>| stimulus(blank, edges, None);
    let short = [
        channels::random(blank, 10_000),
        channels::saturating(blank),
        channels::directed(blank),
    ];
    let mut stimuli: Vec<Stimulus> = short.iter().map(usual).collect();
    if all {
        stimuli.extend(thorough(blank).iter().map(usual));
        for channel in 0..CHANNELS {
            for (bits, more) in (3..32).flat_map(|bits| [(bits, 0), (bits, 1)]) {
                let (edges, edge) = channels::long_barrier(blank, channel, bits, more);
                stimuli.push(stimulus(blank, &edges, Some(Wait { edge, bits })));
            }
        }
        stimuli.push(usual(&channels::every_bit(blank)));
    }
    Played {
        design: channel_claims::design(),
        play: Play {
            top: CHANNEL_TOP,
            parameters: vec![
                ("N", NODES),
                ("C", CHANNELS),
                ("LEASE_BITS", LEASE_BITS as usize),
            ],
            inputs: vec![
                bit("rst_i"),
                bits("arrive_i", CHANNELS * NODES),
                bits("select_i", NODES),
                bits("clock_i", NODES),
                bits("data_i", NODES),
            ],
            outputs: vec![bits("release_o", CHANNELS), bits("last_o", NODES)],
        },
        stimuli,
        sample,
    }
}

/// Returns the longer stimuli, the shortest first.
fn thorough(blank: ChannelMachine) -> Vec<Vec<Edge>> {
    let mix = Mix {
        seed: 1,
        reads: true,
        reset: 500,
    };
    vec![
        channels::exact_limits(blank),
        channels::every_channel(blank),
        channels::every_state(blank),
        channels::counts(blank),
        channels::random_mix(blank, 100_000, mix),
        channels::sessions(blank),
        channels::handovers(blank),
        channels::wrong_checks(blank),
        channels::drops(blank),
        channels::unquiet_claims(blank),
        channels::every_code(blank),
    ]
}

/// Determines the score, and returns the number of surviving mutants without a reason in [`KEPT`].
fn survivors(subject: &Subject) -> usize {
    unexplained(subject.design.top, || mutation::score(subject, &cache()))
}

/// Prints a score, and returns the number of survivors without a reason in [`KEPT`].
fn unexplained(top: &str, score: impl FnOnce() -> Result<Score, ToolError>) -> usize {
    let start = Instant::now();
    let Some(score) = or_skip(top, score()) else {
        return 0;
    };
    let matches = |mutant: &str, parts: &[&str]| parts.iter().all(|part| mutant.contains(part));
    let reason = |mutant: &str| KEPT.iter().find(|(parts, _)| matches(mutant, parts));
    let mut unexplained = 0;
    for mutant in &score.survivors {
        match reason(mutant) {
            Some((_, why)) => println!("{top}: kept: {mutant}: {why}"),
            None => {
                unexplained += 1;
                println!("{top}: survives: {mutant}");
            }
        }
    }
    let mutants = score.killed.len() + score.equivalent.len() + score.survivors.len();
    println!(
        "{top}: {} killed, {} equivalent, {} survive, {unexplained} of them unexplained; {:.2} s for each",
        score.killed.len(),
        score.equivalent.len(),
        score.survivors.len(),
        start.elapsed().as_secs_f64() / mutants.max(1) as f64,
    );
    assert!(!score.killed.is_empty(), "{top}: {score:?}");
    unexplained
}

#[test]
fn every_sampled_mutant_of_the_toggle_barrier_and_the_fronts_is_killed_or_equal() {
    assert_eq!(survivors(&toggle(60)), 0);
    for front in fronts(20) {
        assert_eq!(survivors(&front), 0);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_mutant_of_a_larger_sample_of_the_toggle_barrier_and_the_fronts_is_killed_or_equal() {
    let mut all = vec![toggle(200)];
    all.extend(fronts(150));
    for subject in &all {
        assert_eq!(survivors(subject), 0);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_mutant_of_the_eureka_line_and_of_the_serial_line_is_killed_or_equal() {
    for subject in [line(400), eureka(400)] {
        assert_eq!(survivors(&subject), 0);
    }
}

/// Prints the survivors; [`survivors`] requires only that some mutants are killed.
/// The contract omits the machine's limit and counters, which have separate proofs.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_mutation_score_of_the_register_block() {
    survivors(&registers(60));
}

#[test]
fn every_sampled_mutant_of_version_2_is_killed_or_equal() {
    let subject = version_2(12, false);
    let score = || subject.score(&cache());
    assert_eq!(unexplained("version 2", score), 0);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_mutant_of_a_larger_sample_of_version_2_is_killed_or_equal() {
    let subject = version_2(600, true);
    let score = || subject.score(&cache());
    assert_eq!(unexplained("version 2", score), 0);
}
