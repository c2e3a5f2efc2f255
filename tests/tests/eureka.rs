//! Tests of the eureka line in jobs: simulated, served, in the node's shared memory, or unavailable.

use barrier_board::served::{Address, BoardObserver};
use std::fs;
use tests::hosts::Hosts;
use tests::served::Server;
use tests::{Job, compile};

fn job(port: &str, ranks: u32, rounds: &str) -> Job {
    let job = Job::of("eureka").ranks(ranks).arg("line").arg(rounds);
    match port {
        "none" => job,
        port => job.with(["--mca", "coll_hwbarr_port", port]),
    }
}

/// Returns the number that follows `name` in the simulator's report.
fn count(report: &str, name: &str) -> u64 {
    let (_, rest) = report.split_once(&format!("\"{name}\":")).expect("there");
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).expect("an end");
    rest[..end].parse().expect("a number")
}

#[test]
fn ranks_read_it_in_the_memory_of_their_node() {
    for ranks in [1, 2, 3, 7] {
        job("none", ranks, "100").holds();
    }
    job("none", 60, "8").limit(300).holds();
}

#[test]
fn ranks_read_it_over_the_simulators_line() {
    for ranks in [2, 3, 7] {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report").display().to_string();
        let outcome = job("sim", ranks, "60")
            .with(["--mca", "coll_hwbarr_sim_report", &report, "--explain"])
            .holds();
        let said = outcome.stdout + &outcome.stderr;
        assert!(
            said.contains("the eureka line beside the barrier, opened"),
            "{said}"
        );
        // Each round begins and ends with a hardware barrier.
        let report = fs::read_to_string(report).expect("written");
        assert!(count(&report, "barriers") > 2 * 60, "{report}");
        assert_eq!(count(&report, "releases"), count(&report, "barriers"));
    }
    job("sim", 60, "6").limit(300).holds();
}

#[test]
fn barriers_that_go_there_and_back_leave_rounds_to_the_memory() {
    job("sim", 3, "20")
        .with(["--mca", "coll_hwbarr_reboot", "high"])
        .holds();
}

#[test]
fn hardware_without_a_line_leaves_it_to_the_memory() {
    job("sim", 4, "20")
        .with(["--mca", "coll_hwbarr_boards", "2"])
        .holds();
    job("sim", 4, "20")
        .with(["--mca", "coll_hwbarr_version", "2"])
        .holds();
}

#[test]
fn ranks_read_it_over_a_served_line() {
    for ranks in [2, 5, 60] {
        let server = Server::new(&["--nodes", &ranks.to_string()]);
        let rounds = if ranks > 8 { "4" } else { "40" };
        job(&server.address, ranks, rounds).limit(300).holds();
        let address: Address = server.address.parse().expect("an address");
        let mut observer = BoardObserver::connect(&address).expect("served");
        // The last round was still open at the end of the job,
        // and no rank had raised the line in it.
        let line = observer.eureka_line().expect("served").expect("a line");
        assert!(!line.found, "{line:?}");
        assert!(observer.look().expect("served").board.releases > 20);
    }
}

#[test]
fn the_waveform_shows_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let vcd = folder.path().join("wires.vcd");
    job("sim", 3, "8")
        .with(["--mca", "coll_hwbarr_sim_vcd", &vcd.display().to_string()])
        .holds();
    let read = |ending: &str| fs::read_to_string(vcd.with_extension(ending)).expect("written");
    let (dump, save, commands) = (read("vcd"), read("gtkw"), read("sucl"));
    for signal in ["found", "first", "says"] {
        assert!(dump.contains(&format!(" {signal} ")), "{signal}");
    }
    assert!(save.contains("+{eureka line} barrier.found\n"), "{save}");
    assert!(commands.contains("barrier.node02.says"), "{commands}");
    // In the recorded signal, the line falls as often as it rises.
    let id = dump
        .lines()
        .find(|line| line.contains(" found "))
        .and_then(|line| line.split_whitespace().nth(3))
        .expect("declared");
    let changes = |level: char| {
        let line = format!("{level}{id}");
        dump.lines().filter(|change| *change == line).count()
    };
    // Six of the eight rounds raise the line;
    // the tests with forwarded messages and with barriers raise it once each.
    assert_eq!(changes('1'), 6 + 2);
    // The dump begins with the initial level, low.
    assert_eq!(changes('0'), 1 + 6 + 2);
}

#[test]
fn ranks_of_two_hosts_have_a_line_if_a_board_is_served_and_else_get_the_reason() {
    let Some(hosts) = Hosts::new(2).map(|hosts| hosts.network(0, &[1500])) else {
        return;
    };
    let program = compile("eureka");
    let outcome = hosts.remote_job(&program, 2).arg("none").holds();
    let why = "has no eureka line: no hardware barrier with one serves it, and not all members share the memory of one node";
    assert!(outcome.stdout.contains(why), "{}", outcome.stdout);

    let server = Server::on(&hosts, 0, &["--nodes", "4"]);
    let job = hosts.remote_job(&program, 2);
    job.with(["--mca", "coll_hwbarr_port", &server.address])
        .arg("world")
        .holds();
}

#[test]
fn a_rank_that_dies_leaves_no_other_looking_for_ever() {
    for port in ["none", "sim"] {
        let outcome = Job::of("eureka")
            .ranks(4)
            .with(["--with-ft", "ulfm", "--mca", "coll_hwbarr_port", port])
            .arg("death")
            .run();
        let said = "the living have had their rounds";
        assert!(outcome.stdout.contains(said), "{port}: {}", outcome.stderr);
    }
}

#[test]
fn a_recorded_run_reports_that_polls_of_the_line_are_not_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = Job::of("eureka")
        .ranks(2)
        .with([
            "--record",
            &folder.path().join("record").display().to_string(),
        ])
        .arg("recorded")
        .holds();
    let why = "what MPIX_Eureka_test finds is not recorded";
    assert!(outcome.stdout.contains(why), "{}", outcome.stdout);
}
