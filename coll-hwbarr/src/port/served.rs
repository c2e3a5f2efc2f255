//! The simulator's board over TCP, as a port: rank n is node n, wherever it runs (crate `sim`, module `served`).
//!
//! A rank that hears of a release wakes those of its host that sleep: the server has told them too, but a rank that sleeps does not listen.
//! The connection is this rank's alone, so nothing here is shared with another process.

use super::line::{LineWires, Three};
use super::{Fence, Gate, Pair, Port, Way, Wire, missing_of};
use barrier_driver::ToggleBarrier;
use mpi_core::plugin::guest::Comm;
use sim::served::{Address, EurekaWires, InWire, Lookout, OutWire, Wires};
use std::cell::Cell;
use std::time::Duration;

struct Served<R> {
    rank: u32,
    nodes: u32,
    server: Address,
    /// How long a barrier may go unreleased.
    timeout: Option<Duration>,
    /// This rank's wires, until the driver takes them.
    wires: Option<(OutWire<R>, InWire<R>)>,
    /// The same at the eureka line.
    eureka: Option<EurekaWires<R>>,
    /// Gone when this node has put its wire back for good.
    lookout: Option<Lookout<R>>,
    warned: Cell<bool>,
}

/// How long a connection to a board, and each of its answers, may take while the hardware is set up.
pub fn answer_limit(timeout: Option<Duration>) -> Duration {
    const LONGEST: Duration = Duration::from_secs(10);
    // A crowded machine needs a moment even if the user is impatient.
    const SHORTEST: Duration = Duration::from_secs(1);
    timeout.map_or(LONGEST, |timeout| timeout.clamp(SHORTEST, LONGEST))
}

/// Connects this rank to its node; a board for another number of ranks is refused.
pub fn attach(
    comm: &Comm,
    server: &Address,
    timeout: Option<Duration>,
) -> Result<impl Pair + use<>, String> {
    let rank = comm.rank();
    let (bells, neighbours) = (comm.clone(), comm.node_ranks());
    let ring = move || {
        neighbours
            .iter()
            .filter(|neighbour| **neighbour != rank)
            .for_each(|neighbour| bells.ring(*neighbour));
    };
    let Wires {
        out,
        input,
        lookout,
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
        lookout: Some(lookout),
        warned: Cell::new(false),
    })
}

impl<R: Fn()> Served<R> {
    /// The nodes that have entered, bit by bit; `None` after the node's end.
    fn arrived(&self) -> Result<Option<u64>, String> {
        let looked = self.lookout.as_ref().map(Lookout::look).transpose();
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
    fn ready(&mut self, _way: Way) {
        if let (Some(lookout), Some(timeout)) = (&self.lookout, self.timeout) {
            lookout.notice_within(timeout);
        }
    }

    fn check(&self) -> Result<(), String> {
        self.arrived().map(drop)
    }

    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        let arrived = self.arrived()?;
        Ok(arrived.map(|arrived| missing_of(arrived, self.nodes)))
    }

    /// Of the nodes that wait the first one warns; the board tells each which that is.
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
        Ok(Box::new(Three { out, found, first }))
    }

    fn close(&mut self, gate: Option<Box<dyn Gate>>, _barriers: u64) -> Result<(), String> {
        drop(gate);
        // The pins have been dropped, so this is the last handle: the node is free when it returns.
        (self.eureka, self.lookout) = (None, None);
        Ok(())
    }
}
