//! Node segment of a job: shared memory that ranks inherit, with their states and events.

mod threads;

use mpi_base::clock::now_ns;
use mpi_base::node::{self, Inspection, NodeError, Played, Player};
use mpi_base::state::{State, Threads};
use mpi_report::rank_snapshot::{RankSnapshot, Stopped};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::cell::OnceCell;

/// The shared-memory segment of one job on this host.
#[derive(Debug)]
pub struct Node {
    fd: OwnedFd,
    /// The number of the job's program that uses the segment.
    program: u32,
    /// The reader of the event rings; it determines the clock conversion once, for all rings.
    player: OnceCell<Option<Player>>,
}

impl Node {
    /// Creates the segment of `ranks` ranks for a program of their job; the first program has number 0.
    pub fn create(ranks: usize, program: u32) -> Result<Node, NodeError> {
        let nlocal = u32::try_from(ranks).unwrap_or(u32::MAX);
        let fd = node::Node::create(nlocal)?;
        Ok(Node {
            fd,
            program,
            player: OnceCell::new(),
        })
    }

    /// Returns the descriptor that the ranks inherit.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the number of the job's program that uses the segment.
    pub fn program(&self) -> u32 {
        self.program
    }

    /// Frees the memory of the segment after the end of the program, although scripts of ranks still have its descriptor.
    pub fn free_contents(&self) {
        // An error is ignored: the memory is then freed when the scripts end.
        let _ = node::free_contents(&self.fd);
    }

    /// Returns a rank's state, and the waits of its threads if its messages have lanes.
    /// Returns `None` if the pages cannot be read.
    ///
    /// The segment is mapped for this call only, since reads are rare: hang reports and failures.
    fn state_of(&self, rank: u32) -> Option<(State, Option<Threads>)> {
        let inspection = Inspection::open(&self.fd).ok()?;
        // The waits are read first, so that the state is at least as recent.
        let threads = inspection.threads(rank)?.snapshot();
        Some((inspection.state(rank)?.snapshot(), threads))
    }

    /// Returns the current state of a rank of this host.
    pub fn snapshot_of(&self, rank: u32) -> Option<RankSnapshot> {
        let (state, threads) = self.state_of(rank)?;
        let now_ns = now_ns();
        let mut snapshot = RankSnapshot::of(&state, now_ns, call_name);
        let mut waiting = vec![state.quiet.thread];
        if let Some(threads) = threads {
            snapshot = snapshot.with_threads(&threads, now_ns, call_name);
            waiting = threads.waits.iter().map(|wait| wait.thread).collect();
        }
        snapshot.stopped = std::fs::read_to_string(format!("/proc/{}/stat", state.pid))
            .ok()
            .and_then(|stat| Stopped::of(&stat));
        let waits = snapshot.call.is_some();
        if let Some(quiet) = snapshot
            .quiet
            .as_mut()
            .filter(|quiet| waits && !quiet.is_open)
        {
            let switches = threads::others_sleep(state.pid, &waiting);
            quiet.others_sleep = switches.is_some();
            quiet.switches = switches.unwrap_or(0);
        }
        Some(snapshot)
    }
}

impl Node {
    /// Returns the events in a rank's event ring; the list is empty if the rank has no ring.
    pub fn played_of(&self, rank: u32) -> Played {
        let player = self.player.get_or_init(|| Player::new(&self.fd));
        let played = player.as_ref().and_then(|player| player.play(rank));
        played.unwrap_or_default()
    }
}

/// Returns the name of the MPI call with this number on a state page; functions count from 1.
pub fn call_name(call: u16) -> String {
    usize::from(call)
        .checked_sub(1)
        .and_then(|index| {
            let all = mpi_abi::functions().iter().chain(mpi_abi::extensions());
            all.into_iter().nth(index)
        })
        .map_or_else(
            || format!("MPI call {call}"),
            |function| function.name.into(),
        )
}

/// Returns the clock in microseconds modulo 10^9, to distinguish launches with equal process ids.
pub fn unique() -> u64 {
    now_ns() / 1000 % 1_000_000_000
}
