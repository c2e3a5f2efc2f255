//! Real jobs over real ports: the kernel's parallel port interface, served by this test in front of the simulator's board.

use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use rustix::process::Signal;
use sim::emulate::parallel::{ParallelPort, Plug};
use sim::emulate::ppdev::Parports;
use sim::live::{Board, Memory, Wires};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tests::Job;

const RANKS: u32 = 4;

/// A board whose nodes have a parallel port each.
struct Machines {
    board: Board<'static>,
    folder: TempDir,
    _files: Parports,
}

impl Machines {
    /// `None` where this process may not mount.
    fn new() -> Option<Self> {
        let nodes = RANKS as usize;
        let memory = Memory::create(Board::layout_size(nodes, 0)).expect("memory");
        let board = Box::leak(Box::new(memory)).init(nodes, 0).expect("a board");
        let line = |lines: &[Line], name| *lines.iter().find(|l| l.name == name).expect("a line");
        let plug = Plug::straight(line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"));
        let port = |node| {
            let Wires { out, input, .. } = board.wires(node, |_| ()).expect("free wires");
            ParallelPort::new(plug, 0, (out, input))
        };
        let folder = tempfile::tempdir().expect("a folder");
        let files = Parports::mount(folder.path(), (0..nodes).map(port).collect());
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
        let port = format!(
            "ppdev:{}/parport{{rank}},out=D0,in=nACK",
            self.folder.path().display()
        );
        let arguments = ["--mca", "coll_hwbarr_port", &port];
        Job::of(program).ranks(RANKS).with(arguments)
    }

    /// A job whose barriers are the wires', which it then leaves at rest.
    fn pass_fifty_barriers(&self) {
        let before = self.board.releases();
        self.job("barrier_loop").arg("50").arg("0").holds();
        let made = self.board.releases() - before;
        // The self-test makes some, and the program one before and one after its loop.
        assert!(made >= 52, "{made} releases");
        assert_eq!(self.board.snapshot().arrived(), 0);
    }

    /// Until the ranks but the first are in the barrier.
    fn wait_for_arrivals(&self) {
        let begin = Instant::now();
        while self.board.snapshot().arrived() != 0b1110 {
            let arrived = self.board.snapshot().arrived();
            assert!(begin.elapsed() < Duration::from_secs(60), "{arrived:#b}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_job_over_parallel_ports_is_followed_by_another() {
    if let Some(machines) = Machines::new() {
        machines.pass_fifty_barriers();
        machines.pass_fifty_barriers();
    }
}

#[test]
fn mpi_abort_in_a_barrier_leaves_every_wire_at_rest() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let outcome = machines.job("in_barrier").arg("abort").run();
    assert_eq!(outcome.status.code(), Some(42), "{}", outcome.stderr);
    assert_eq!(machines.board.snapshot().arrived(), 0);
    machines.pass_fifty_barriers();
}

#[test]
fn a_job_that_is_terminated_in_a_barrier_leaves_every_wire_at_rest() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let job = machines.job("in_barrier").start();
    machines.wait_for_arrivals();
    job.signal(Signal::TERM);
    job.wait();
    assert_eq!(machines.board.snapshot().arrived(), 0);
    machines.pass_fifty_barriers();
}

/// Nothing runs in a killed process; the others are told to end and put their wires back.
#[test]
fn the_wire_that_a_killed_rank_has_left_is_taken_back_by_the_next_job() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let outcome = machines.job("in_barrier").arg("kill").run();
    assert_eq!(outcome.status.code(), Some(128 + 9), "{}", outcome.stderr);
    assert_eq!(machines.board.snapshot().arrived(), 0b0010);
    machines.pass_fifty_barriers();
}

/// A parallel port cannot tell who has entered; the members ask each other.
#[test]
fn a_rank_that_does_not_come_is_named_and_the_barrier_goes_on_in_software() {
    for late in ["0", "2"] {
        let Some(machines) = Machines::new() else {
            return;
        };
        let job = machines.job("in_barrier");
        let job = job.with(["--mca", "coll_hwbarr_timeout", "100ms"]);
        let outcome = job.arg("late").arg(late).holds();
        let named = format!("node {late} has not entered; MPI_COMM_WORLD goes on in software");
        assert!(outcome.stderr.contains(&named), "{}", outcome.stderr);
        let told = outcome.stderr.matches("has not released for").count();
        assert!(
            (1..=4).contains(&told),
            "{told} times in {}",
            outcome.stderr
        );
    }
}

/// Each barrier goes there and back, so a wire that falls by itself is no arrival.
#[test]
fn a_job_that_bears_reboots_passes_its_barriers() {
    if let Some(machines) = Machines::new() {
        let job = machines.job("barrier_loop").arg("50").arg("0");
        job.with(["--mca", "coll_hwbarr_reboot", "low"]).holds();
        let releases = machines.board.releases();
        assert!(releases >= 2 * 52 - 1, "{releases} releases");
    }
}
