//! The ports that drive a node's wires, and the traits of barriers, wires and ports.
//!
//! The driver `barrier-driver` is generic over embedded-hal pins, so each port has other types.
//! The traits [`Wire`] and [`Barrier`] hide the pin types, so a module works with every port.

pub mod boards;
#[cfg(test)]
pub mod broken;
mod ended_nodes;
pub mod line;
pub mod rtl;
pub mod served;
pub mod sim;
pub mod sim_files;
pub mod wired;

use crate::choice::Choice;

use barrier_driver::{InputEvents, ReturningBarrier, SelfTest, SelfTestError, ToggleBarrier};
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use line::LineWires;
use mpi_core::plugin::guest::Comm;
use std::task::Poll;
use std::time::Duration;

/// Maximum number of nodes of a board.
pub const MOST_NODES: u32 = 64;

/// A node's handle of the hardware barrier, as the program's barriers use it.
pub trait Barrier {
    /// Announces this node's arrival at the barrier.
    fn enter(&mut self) -> Result<(), String>;

    /// Returns ready when the barrier has released this node.
    fn poll(&mut self) -> Result<Poll<()>, String>;

    /// Returns true if a release can wake this process while it sleeps in the kernel.
    fn wakes_sleepers(&mut self) -> bool {
        false
    }

    /// As [`poll`](Self::poll), but first sleeps in the kernel until a possible release, at most `limit`.
    fn poll_asleep(&mut self, _limit: Duration) -> Result<Poll<()>, String> {
        self.poll()
    }

    /// Returns the wire below this barrier, or `None` at a member that drives no wire.
    fn into_wire(self: Box<Self>) -> Option<Box<dyn Barrier>>;
}

/// An open wire pair, which is tested before programs use it as a barrier.
pub trait Wire: Barrier {
    /// Returns the level of the wire while the node is in no barrier.
    fn idle_level(&self) -> PinState;

    /// Runs the self-test; every node passes the same nodes `late` and enters every fence.
    fn self_test(
        &mut self,
        test: SelfTest,
        late: &[usize],
        fence: &mut dyn FnMut() -> Result<(), String>,
        progress: &mut dyn FnMut(),
    ) -> Result<(), Fault>;

    /// Makes each barrier a returning one: a rebooting node, whose wire has the level `rest`, releases no node;
    /// every node must call this.
    fn returning(
        self: Box<Self>,
        rest: PinState,
        progress: &mut dyn FnMut(),
        limit: Duration,
    ) -> Result<Box<dyn Barrier>, Fault>;
}

/// A fault that a node found during setup, classified by what is known about its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The fault is at this node.
    Here(String),
    /// The fault is at an unknown node: this node only reached a time limit.
    Somewhere(String),
    /// The fault is at the nodes that the message names, as determined from the data of all nodes.
    Named(String),
}

impl Fault {
    /// Returns the message about the fault.
    pub fn reason(self) -> String {
        match self {
            Fault::Here(reason) | Fault::Somewhere(reason) | Fault::Named(reason) => reason,
        }
    }
}

impl<O, I> Barrier for ToggleBarrier<O, I>
where
    O: OutputPin + 'static,
    I: InputEvents<Error = O::Error> + 'static,
{
    fn enter(&mut self) -> Result<(), String> {
        ToggleBarrier::enter(self).map_err(|e| e.to_string())
    }

    fn poll(&mut self) -> Result<Poll<()>, String> {
        ToggleBarrier::poll(self).map_err(|e| e.to_string())
    }

    fn wakes_sleepers(&mut self) -> bool {
        ToggleBarrier::wakes_sleepers(self)
    }

    fn poll_asleep(&mut self, limit: Duration) -> Result<Poll<()>, String> {
        ToggleBarrier::poll_asleep(self, limit).map_err(|e| e.to_string())
    }

    fn into_wire(self: Box<Self>) -> Option<Box<dyn Barrier>> {
        Some(self)
    }
}

impl<O, I> Barrier for ReturningBarrier<O, I>
where
    O: OutputPin + 'static,
    I: InputPin<Error = O::Error> + 'static,
{
    fn enter(&mut self) -> Result<(), String> {
        ReturningBarrier::enter(self).map_err(|e| e.to_string())
    }

    fn poll(&mut self) -> Result<Poll<()>, String> {
        ReturningBarrier::poll(self).map_err(|e| e.to_string())
    }

    fn into_wire(self: Box<Self>) -> Option<Box<dyn Barrier>> {
        Some(self)
    }
}

impl<O, I> Wire for ToggleBarrier<O, I>
where
    O: OutputPin + 'static,
    I: InputEvents<Error = O::Error> + 'static,
{
    fn idle_level(&self) -> PinState {
        self.level()
    }

    fn self_test(
        &mut self,
        test: SelfTest,
        late: &[usize],
        fence: &mut dyn FnMut() -> Result<(), String>,
        progress: &mut dyn FnMut(),
    ) -> Result<(), Fault> {
        barrier_driver::self_test(self, test, late.iter().copied(), fence, progress).map_err(|e| {
            match e {
                SelfTestError::NotReleased { .. } => Fault::Somewhere(e.to_string()),
                _ => Fault::Here(e.to_string()),
            }
        })
    }

    fn returning(
        self: Box<Self>,
        rest: PinState,
        progress: &mut dyn FnMut(),
        limit: Duration,
    ) -> Result<Box<dyn Barrier>, Fault> {
        let returning = ReturningBarrier::over(*self, rest, progress, limit);
        Ok(Box::new(
            returning.map_err(|e| Fault::Somewhere(e.to_string()))?,
        ))
    }
}

/// The fence that the driver's `open` calls, with which it synchronises with the other nodes.
pub type Fence<'a> = &'a mut dyn FnMut() -> Result<(), String>;

/// A node's port of version 1: one wire pair.
pub trait Pair: Port {
    /// Sets this node's wires to idle and opens them; calls `fence` one time.
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String>;
}

/// A node's port while a communicator uses it.
pub trait Port {
    /// Called after all nodes have opened and tested their wires, before the program's barriers.
    fn ready(&mut self, _way: LevelChanges) {}

    /// Checks that the hardware answers, if the port can request that; the error is the reason.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the nodes that have not entered the pending barrier; `None` if the port cannot read them.
    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        Ok(None)
    }

    /// Returns the nodes that have not entered, according to the hardware and to this node's ranks.
    /// Returns `None` if the port cannot read the nodes.
    fn read_back(&self) -> Option<ReadBack> {
        None
    }

    /// Returns true one time, at one of the nodes that share this port's memory;
    /// that node names the missing nodes to the user.
    fn may_warn(&self) -> bool {
        true
    }

    /// Returns true if the board has a eureka line; the result is equal at every node.
    fn has_line(&self) -> bool {
        false
    }

    /// Returns this node's wires of the eureka line; called at most one time.
    fn line(&mut self) -> Result<Box<dyn LineWires>, String> {
        Err("this port has no eureka line".into())
    }

    /// Records that the program has entered a barrier or that a barrier was released.
    fn mark(&mut self, _mark: Mark) {}

    /// Called when the survivors of a death stop using the hardware; `barrier` is this node's.
    fn lose(&mut self, barrier: Option<Box<dyn Barrier>>, _dead: &[u32]) {
        drop(barrier);
    }

    /// Closes the port after the last barrier. `barriers` is the number of completed barriers;
    /// `barrier` has performed them; `None` if the members have stopped using the hardware.
    fn close(&mut self, barrier: Option<Box<dyn Barrier>>, _barriers: u64) -> Result<(), String> {
        drop(barrier);
        Ok(())
    }
}

/// Returns those of the nodes 0 to `nodes` - 1 whose bit is not set
/// in `arrived`, the mask of the nodes that have entered.
pub fn missing_of(arrived: u64, nodes: u32) -> Vec<u32> {
    (0..nodes).filter(|node| arrived >> node & 1 == 0).collect()
}

/// The result of [`Port::read_back`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// The part of a message about the nodes, such as "node 3 (rank 3) has not entered".
    pub sentence: String,
    /// True if this member must warn the user, because rank 0 has not entered.
    pub speaks: bool,
}

/// Whether a barrier changes the wires one time or twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelChanges {
    /// Each barrier changes the wires one time.
    Once,
    /// Each barrier changes the wires twice: from the idle level and back to it.
    Twice,
}

/// The events that [`Port::mark`] records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Enter,
    Leave,
}

/// Checks whether the chosen port can serve this communicator; needs no communication.
pub fn suits(choice: &Choice, boards: u32, comm: &Comm) -> Result<(), String> {
    match choice {
        Choice::Rtl(..) if boards > 1 => Err(format!(
            "the RTL is one board, and coll_hwbarr_boards is {boards}; coll_hwbarr_port sim has cascaded boards"
        )),
        Choice::Served(server, _) if boards > 1 => Err(format!(
            "{server} serves one board, and coll_hwbarr_boards is {boards}; coll_hwbarr_port sim has cascaded boards"
        )),
        Choice::Sim(_) | Choice::Rtl(..) => sim::suits(comm),
        // Only the attempt to connect shows whether this rank can reach the server.
        Choice::Served(..) => Ok(()),
        Choice::Wired(text) => wired::suits(text, comm),
        #[cfg(test)]
        Choice::Broken(..) => sim::suits(comm),
    }
}

/// Attaches to the chosen port at this node; every node must call this.
///
/// `timeout` is the time limit for the release of a barrier.
pub fn attach(
    choice: &Choice,
    boards: u32,
    timeout: Option<Duration>,
    comm: &Comm,
) -> Result<Box<dyn Pair>, String> {
    match choice {
        Choice::Sim(files) if boards > 1 => {
            Ok(Box::new(boards::SimBoards::attach(comm, files, boards)?))
        }
        Choice::Sim(files) => Ok(Box::new(sim::Sim::attach(comm, files, None)?)),
        Choice::Rtl(files, source) => Ok(Box::new(sim::Sim::attach(comm, files, Some(source))?)),
        Choice::Served(server, _) => Ok(Box::new(served::attach(comm, server, timeout)?)),
        Choice::Wired(text) => Ok(Box::new(wired::Wired::attach(text, comm)?)),
        #[cfg(test)]
        Choice::Broken(defect, node) => Ok(Box::new(broken::Broken::attach(comm, *defect, *node)?)),
    }
}
