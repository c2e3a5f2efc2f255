//! Tests of jobs whose communicators use channels of a version 2 board.
//!
//! The board is simulated in shared memory, or connected by parallel ports.

use barrier_emulation::channels::ChannelBoard;
use hdl::tool::Tool;
use rustix::process::Signal;
use std::fs;
use tests::machines;
use tests::{Job, needs};
use xtask::workspace;

fn with_channels(job: Job, port: &str) -> Job {
    job.with(["--mca", "coll_hwbarr_version", "2"])
        .with(["--mca", "coll_hwbarr_port", port])
}

/// Returns the number that follows `name` in the simulator's report.
fn count(report: &str, name: &str) -> u64 {
    let (_, rest) = report
        .split_once(&format!("\"{name}\":"))
        .unwrap_or_else(|| panic!("no {name} in {report}"));
    let digits = rest
        .trim_start()
        .split(|c: char| !c.is_ascii_digit())
        .next();
    digits
        .and_then(|d| d.parse().ok())
        .unwrap_or_else(|| panic!("{name} is no number in {report}"))
}

/// The usual number of communicators that the program creates and frees after its others.
const GUESTS: u64 = 12;

/// Runs the program with many communicators over a simulated board, and returns the report.
fn synchronise(ranks: u32, port: &str, nodes: &str, guests: u64, parameters: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let job = Job::of("channels").ranks(ranks).with(parameters);
    with_channels(job.arg("0").arg(guests.to_string()), port)
        .with(["--mca", "coll_hwbarr_sim_nodes", nodes])
        .with([
            "--mca",
            "coll_hwbarr_sim_report",
            &report.display().to_string(),
        ])
        .holds();
    let report = fs::read_to_string(&report).unwrap();
    // At least one channel for MPI_COMM_WORLD, three for its duplicates, and one for each guest.
    let taken = count(&report, "channels_taken");
    assert!(taken >= 1 + 3 + guests, "{report}");
    assert_eq!(report.matches("\"members\": 0").count(), 5, "{report}");
    assert!(count(&report, "barriers") > 30, "{report}");
    report
}

#[test]
fn communicators_synchronise_over_channels_and_give_them_back() {
    for (ranks, nodes) in [(4, "0"), (6, "3"), (9, "0")] {
        synchronise(ranks, "sim", nodes, GUESTS, &[]);
    }
}

#[test]
fn communicators_synchronise_over_channels_of_the_rtl() {
    over_the_rtl(3);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn many_communicators_synchronise_over_channels_of_the_rtl() {
    over_the_rtl(GUESTS);
}

fn over_the_rtl(guests: u64) {
    let tools = [Tool::VERILATOR, Tool::CXX];
    if !tools
        .iter()
        .all(|tool| needs(tool.is_there(), tool.package))
    {
        return;
    }
    let cache = workspace::target().join("tmp/hdl").display().to_string();
    let cache = ["--mca", "coll_hwbarr_rtl_cache", &cache];
    let report = synchronise(4, "rtl", "0", guests, &cache);
    // The bits of all channel requests pass through the simulated RTL, in at least this number of clock edges.
    assert!(
        count(&report, "rtl_edges") > 88 * 8 * (4 + guests),
        "{report}"
    );
}

#[test]
fn a_node_that_comes_late_is_named_and_its_communicator_goes_on_in_software() {
    let job = Job::of("channels").ranks(4).arg("400");
    let outcome = with_channels(job, "sim")
        .with(["--mca", "coll_hwbarr_timeout", "100ms"])
        .holds();
    let said: Vec<_> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("goes on in software"))
        .collect();
    assert_eq!(said.len(), 1, "{}", outcome.stderr);
    assert!(
        said[0].contains("node 3 (rank 3) has not entered"),
        "{said:?}"
    );
}

type Machines = machines::Machines<ChannelBoard>;

#[test]
fn communicators_have_channels_over_parallel_ports() {
    over_parallel_ports("3");
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn many_communicators_have_channels_over_parallel_ports() {
    over_parallel_ports("12");
}

fn over_parallel_ports(guests: &str) {
    if let Some(machines) = Machines::new() {
        machines.job("channels").arg("0").arg(guests).holds();
        // All nodes may send requests at the same time for seconds, so a channel may stay taken;
        // the next job frees the channel.
        machines.pass_fifty_barriers();
    }
}

#[test]
fn channels_of_a_job_that_was_killed_are_given_back_by_the_next() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let outcome = machines.job("in_barrier").arg("kill").run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    machines.pass_fifty_barriers();
    let job = machines.job("in_barrier").start();
    machines.wait_for_arrivals();
    job.signal(Signal::TERM);
    job.wait();
    machines.pass_fifty_barriers();
}
