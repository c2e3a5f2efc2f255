//! Tests of `mpirun --explain` and `mpi-info --explain`, which print the selected components.
//!
//! Both commands also print why each other component was not selected.

use std::process::Command;
use std::time::Duration;
use tests::hosts::Hosts;
use tests::{Job, compile, installation};
use xtask::process;

/// Returns the lines that `--explain` prints for a job, except those that differ between machines.
fn explained(job: Job) -> Vec<String> {
    let outcome = job.with(["--explain"]).succeeds();
    let lines = outcome.stderr.lines();
    lines
        .filter_map(|line| line.split_once("explain: "))
        .map(|(_, fact)| fact.to_string())
        .collect()
}

#[track_caller]
fn one(facts: &[String], begin: &str) -> String {
    let found: Vec<&String> = facts
        .iter()
        .filter(|fact| fact.starts_with(begin))
        .collect();
    match found.as_slice() {
        [one] => one.to_string(),
        _ => panic!(
            "{} facts begin with {begin:?} in:\n{}",
            found.len(),
            facts.join("\n")
        ),
    }
}

#[test]
fn a_job_explains_its_transports_its_waiting_and_its_copies() {
    let facts = explained(Job::of("hello").ranks(3).with(["--mca", "btl", "self,sm"]));
    assert_eq!(
        one(&facts, "parameter btl "),
        "parameter btl = self,sm (command line)"
    );
    let by_sm = "btl: rank 0 reaches ranks 1-2 by sm (not by self: ";
    assert!(
        one(&facts, "btl: rank 0 reaches ranks").starts_with(by_sm),
        "{facts:?}"
    );
    assert_eq!(
        one(&facts, "btl: rank 0 reaches rank 0"),
        "btl: rank 0 reaches rank 0 by self"
    );
    assert!(one(&facts, "waiting: ").contains("3 ranks on"));
    assert!(one(&facts, "copy: ").starts_with("copy: long messages of ranks 1-2 "));
    let tuned = one(&facts, "coll on MPI_COMM_WORLD: tuned does ");
    assert!(tuned.contains("; bcast by binomial"), "{tuned}");
    let shm = one(&facts, "coll on MPI_COMM_WORLD: shm does barrier by ");
    for part in ["; bcast by cells up to ", "; allreduce by cells up to "] {
        assert!(shm.contains(part), "{shm}");
    }
}

#[test]
fn the_hardware_barrier_explains_its_port_its_wires_and_its_test() {
    let job = Job::of("hello").ranks(3);
    let facts = explained(job.with(["--mca", "coll_hwbarr_port", "sim"]));
    assert_eq!(
        one(&facts, "coll on MPI_COMM_WORLD: hwbarr: "),
        "coll on MPI_COMM_WORLD: hwbarr: port sim, 3 wires, opened and found idle by all; the self-test with a late node was passed"
    );
    let plain = Job::of("hello")
        .ranks(3)
        .with(["--mca", "coll_hwbarr_port", "sim"])
        .succeeds();
    assert!(!plain.stderr.contains("port sim"), "{}", plain.stderr);
}

#[test]
fn over_two_hosts_the_levels_are_explained_with_the_component_of_each() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let facts = explained(hosts.remote_job(&compile("hello"), 2));
    let han = one(&facts, "coll on MPI_COMM_WORLD: han does ");
    let levels = "barrier by levels (shm, then tuned, then basic inside a node of 2 \
                  and tuned, then basic between 2 leaders); ";
    assert!(han.contains(levels), "{han}");
    assert!(
        han.contains("; gather by levels of up to 512 bytes (shm, "),
        "{han}"
    );
}

#[test]
fn rank_0_speaks_for_all_and_once() {
    let explained = |ranks| explained(Job::of("copies_of_self").ranks(ranks));
    let (one, six) = (explained(1), explained(6));
    let of_copies = |facts: &[String]| {
        let copies = facts.iter().filter(|fact| fact.contains(" 1 processes:"));
        copies.count()
    };
    assert!(of_copies(&one) > 0, "{one:?}");
    assert_eq!(of_copies(&six), of_copies(&one), "{six:?}");
    // The LD_PRELOAD library is in the plugin folder, too, and must not be reported.
    let not_said = ["MPI_COMM_SELF", "is not a plugin"];
    let found = six
        .iter()
        .find(|fact| not_said.iter().any(|part| fact.contains(part)));
    assert_eq!(found, None);
}

#[test]
fn later_communicators_are_reported_too() {
    let facts = explained(Job::of("communicators").ranks(2));
    let others = facts
        .iter()
        .filter(|fact| fact.starts_with("coll on ") && !fact.contains("MPI_COMM_WORLD:"));
    assert!(others.count() > 0, "{facts:?}");
}

#[test]
fn mpi_info_explains_an_operation_of_this_installation() {
    let mut command = Command::new(installation().join("bin/mpi-info"));
    command.args(["--explain", "coll", "allreduce"]);
    let told =
        process::output(&mut command, Duration::from_secs(10)).unwrap_or_else(|e| panic!("{e}"));
    let told = told.stdout;
    assert!(told.contains("MPI_Allreduce"), "{told}");
    assert!(told.contains("rabenseifner for "), "{told}");
}
