//! Real jobs over a board that `hwbarr serve` serves, and what becomes of them without it.

use sim::served::{Address, Onlooker};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tests::{Job, installation};

/// Far longer than anything here takes on the busiest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A server that is killed when it is dropped, whatever the reason.
struct Server {
    process: Child,
    address: String,
    /// Kept open, for the server writes a log.
    log: BufReader<ChildStdout>,
}

impl Server {
    fn of(nodes: u32) -> Self {
        let mut process = Command::new(installation().join("bin/hwbarr"))
            .args(["serve", "--listen", "127.0.0.1:0", "--nodes"])
            .arg(nodes.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("hwbarr starts");
        let log = process.stdout.take().expect("a pipe");
        let mut server = Self {
            process,
            address: String::new(),
            log: BufReader::new(log),
        };
        let mut line = String::new();
        let read = server.log.read_line(&mut line);
        read.expect("it says where it listens");
        let address = line.trim().rsplit(' ').next();
        server.address = address.unwrap_or_default().to_owned();
        server
    }

    fn releases(&self) -> u64 {
        let address: Address = self.address.parse().expect("an address");
        let mut onlooker = Onlooker::connect(&address).expect("served");
        onlooker.look().expect("served").board.releases
    }

    /// Until the board has released so many times.
    fn wait_for_releases(&self, releases: u64) {
        let begin = Instant::now();
        while self.releases() < releases {
            assert!(begin.elapsed() < LIMIT, "{} releases", self.releases());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
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
    let server = Server::of(4);
    for _ in 0..2 {
        let before = server.releases();
        job(&server.address, 4, "100", "200").holds();
        // The program makes one before and one after its loop, and the self-test two.
        assert_eq!(server.releases() - before, 104);
    }
}

#[test]
fn a_board_for_another_number_of_ranks_is_refused_and_software_serves() {
    let server = Server::of(4);
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

#[test]
fn a_server_that_is_killed_in_the_middle_is_one_warning_and_software_serves() {
    let server = Server::of(4);
    let running = job(&server.address, 4, "600", "2000").start();
    // Those of the self-test and some of the program's.
    server.wait_for_releases(12);
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
