//! What carries a node's wires, and what it can tell beside them.
//!
//! A port's wires are embedded-hal pins under the one driver of crate `barrier-driver`; [`Wire`] and [`Gate`] are that driver
//! without its pin types, so that a module works with whatever the user has configured.

mod attendance;
pub mod boards;
#[cfg(test)]
pub mod broken;
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

/// The most nodes a board has.
pub const MOST_NODES: u32 = 64;

/// What the program's barriers pass: one node's end of the barrier.
pub trait Gate {
    /// Announces this node's arrival.
    fn enter(&mut self) -> Result<(), String>;

    /// Ready when the barrier has released this node.
    fn poll(&mut self) -> Result<Poll<()>, String>;

    /// Whether the release wakes this process while it sleeps in the kernel.
    fn wakes_sleepers(&mut self) -> bool {
        false
    }

    /// As [`poll`](Self::poll), but sleeps in the kernel until the release may have come, for at most `limit`.
    fn poll_asleep(&mut self, _limit: Duration) -> Result<Poll<()>, String> {
        self.poll()
    }

    /// The wire behind it, at the member that drives one.
    fn into_wire(self: Box<Self>) -> Option<Box<dyn Gate>>;
}

/// An open wire pair, to be tested before it is used as a gate.
pub trait Wire: Gate {
    /// The level on the wire while the node is in no barrier.
    fn idle_level(&self) -> PinState;

    /// Runs the self-test; every node passes the same `late` nodes and keeps every fence.
    fn self_test(
        &mut self,
        test: SelfTest,
        late: &[usize],
        fence: &mut dyn FnMut() -> Result<(), String>,
        progress: &mut dyn FnMut(),
    ) -> Result<(), Fault>;

    /// Goes there and back in each barrier from now on, so that a node whose wire falls to `rest` releases none;
    /// every node calls.
    fn returning(
        self: Box<Self>,
        rest: PinState,
        progress: &mut dyn FnMut(),
        limit: Duration,
    ) -> Result<Box<dyn Gate>, Fault>;
}

/// What a node has found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// At this node.
    Here(String),
    /// At some node: this one only waited in vain.
    Somewhere(String),
    /// At the nodes that the sentence names: what all have seen was put together.
    Named(String),
}

impl Fault {
    /// The sentence.
    pub fn reason(self) -> String {
        match self {
            Fault::Here(reason) | Fault::Somewhere(reason) | Fault::Named(reason) => reason,
        }
    }
}

impl<O, I> Gate for ToggleBarrier<O, I>
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

    fn into_wire(self: Box<Self>) -> Option<Box<dyn Gate>> {
        Some(self)
    }
}

impl<O, I> Gate for ReturningBarrier<O, I>
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

    fn into_wire(self: Box<Self>) -> Option<Box<dyn Gate>> {
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
    ) -> Result<Box<dyn Gate>, Fault> {
        let returning = ReturningBarrier::over(*self, rest, progress, limit);
        Ok(Box::new(
            returning.map_err(|e| Fault::Somewhere(e.to_string()))?,
        ))
    }
}

/// What the driver's `open` is given to meet the other nodes in.
pub type Fence<'a> = &'a mut dyn FnMut() -> Result<(), String>;

/// A node's port of version 1: one wire pair.
pub trait Pair: Port {
    /// Makes this node's wires idle around `fence`, which it calls once.
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String>;
}

/// A node's port, while a communicator uses it.
pub trait Port {
    /// All nodes have opened and tested their wires: what happens from now on is the program's.
    fn ready(&mut self, _way: Way) {}

    /// Whether the hardware still answers, where a port can ask; the error is why it does not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Which nodes have not entered the barrier that is not released yet, where a port can tell.
    fn missing(&self) -> Result<Option<Vec<u32>>, String> {
        Ok(None)
    }

    /// Which nodes have not entered, as the hardware and the members of this node know it, where a port can ask.
    fn read_back(&self) -> Option<ReadBack> {
        None
    }

    /// True for one node of those that share this port's memory, once: it warns the user.
    fn may_warn(&self) -> bool {
        true
    }

    /// Whether there is a eureka line beside the barrier; the same at every node.
    fn has_line(&self) -> bool {
        false
    }

    /// This node's wires at the line, once.
    fn line(&mut self) -> Result<Box<dyn LineWires>, String> {
        Err("this port has no eureka line".into())
    }

    /// The program has called a barrier, or come back from one.
    fn mark(&mut self, _mark: Mark) {}

    /// Members are dead, and the others leave: `gate` is what this node passed its barriers by.
    fn lose(&mut self, gate: Option<Box<dyn Gate>>, _dead: &[u32]) {
        drop(gate);
    }

    /// This node has passed its last barrier, the how-manieth it was; `gate` is what it passed them by,
    /// unless the hardware has been left before.
    fn close(&mut self, gate: Option<Box<dyn Gate>>, _barriers: u64) -> Result<(), String> {
        drop(gate);
        Ok(())
    }
}

/// The nodes below `nodes` whose bit is not set in `arrived`, the mask of the nodes that have entered.
pub fn missing_of(arrived: u64, nodes: u32) -> Vec<u32> {
    (0..nodes).filter(|node| arrived >> node & 1 == 0).collect()
}

/// See [`Port::read_back`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// Such as "node 3 (rank 3) has not entered".
    pub sentence: String,
    /// This member is the one to tell the user, for rank 0 is among those that are missing.
    pub speaks: bool,
}

/// How a barrier goes over the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One change of the barrier's wires for each barrier.
    There,
    /// There and back, beginning at rest.
    ThereAndBack,
}

/// See [`Port::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Enter,
    Leave,
}

/// Whether the chosen port can serve this communicator at all. Local.
pub fn suits(choice: &Choice, boards: u32, comm: &Comm) -> Result<(), String> {
    match choice {
        Choice::Rtl(..) if boards > 1 => Err(format!(
            "the RTL is one board, and coll_hwbarr_boards is {boards}; coll_hwbarr_port sim has cascaded boards"
        )),
        Choice::Served(server, _) if boards > 1 => Err(format!(
            "{server} serves one board, and coll_hwbarr_boards is {boards}; coll_hwbarr_port sim has cascaded boards"
        )),
        Choice::Sim(_) | Choice::Rtl(..) => sim::suits(comm),
        // Whether this rank reaches the server is known when it connects.
        Choice::Served(..) => Ok(()),
        Choice::Wired(text) => wired::suits(text, comm),
        #[cfg(test)]
        Choice::Broken(..) => sim::suits(comm),
    }
}

/// The chosen port at this node; every node calls.
///
/// `timeout` is how long a barrier may go unreleased.
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
