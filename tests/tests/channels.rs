//! Real jobs whose communicators have channels of a version 2 board: the simulator's in shared memory, and one behind parallel ports.

use rustix::process::Signal;
use sim::emulate::channels::ChannelBoard;
use sim::emulate::ppdev::Parports;
use std::fs;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tests::Job;

fn with_channels(job: Job, port: &str) -> Job {
    job.with(["--mca", "coll_hwbarr_version", "2"])
        .with(["--mca", "coll_hwbarr_port", port])
}

/// A number of the simulator's report.
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

#[test]
fn communicators_synchronise_over_channels_and_give_them_back() {
    for (ranks, nodes) in [("4", "0"), ("6", "3"), ("9", "0")] {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let job = Job::of("channels").ranks(ranks.parse().unwrap());
        with_channels(job, "sim")
            .with(["--mca", "coll_hwbarr_sim_nodes", nodes])
            .with([
                "--mca",
                "coll_hwbarr_sim_report",
                &report.display().to_string(),
            ])
            .holds();
        let report = fs::read_to_string(&report).unwrap();
        // At least the world, as many twins as there are channels beside, and the guests.
        let taken = count(&report, "channels_taken");
        assert!(taken >= 1 + 3 + 12, "{report}");
        assert_eq!(report.matches("\"members\": 0").count(), 5, "{report}");
        assert!(count(&report, "barriers") > 30, "{report}");
    }
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

const RANKS: u32 = 4;

/// A board whose nodes have a parallel port each, one more than ranks.
struct Machines {
    board: ChannelBoard,
    folder: TempDir,
    _files: Parports,
}

impl Machines {
    /// `None` where this process may not mount.
    fn new() -> Option<Self> {
        let nodes = RANKS as usize + 1;
        let board = ChannelBoard::power_on(nodes).expect("a board");
        let ports = (0..nodes).map(|node| board.port(node, 0)).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let files = Parports::mount(folder.path(), ports);
        if let Err(e) = &files {
            eprintln!("ppdev cannot be served here: {e}");
        }
        tests::needs(files.is_ok(), "the right to mount /dev/fuse").then(|| Self {
            board,
            folder,
            _files: files.expect("asked before"),
        })
    }

    fn job(&self, program: &str) -> Job {
        let port = format!("ppdev:{}/parport{{rank}}", self.folder.path().display());
        with_channels(Job::of(program).ranks(RANKS), &port)
    }

    fn releases(&self) -> u64 {
        let machine = self.board.machine();
        let channels = (0..5).filter_map(|number| machine.channel(number));
        channels.map(|channel| channel.releases).sum()
    }

    fn members(&self) -> Vec<u64> {
        let machine = self.board.machine();
        let channels = (0..5).filter_map(|number| machine.channel(number));
        channels.map(|channel| channel.mask).collect()
    }

    /// A job whose barriers are the board's, to which it then gives all channels back.
    fn pass_fifty_barriers(&self) {
        let before = self.releases();
        self.job("barrier_loop").arg("50").arg("0").holds();
        assert!(
            self.releases() - before >= 52,
            "{} releases",
            self.releases()
        );
        assert_eq!(self.members(), [0; 5]);
    }

    /// Until the ranks but the first are in the world's barrier.
    fn wait_for_arrivals(&self) {
        let begin = Instant::now();
        loop {
            let machine = self.board.machine();
            let channels = (0..5).filter_map(|number| machine.channel(number));
            if channels
                .into_iter()
                .any(|channel| channel.arrived() == 0b1110)
            {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "nobody has arrived"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn communicators_have_channels_over_parallel_ports() {
    if let Some(machines) = Machines::new() {
        machines.job("channels").holds();
        assert_eq!(machines.members(), [0; 5]);
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
