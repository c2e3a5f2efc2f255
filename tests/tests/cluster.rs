//! Tests on a cluster of four simulated hosts with several ranks each and a hardware barrier.
//!
//! `hwbarr serve` on one of the hosts serves the board.
//! The hosts are network namespaces of this machine.
//! Ranks use shared memory within a host, and TCP over a bridge between hosts.

use tests::hosts::Hosts;
use tests::served::Server;

const HOSTS: u32 = 4;

/// Ranks per host in the large test: sixty ranks in total, as in the paper of 2005 (Hoefler et al.).
const MANY: u32 = 15;
/// Ranks per host of the other programs: still more ranks than cores,
/// with channels for communicators of several sizes.
const FEW: u32 = 4;
/// Ranks per host of the programs with many barriers in the short form.
const TWO: u32 = 2;

/// The version of the served board.
#[derive(Clone, Copy)]
enum Board {
    /// Version 1: each rank is a node, and only MPI_COMM_WORLD uses the hardware barrier.
    OfRanks,
    /// Version 2: each host is a node, and any communicator may have a channel.
    /// The ranks of a host synchronise in shared memory.
    OfHosts,
}

impl Board {
    fn arguments(self, each: u32) -> Vec<String> {
        match self {
            Board::OfRanks => vec!["--nodes".into(), (HOSTS * each).to_string()],
            Board::OfHosts => vec!["--channels".into(), "--nodes".into(), HOSTS.to_string()],
        }
    }

    fn version(self) -> &'static str {
        match self {
            Board::OfRanks => "1",
            Board::OfHosts => "2",
        }
    }
}

/// Runs one job after the other, each given by a program and its arguments, with `each` ranks per host.
fn hold(board: Board, each: u32, programs: &[&[&str]]) {
    let Some(hosts) = Hosts::new(HOSTS) else {
        return;
    };
    let hosts = hosts.network(0, &[1500]);
    let server = Server::on(&hosts, 0, &board.arguments(each));
    for words in programs {
        let before = server.releases_seen_from(&hosts, 1);
        let (program, arguments) = words.split_first().expect("a program");
        let job = hosts
            .job(program, each)
            .with(["--mca", "coll_hwbarr_version", board.version()])
            .with(["--mca", "coll_hwbarr_port", &server.address])
            .limit(300);
        let outcome = arguments
            .iter()
            .fold(job, |job, word| job.arg(word))
            .succeeds();
        let line = format!("all claims of {program} hold on {} ranks", HOSTS * each);
        let (said, warned) = (&outcome.stdout, &outcome.stderr);
        assert!(said.lines().any(|l| l == line), "{said}\n{warned}");
        assert!(!warned.contains("goes on in software"), "{warned}");
        // This count includes the releases of the self-test.
        let made = server.releases_seen_from(&hosts, 1) - before;
        assert!(made > 2, "{program}: {made} releases");
    }
}

#[test]
fn sixty_ranks_on_four_hosts_pass_messages_and_the_served_barrier() {
    hold(Board::OfRanks, MANY, &[&["ring"]]);
}

#[test]
fn ranks_on_four_hosts_agree_in_collectives() {
    hold(Board::OfRanks, FEW, &[&["collectives", "10"]]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn sixty_ranks_on_four_hosts_agree_in_collectives() {
    hold(Board::OfRanks, MANY, &[&["collectives", "10"]]);
}

/// The test `programs_with_many_barriers_hold_on_ranks_of_four_hosts` checks the same with fewer ranks per host.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn four_hosts_are_the_nodes_of_a_served_board_and_communicators_have_its_channels() {
    hold(Board::OfHosts, MANY, &[&["barrier_loop", "30", "0"]]);
}

/// The programs make many barriers and run on both board versions.
#[test]
fn programs_with_many_barriers_hold_on_ranks_of_four_hosts() {
    hold(Board::OfHosts, TWO, &BARRIERS);
    hold(Board::OfRanks, TWO, &BARRIERS);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn programs_with_many_barriers_hold_on_more_ranks_of_four_hosts() {
    hold(Board::OfHosts, FEW, &BARRIERS);
    hold(Board::OfRanks, FEW, &BARRIERS);
}

const BARRIERS: [&[&str]; 3] = [&["sessions"], &["lives"], &["barrier_loop", "100", "0"]];

/// All programs of messages and collectives that run on several hosts.
/// `communicators` requires all ranks on one machine.
/// Only barriers depend on the board, so one board version is used.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_program_holds_on_ranks_of_four_hosts() {
    let programs: [&[&str]; 15] = [
        &["hello"],
        &["ring"],
        &["sendrecv"],
        &["late_send"],
        &["wildcard"],
        &["probe"],
        &["requests"],
        &["partitioned"],
        &["datatypes"],
        &["collectives", "100"],
        &["operators"],
        &["intercommunicators"],
        &["topologies"],
        &["neighbors"],
        &["errors"],
    ];
    hold(Board::OfHosts, FEW, &programs);
}
