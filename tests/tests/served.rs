//! Tests of jobs over a board that `hwbarr serve` serves, also if the server fails.

use barrier_board::served::Address;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tests::Job;
use tests::served::Server;

/// A time limit, much longer than any step of these tests takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until the board has released `wanted` barriers.
fn wait_for_releases(server: &Server, wanted: u64) {
    let begin = Instant::now();
    while server.releases() < wanted {
        assert!(begin.elapsed() < LIMIT, "{} releases", server.releases());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn job(address: &str, ranks: u32, barriers: &str, delay: &str) -> Job {
    Job::of("barrier_loop")
        .with(["--mca", "coll_hwbarr_port", address])
        .ranks(ranks)
        .arg(barriers)
        .arg(delay)
}

#[test]
fn jobs_pass_their_barriers_over_a_served_board_one_after_the_other() {
    let server = Server::new(&["--nodes", "4"]);
    for _ in 0..2 {
        let before = server.releases();
        job(&server.address, 4, "100", "200").holds();
        // Besides the loop's 100 barriers, the program makes two and the self-test two.
        assert_eq!(server.releases() - before, 104);
    }
}

#[test]
fn a_board_for_another_number_of_ranks_is_refused_and_software_serves() {
    let server = Server::new(&["--nodes", "4"]);
    for ranks in [3, 5] {
        let outcome = job(&server.address, ranks, "20", "0")
            .with(["--explain"])
            .holds();
        let said = format!("has 4 nodes, and {ranks} are needed");
        let all = outcome.stdout + &outcome.stderr;
        assert!(all.contains(&said), "{all}");
    }
    assert_eq!(server.releases(), 0);
}

#[test]
fn without_a_server_software_serves_and_the_address_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = Address::from(free.expect("a free port")).to_string();
    let outcome = job(&address, 4, "20", "0").with(["--explain"]).holds();
    let all = outcome.stdout + &outcome.stderr;
    assert!(
        all.contains(&format!("no board can be reached at {address}")),
        "{all}"
    );
}

/// Runs a job whose server is stopped meanwhile, and returns the job's warnings;
/// `version` is the version of the board.
fn warnings_over_a_frozen_server(version: &str, board: &[&str]) -> Vec<String> {
    let server = Server::new(board);
    let running = job(&server.address, 4, "600", "2000")
        .with(["--mca", "coll_hwbarr_version", version])
        .with(["--mca", "coll_hwbarr_sim_nodes", "4"])
        .with(["--mca", "coll_hwbarr_timeout", "2s"])
        .start();
    wait_for_releases(&server, 12);
    server.freeze();
    let outcome = running.wait();
    assert!(outcome.status.success(), "{}", outcome.stderr);
    let line = "all claims of barrier_loop hold on 4 ranks";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    let said = outcome.stderr.lines();
    let said = said.filter(|line| line.contains("warning"));
    let said: Vec<_> = said
        .map(|line| line.replace(&server.address, "BOARD"))
        .collect();
    said
}

#[test]
fn a_server_that_is_stopped_in_the_middle_is_one_warning_that_names_the_board() {
    for (version, board) in [
        ("1", &["--nodes", "4"][..]),
        ("2", &["--nodes", "4", "--channels"][..]),
    ] {
        let said = warnings_over_a_frozen_server(version, board);
        let [line] = &said[..] else {
            panic!("version {version}: {said:#?}");
        };
        assert!(
            line.starts_with("[rank 0 of MPI_COMM_WORLD] coll hwbarr: warning: the hardware barrier of 4 nodes is lost at rank ")
                && line.contains(": the board at BOARD has not answered node ")
                && line.ends_with("; MPI_COMM_WORLD goes on in software"),
            "version {version}: {line}"
        );
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_is_one_warning_and_software_serves() {
    let server = Server::new(&["--nodes", "4"]);
    let running = job(&server.address, 4, "600", "2000").start();
    // The self-test has fewer than twelve barriers, so the program's loop has begun.
    wait_for_releases(&server, 12);
    drop(server);
    let outcome = running.wait();
    assert!(outcome.status.success(), "{}", outcome.stderr);
    let line = "all claims of barrier_loop hold on 4 ranks";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    let said: Vec<_> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("goes on in software"))
        .collect();
    assert_eq!(said.len(), 1, "{}", outcome.stderr);
    assert!(
        said[0].contains("the hardware barrier of 4 nodes is lost at rank "),
        "{said:?}"
    );
}
