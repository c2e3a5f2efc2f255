//! Tests of the proofs of both versions: every claim is proved, every mutant is refuted.

mod common;

use std::collections::BTreeSet;

use common::{cache, each, or_skip};
use hdl::formal::{self, Claim, Design, Mutant, Verdict};
use hdl::{board_claims, channel_claims, eureka_claims, register_claims, toggle_claims};

fn decide(sentence: &str, design: &Design, claim: &Claim) -> Option<Verdict> {
    let verdict = or_skip(sentence, formal::decide(design, claim, &cache()))?;
    println!("{sentence}: {verdict:?}");
    Some(verdict)
}

fn proved(design: &Design, claims: &[(&str, Claim)]) {
    each(claims, |(sentence, claim)| {
        if let Some(verdict) = decide(sentence, design, claim) {
            let proved = matches!(verdict, Verdict::Proved { .. });
            assert!(proved, "{sentence}: {verdict:?}");
        }
    });
}

fn refuted(design: &Design, mutants: &[(Mutant, Claim)], hazards: &[(&str, Claim)]) {
    each(mutants, |(mutant, claim)| {
        let broken = design.clone().mutated(*mutant).expect("one place to break");
        if let Some(verdict) = decide(mutant.fault, &broken, claim) {
            assert_eq!(verdict, Verdict::Refuted, "{}", mutant.fault);
        }
    });
    each(hazards, |(sentence, claim)| {
        if let Some(verdict) = decide(sentence, design, claim) {
            assert_eq!(verdict, Verdict::Refuted, "{sentence}");
        }
    });
}

fn one_per_verilog_file(mutants: &[(Mutant, Claim)]) -> Vec<(Mutant, Claim)> {
    let mut files = BTreeSet::new();
    let mutants = mutants.iter().copied();
    mutants
        .filter(|(mutant, _)| !mutant.file.ends_with(".vhd") && files.insert(mutant.file))
        .collect()
}

#[test]
fn every_claim_about_the_toggle_barrier_is_proved() {
    proved(&Design::toggle_barrier(), toggle_claims::CLAIMS);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_toggle_barrier_keeps_its_claims_at_full_width() {
    proved(&Design::toggle_barrier(), toggle_claims::LONG_CLAIMS);
}

/// Refutes one mutant per file of the design; with `--long` another test refutes all mutants.
#[test]
fn a_broken_file_of_the_toggle_barrier_is_refuted() {
    let one_of_each = one_per_verilog_file(toggle_claims::MUTANTS);
    refuted(&Design::toggle_barrier(), &one_of_each, &[]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_broken_toggle_barrier_is_refuted_and_what_hardware_cannot_cure_is_known() {
    refuted(
        &Design::toggle_barrier(),
        toggle_claims::MUTANTS,
        toggle_claims::HAZARDS,
    );
}

#[test]
fn every_claim_about_cascaded_boards_is_proved() {
    proved(&Design::toggle_barrier(), board_claims::CLAIMS);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_board_of_60_nodes_keeps_its_contract() {
    proved(&Design::toggle_barrier(), board_claims::LONG_CLAIMS);
}

#[test]
fn broken_boards_and_wrongly_plugged_ones_are_refuted() {
    refuted(
        &Design::toggle_barrier(),
        board_claims::MUTANTS,
        board_claims::HAZARDS,
    );
}

#[test]
fn every_claim_about_the_eureka_line_is_proved() {
    proved(&eureka_claims::design(), eureka_claims::CLAIMS);
}

/// Refutes one mutant per Verilog file; with `--long` another test refutes all mutants.
#[test]
fn a_broken_file_of_the_eureka_line_is_refuted() {
    let one_of_each = one_per_verilog_file(eureka_claims::MUTANTS);
    refuted(&eureka_claims::design(), &one_of_each, &[]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_eureka_line_keeps_its_claims_at_full_width_and_every_broken_one_is_refuted() {
    let design = eureka_claims::design();
    proved(&design, eureka_claims::LONG_CLAIMS);
    refuted(&design, eureka_claims::MUTANTS, &[]);
}

#[test]
fn every_claim_about_the_channels_is_proved() {
    proved(&channel_claims::design(), channel_claims::CLAIMS);
}

/// Runs the longest proofs: the claims of the other proofs at larger sizes.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_channels_and_their_other_descriptions_keep_the_claims_at_full_width() {
    proved(&channel_claims::design(), channel_claims::LONG_CLAIMS);
}

/// Refutes one mutant per Verilog file; a VHDL mutant takes ten times as long.
/// With `--long` another test refutes all mutants.
#[test]
fn a_broken_file_of_the_channels_is_refuted() {
    let one_of_each = one_per_verilog_file(channel_claims::MUTANTS);
    assert!(one_of_each.len() > 2);
    refuted(&channel_claims::design(), &one_of_each, &[]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_broken_channel_is_refuted_and_the_rule_of_rest_is_needed() {
    refuted(
        &channel_claims::design(),
        channel_claims::MUTANTS,
        channel_claims::HAZARDS,
    );
}

#[test]
fn every_claim_about_the_register_block_is_proved() {
    proved(&register_claims::design(), register_claims::CLAIMS);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_register_block_keeps_its_contract_at_larger_sizes_and_all_mutants_are_refuted() {
    let design = register_claims::design();
    proved(&design, register_claims::LONG_CLAIMS);
    refuted(&design, register_claims::MUTANTS, &[]);
}

#[test]
fn every_front_keeps_the_contract_of_its_bus_and_a_broken_one_is_refuted() {
    for bus in register_claims::BUSES {
        let front = bus.front_alone();
        proved(&front, &bus.claims());
        refuted(&front, &bus.mutants()[..1], &[]);
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_broken_front_is_refuted() {
    for bus in register_claims::BUSES {
        refuted(&bus.front_alone(), &bus.mutants(), &[]);
    }
}
