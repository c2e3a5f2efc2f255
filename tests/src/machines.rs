//! Simulated machines, each with one parallel port, and jobs that use these ports.
//!
//! The test process emulates the ports and connects them to a simulated board.
//! The trait [`Kind`] abstracts from the board's version, so each test is written once for both versions.

use std::time::{Duration, Instant};

use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use barrier_emulation::channels::ChannelBoard;
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::ppdev::Parports;

use crate::{Job, needs};

/// The number of ranks of a job; each rank runs on a separate machine.
pub const RANKS: u32 = 4;

/// A kind of board that is connected to parallel ports.
pub trait Kind: Sized {
    /// The value of the parameter `coll_hwbarr_version`.
    const VERSION: &str;
    /// The suffix of the port's name in the parameter `coll_hwbarr_port`.
    const LINES: &str;

    /// Returns a board after power-on, and the ports of its nodes (at least [`RANKS`]).
    fn power_on() -> (Self, Vec<ParallelPort>);

    /// Returns the number of barriers that the board has released.
    fn releases(&self) -> u64;

    /// Returns true if exactly the nodes `nodes` (a bit mask) have entered a barrier.
    fn has_arrived(&self, nodes: u64) -> bool;

    /// Panics if a node has entered a barrier or a channel is in use.
    fn must_rest(&self);
}

impl Kind for Board<'static> {
    const VERSION: &str = "1";
    const LINES: &str = ",out=D0,in=nACK";

    fn power_on() -> (Self, Vec<ParallelPort>) {
        let nodes = RANKS as usize;
        let memory = Memory::create(Board::layout_size(nodes, 0)).expect("memory");
        let board = Box::leak(Box::new(memory)).init(nodes, 0).expect("a board");
        let line = |lines: &[Line], name| *lines.iter().find(|l| l.name == name).expect("a line");
        let plug = Plug::straight(line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"));
        let port = |node| {
            let Wires { out, input, .. } = board.wires(node, |_| ()).expect("free wires");
            ParallelPort::new(plug, 0, (out, input))
        };
        let ports = (0..nodes).map(port).collect();
        (board, ports)
    }

    fn releases(&self) -> u64 {
        Board::releases(self)
    }

    fn has_arrived(&self, nodes: u64) -> bool {
        self.snapshot().arrived() == nodes
    }

    fn must_rest(&self) {
        assert_eq!(self.snapshot().arrived(), 0);
    }
}

impl Kind for ChannelBoard {
    const VERSION: &str = "2";
    const LINES: &str = "";

    /// Creates a board with one node more than a job has ranks; the job does not use this node.
    fn power_on() -> (Self, Vec<ParallelPort>) {
        let nodes = RANKS as usize + 1;
        let board = ChannelBoard::power_on(nodes).expect("a board");
        let ports = (0..nodes).map(|node| board.port(node, 0)).collect();
        (board, ports)
    }

    fn releases(&self) -> u64 {
        self.machine().all_releases()
    }

    fn has_arrived(&self, nodes: u64) -> bool {
        let machine = self.machine();
        let mut channels = (0..5).filter_map(|number| machine.channel(number));
        channels.any(|channel| channel.arrived() == nodes)
    }

    fn must_rest(&self) {
        let machine = self.machine();
        let channels = (0..5).filter_map(|number| machine.channel(number));
        let members: Vec<u64> = channels.map(|channel| channel.mask).collect();
        assert_eq!(members, [0; 5]);
    }
}

/// The simulated machines: a board, and the ports of its nodes.
pub struct Machines<B> {
    pub board: B,
    files: Parports,
}

impl<B: Kind> Machines<B> {
    /// Creates the machines; returns `None` if this process may not mount.
    pub fn new() -> Option<Self> {
        let (board, ports) = B::power_on();
        let files = match Parports::mount(ports) {
            Ok(files) => Some(files),
            Err(e) => {
                eprintln!("ppdev cannot be served here: {e}");
                None
            }
        };
        needs(files.is_some(), "the right to mount /dev/fuse");
        Some(Self {
            board,
            files: files?,
        })
    }

    pub fn job(&self, program: &str) -> Job {
        let folder = self.files.folder().display();
        let port = format!("ppdev:{folder}/parport{{rank}}{}", B::LINES);
        Job::of(program)
            .ranks(RANKS)
            .with(["--mca", "coll_hwbarr_version", B::VERSION])
            .with(["--mca", "coll_hwbarr_port", &port])
    }

    /// Runs a job of at least fifty barriers on the board; the board must be idle afterwards.
    #[track_caller]
    pub fn pass_fifty_barriers(&self) {
        let before = self.board.releases();
        self.job("barrier_loop").arg("50").arg("0").holds();
        let made = self.board.releases() - before;
        // The program makes 52 barriers: 50 in its loop, one before and one after the loop.
        // The self-test makes more.
        assert!(made >= 52, "{made} releases");
        self.board.must_rest();
    }

    /// Waits until all ranks except the first have entered a barrier on MPI_COMM_WORLD.
    #[track_caller]
    pub fn wait_for_arrivals(&self) {
        let begin = Instant::now();
        while !self.board.has_arrived(0b1110) {
            let waited = begin.elapsed();
            assert!(waited < Duration::from_secs(60), "they have not arrived");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
