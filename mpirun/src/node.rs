//! The launcher's view of a job's node segment: created for the ranks to inherit, and read for their state and event rings.

mod threads;

use mpi_base::clock::now_ns;
use mpi_base::node::{self, Inspection, NodeError, Played, Player};
use mpi_base::state::State;
use mpi_report::rank_snapshot::RankSnapshot;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::cell::OnceCell;

/// The segment of one job on this host.
#[derive(Debug)]
pub struct Node {
    fd: OwnedFd,
    /// Created when the ranks have ended: all event rings are read with one clock.
    player: OnceCell<Option<Player>>,
}

impl Node {
    /// Creates the segment for this number of ranks.
    pub fn create(ranks: usize) -> Result<Node, NodeError> {
        let nlocal = u32::try_from(ranks).unwrap_or(u32::MAX);
        let fd = node::Node::create(nlocal)?;
        Ok(Node {
            fd,
            player: OnceCell::new(),
        })
    }

    /// Returns the descriptor that the ranks inherit.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns a rank's state page; `None` if it cannot be read.
    ///
    /// The segment is mapped for this call only, as it is read rarely: for hang reports and after failures.
    fn state_of(&self, rank: u32) -> Option<State> {
        let inspection = Inspection::open(&self.fd).ok()?;
        inspection.state(rank).map(|page| page.snapshot())
    }

    /// Returns the current state of a rank of this host.
    pub fn snapshot_of(&self, rank: u32) -> Option<RankSnapshot> {
        let state = self.state_of(rank)?;
        let mut snapshot = RankSnapshot::of(&state, now_ns(), call_name);
        let waits = snapshot.call.is_some();
        if let Some(quiet) = snapshot
            .quiet
            .as_mut()
            .filter(|quiet| waits && !quiet.is_open)
        {
            quiet.others_sleep = threads::others_sleep(state.pid, state.quiet.thread);
        }
        Some(snapshot)
    }
}

impl Node {
    /// Returns the events in a rank's event ring; empty if it has none.
    pub fn played_of(&self, rank: u32) -> Played {
        let player = self.player.get_or_init(|| Player::new(&self.fd));
        let played = player.as_ref().and_then(|player| player.play(rank));
        played.unwrap_or_default()
    }
}

/// Returns the name of an MPI call by its number on the state page, where the functions of the interface are counted from 1.
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

/// Returns a number that makes names differ between launches with the same process id.
pub fn unique() -> u64 {
    now_ns() / 1000 % 1_000_000_000
}
