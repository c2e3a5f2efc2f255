//! Tests that build the boards' bitstreams and check that each meets its clock constraint with a margin.
//!
//! `cargo xtask fpga` also builds the targets that are no boards.

mod common;

use common::{cache, each, or_skip};
use hdl::board_claims;
use hdl::formal::{self, Verdict};
use hdl::fpga::{self, Target};
use std::collections::BTreeSet;

fn boards() -> impl Iterator<Item = &'static Target> {
    fpga::TARGETS.iter().filter(|target| target.pins.is_some())
}

#[test]
fn a_board_of_each_family_gets_a_bitstream_that_meets_its_clock() {
    let mut families = BTreeSet::new();
    let one_of_each: Vec<_> = boards()
        .filter(|board| families.insert(format!("{:?}", board.family)))
        .collect();
    meet_their_clocks(&one_of_each);
}

#[test]
fn a_boards_start_pulse_has_its_width_for_any_level() {
    let verdict = formal::decide(
        &board_claims::start_design(),
        &board_claims::START,
        &cache(),
    );
    let Some(verdict) = or_skip("the boards' start pulse", verdict) else {
        return;
    };
    assert!(matches!(verdict, Verdict::Proved { .. }), "{verdict:?}");
    for mutant in board_claims::START_MUTANTS {
        let design = board_claims::start_design().mutated(*mutant);
        let design = design.expect("one place");
        let verdict = formal::decide(&design, &board_claims::START, &cache());
        if let Some(verdict) = or_skip(mutant.fault, verdict) {
            assert_eq!(verdict, Verdict::Refuted, "{}", mutant.fault);
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_board_gets_a_bitstream_that_meets_its_clock() {
    meet_their_clocks(&boards().collect::<Vec<_>>());
}

fn meet_their_clocks(boards: &[&Target]) {
    each(boards, |target| {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(report) = or_skip(target.name, fpga::build(target, folder.path())) else {
            return;
        };
        println!("{}: {report:?}", target.name);
        assert!(report.bytes > 0);
        let slowest = report.fmax_mhz.min(report.icetime_mhz.unwrap_or(f64::MAX));
        assert!(slowest > target.clock_mhz, "{}: {report:?}", target.name);
        assert!(
            report.flip_flops > 2 * target.wires,
            "two stages for each of {} wires, and the machine: {report:?}",
            target.wires
        );
    });
}
