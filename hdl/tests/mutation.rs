//! Tests of the contracts: they detect every mutant of a sample that is not equivalent to its design.

mod common;

use common::{cache, or_skip};
use hdl::formal::Design;
use hdl::mutation::{self, Subject};
use hdl::{channel_claims, eureka_claims, register_claims, toggle_claims};
use std::time::Instant;

/// Mutants that may survive: parts of yosys' description, and the reason.
const KEPT: &[(&[&str], &str)] = &[(
    &["-mode const1", "-module apb_front", "-wire psel_i"],
    "PSEL tied to 1 differs only while PENABLE is 1 without PSEL, which the bus forbids",
)];

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

fn machine(sample: usize) -> Subject {
    Subject {
        design: module("channel_machine"),
        contract: channel_claims::PROTOCOL,
        parameters: &[("N", 2)],
        steps: 12,
        sample,
    }
}

fn command(sample: usize) -> Subject {
    Subject {
        design: module("channel_command"),
        contract: channel_claims::RULES,
        parameters: &[("N", 2), ("C", 2), ("MAJORITY", 1)],
        steps: 8,
        sample,
    }
}

/// Determines the score, and returns the number of surviving mutants without a reason in [`KEPT`].
fn survivors(subject: &Subject) -> usize {
    let top = subject.design.top;
    let start = Instant::now();
    let score = or_skip(top, mutation::score(subject, &cache()));
    let Some(score) = score else {
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
    let mutants = score.killed + score.equivalent + score.survivors.len();
    println!(
        "{top}: {} killed, {} equivalent, {} survive, {unexplained} of them unexplained; {:.2} s for each",
        score.killed,
        score.equivalent,
        score.survivors.len(),
        start.elapsed().as_secs_f64() / mutants.max(1) as f64,
    );
    assert!(score.killed > 0, "{top}: {score:?}");
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
fn the_mutation_score_of_a_larger_sample() {
    let mut all = vec![toggle(200)];
    all.extend(fronts(150));
    for subject in &all {
        assert_eq!(survivors(subject), 0);
    }
    // This contract omits the machine's limit and counters, which have separate proofs.
    survivors(&registers(60));
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_mutant_of_the_eureka_line_and_of_the_serial_line_is_killed_or_equal() {
    for subject in [line(400), eureka(400)] {
        assert_eq!(survivors(&subject), 0);
    }
}

/// Prints the survivors; [`survivors`] requires only that some mutants are killed.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_mutation_score_of_the_commands_of_version_2() {
    survivors(&command(60));
}

/// Prints the survivors, like the test of the commands.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_mutation_score_of_the_machine_of_version_2() {
    survivors(&machine(100));
}
