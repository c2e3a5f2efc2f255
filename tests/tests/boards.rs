//! Tests of jobs whose ranks are distributed over several simulated boards (`coll_hwbarr_boards`).
//!
//! The boards are cascaded: one root board combines the signals of the other boards.

use rustix::process::Signal;
use tests::Job;
use tests::job::send;
use xtask::demo::{Report, number, parameters};

fn on_boards(job: Job, boards: &str) -> Job {
    job.with(["--mca", parameters::PORT, "sim"])
        .with(["--mca", "coll_hwbarr_boards", boards])
}

#[test]
fn the_barriers_of_a_program_are_released_by_the_root() {
    // The cases: boards with three nodes, with two nodes, with a partly used board, with one node each,
    // and more ranks than one board has wires.
    for (ranks, boards, barriers) in [
        (6, "2", "200"),
        (6, "3", "200"),
        (5, "3", "200"),
        (3, "9", "200"),
        (66, "2", "20"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report");
        let outcome = on_boards(Job::of("barrier_loop"), boards)
            .with(["--mca", parameters::REPORT, &file.display().to_string()])
            .ranks(ranks)
            .arg(barriers)
            .arg("300")
            .holds();
        let report = Report::read(&file).unwrap_or_else(|e| panic!("{e}"));
        let made = number(&outcome.stdout, "barriers").unwrap() as u64;
        assert_eq!(report.releases, made, "{ranks} ranks on {boards} boards");
    }
}

#[test]
fn a_rank_that_is_killed_on_boards_leaves_nothing_behind() {
    let job = on_boards(Job::of("leave"), "2")
        .arg("wait")
        .arg("1")
        .ranks(4)
        .start();
    send(job.ready(4)[1], Signal::KILL);
    assert_eq!(job.wait().status.code(), Some(128 + 9));
}

#[test]
fn a_node_that_comes_late_is_named_and_the_job_goes_on_in_software() {
    let outcome = on_boards(Job::of("in_barrier"), "3")
        .with(["--mca", "coll_hwbarr_timeout", "100ms"])
        .arg("late")
        .arg("4")
        .ranks(6)
        .holds();
    let mut said = outcome.stderr.lines();
    let said = said.find(|line| line.contains("goes on in software"));
    let said = said.unwrap_or_else(|| panic!("nothing is said: {}", outcome.stderr));
    assert!(said.contains("the hardware barrier of 6 nodes"), "{said}");
    assert!(said.contains("node 4 has not entered"), "{said}");
}
