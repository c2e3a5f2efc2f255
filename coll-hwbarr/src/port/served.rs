//! The port of a simulated board in another process, over TCP ([`barrier_board::served`]):
//! rank n is node n, on any host.
//!
//! A rank that receives a release wakes the other ranks of its host that sleep:
//! a sleeping rank does not read the server's notification on its own connection.
//! Each rank has a connection of its own and shares no state with other processes.

use super::line::{EurekaPins, LineWires};
use super::{Barrier, Fence, LevelChanges, Pair, Port, Wire, missing_of};
use barrier_board::served::{Address, BoardReader, EurekaWires, InWire, OutWire, Wires};
use barrier_driver::ToggleBarrier;
use mpi_core::plugin::guest::Comm;
use std::cell::Cell;
use std::time::Duration;

struct Served<R> {
    rank: u32,
    nodes: u32,
    server: Address,
    /// Time limit for the release of a barrier.
    timeout: Option<Duration>,
    /// This rank's wires; `None` after the driver has taken them.
    wires: Option<(OutWire<R>, InWire<R>)>,
    /// This rank's wires of the eureka line; `None` after they were taken.
    eureka: Option<EurekaWires<R>>,
    /// The handle for reading the board's state; `None` after this node has closed.
    board_reader: Option<BoardReader<R>>,
    warned: Cell<bool>,
}

/// Returns the time limit during setup, for connecting to a board and for each of its answers.
pub fn answer_limit(timeout: Option<Duration>) -> Duration {
    const LONGEST: Duration = Duration::from_secs(10);
    // On a busy machine an answer may take this time, even if the user's timeout is shorter.
    const SHORTEST: Duration = Duration::from_secs(1);
    timeout.map_or(LONGEST, |timeout| timeout.clamp(SHORTEST, LONGEST))
}

/// Connects this rank to its node; returns an error if the board has another number of nodes.
pub fn attach(
    comm: &Comm,
    server: &Address,
    timeout: Option<Duration>,
) -> Result<impl Pair + use<>, String> {
    let rank = comm.rank();
    let (members, neighbours) = (comm.clone(), comm.node_ranks());
    let ring = move || {
        neighbours
            .iter()
            .filter(|neighbour| **neighbour != rank)
            .for_each(|neighbour| members.ring(*neighbour));
    };
    let Wires {
        out,
        input,
        reader: board_reader,
        eureka,
    } = Wires::connect_within(
        server,
        rank as usize,
        comm.size() as usize,
        answer_limit(timeout),
        ring,
    )
    .map_err(|e| e.to_string())?;
    Ok(Served {
        rank,
        nodes: comm.size(),
        server: server.clone(),
        timeout,
        wires: Some((out, input)),
        eureka: Some(eureka),
        board_reader: Some(board_reader),
        warned: Cell::new(false),
    })
}

impl<R: Fn()> Served<R> {
    /// Returns the nodes that have entered, as a mask; `None` after this node has closed.
    fn arrived(&self) -> Result<Option<u64>, String> {
        let looked = self
            .board_reader
            .as_ref()
            .map(BoardReader::look)
            .transpose();
        let view = looked.map_err(|e| e.to_string())?;
        Ok(view.map(|view| view.board.arrived()))
    }
}

impl<R: Fn() + 'static> Pair for Served<R> {
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String> {
        let (out, input) = self
            .wires
            .take()
            .ok_or_else(|| format!("node {} at {} is open already", self.rank, self.server))?;
        Ok(Box::new(
            ToggleBarrier::open(out, input, fence).map_err(|e| e.to_string())?,
        ))
    }
}

impl<R: Fn() + 'static> Port for Served<R> {
    fn ready(&mut self, _way: LevelChanges) {
        if let (Some(board_reader), Some(timeout)) = (&self.board_reader, self.timeout) {
            board_reader.detect_loss_within(timeout);
        }
    }

    fn check(&self) -> Result<(), String> {
        self.arrived().map(drop)
    }

    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        let arrived = self.arrived()?;
        Ok(arrived.map(|arrived| missing_of(arrived, self.nodes)))
    }

    /// Returns true at the lowest node that waits in the barrier, which warns the user;
    /// the board reports the nodes that wait.
    fn may_warn(&self) -> bool {
        let first = |arrived: u64| arrived == 0 || arrived.trailing_zeros() == self.rank;
        let is_first = self
            .arrived()
            .is_ok_and(|arrived| arrived.is_none_or(first));
        is_first && !self.warned.replace(true)
    }

    fn has_line(&self) -> bool {
        true
    }

    fn line(&mut self) -> Result<Box<dyn LineWires>, String> {
        let wires = self.eureka.take();
        let wires = wires.ok_or_else(|| {
            format!(
                "node {} at the eureka line of {} is open already",
                self.rank, self.server
            )
        })?;
        let EurekaWires { out, found, first } = wires;
        Ok(Box::new(EurekaPins { out, found, first }))
    }

    fn close(&mut self, barrier: Option<Box<dyn Barrier>>, _barriers: u64) -> Result<(), String> {
        drop(barrier);
        // The pins have been dropped, so dropping these last handles
        // closes the connection and frees the node.
        (self.eureka, self.board_reader) = (None, None);
        Ok(())
    }
}
