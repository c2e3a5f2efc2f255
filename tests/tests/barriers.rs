//! Tests of `MPI_Barrier` with every component: no rank leaves before all ranks have entered.
//! With hardware components, the FPGA model must count as many barriers as the program made.

use std::fs;

use tests::{Job, Outcome};
use xtask::demo::{Report, number, simulator_arguments, without};

const SIZES: [u32; 3] = [2, 7, 60];

fn on_the_simulator(ranks: u32, barriers: &str, delay: &str) -> (Outcome, u64) {
    let folder = tempfile::tempdir().unwrap();
    let (waveform, report) = (
        folder.path().join("wires.vcd"),
        folder.path().join("report"),
    );
    let outcome = Job::of("barrier_loop")
        .with(simulator_arguments(&waveform, &report))
        .ranks(ranks)
        .arg(barriers)
        .arg(delay)
        .holds();
    let counted = Report::read(&report)
        .unwrap_or_else(|e| panic!("{e}"))
        .releases;
    assert!(
        fs::read_to_string(&waveform)
            .unwrap()
            .contains("$enddefinitions"),
        "the waveform is no VCD"
    );
    (outcome, counted)
}

#[test]
fn the_model_counts_exactly_the_barriers_that_the_program_made() {
    for ranks in SIZES {
        let (outcome, counted) = on_the_simulator(ranks, "200", "0");
        assert_eq!(
            counted,
            number(&outcome.stdout, "barriers").unwrap() as u64,
            "{ranks} ranks"
        );
    }
}

#[test]
fn no_rank_leaves_the_hardware_barrier_before_all_have_entered() {
    for ranks in SIZES {
        on_the_simulator(ranks, "100", "300");
    }
}

fn by_software(components: &str) {
    for ranks in SIZES {
        Job::of("barrier_loop")
            .with(without(components))
            .ranks(ranks)
            .arg("100")
            .arg("300")
            .holds();
    }
}

#[test]
fn no_rank_leaves_the_shared_memory_barrier_before_all_have_entered() {
    by_software("hwbarr");
}

#[test]
fn no_rank_leaves_the_dissemination_barrier_before_all_have_entered() {
    by_software("hwbarr,shm");
}

#[test]
fn a_large_send_is_served_while_its_sender_waits_in_any_barrier() {
    let folder = tempfile::tempdir().unwrap();
    let simulator = simulator_arguments(
        &folder.path().join("wires.vcd"),
        &folder.path().join("report"),
    );
    for arguments in [simulator, without("hwbarr"), without("hwbarr,shm")] {
        Job::of("late_send").with(arguments).ranks(6).holds();
    }
}
