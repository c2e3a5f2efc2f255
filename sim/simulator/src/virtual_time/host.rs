//! The simulated machine of a node, as the node's program sees it.
//!
//! The program is ordinary sequential code and runs the real driver.
//! It is a coroutine: a port access, a fence or a computation suspends it, and the world resumes it when that
//! virtual time has passed.
//! So sixty nodes need one thread and no locks, and a run has only one order of events.

use super::Time;
use corosensei::Yielder;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{Error, ErrorKind, ErrorType, InputPin, OutputPin};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// A node's program.
pub type Program = Box<dyn FnOnce(&Host<'_>)>;

/// What a program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// A write access that drives this level at its end.
    Write { line: usize, high: bool },
    /// A read access that samples the level at its end.
    Read { line: usize },
    /// This amount of time.
    Compute(Time),
    /// A change at the input, or this time.
    Watch { until: Option<Time> },
    /// All other nodes.
    Fence,
    /// Nothing: the program enters the barrier.
    Enter,
    /// Nothing: the program has left the barrier.
    Leave,
}

/// The world's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The request is complete.
    Done,
    /// The level that was sampled.
    Level(bool),
    /// Not every node entered the fence.
    FenceFailed,
}

/// The state shared by the nodes and the world.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The time of the present event.
    pub now: Cell<Time>,
    /// Nodes that have died.
    pub dead: RefCell<BTreeSet<usize>>,
    /// The world has ended, and the remaining programs are being unwound.
    pub over: Cell<bool>,
    /// The errors that nodes reported in each agreement so far, by number of the agreement.
    complaints: RefCell<Vec<Vec<Disagreement>>>,
}

/// The machine on which a node's program runs.
pub struct Host<'y> {
    node: usize,
    nodes: usize,
    yielder: &'y Yielder<Answer, Request>,
    shared: Rc<Shared>,
    agreements: Cell<usize>,
}

impl<'y> Host<'y> {
    pub(super) fn new(
        node: usize,
        nodes: usize,
        yielder: &'y Yielder<Answer, Request>,
        shared: Rc<Shared>,
    ) -> Self {
        Self {
            node,
            nodes,
            yielder,
            shared,
            agreements: Cell::new(0),
        }
    }

    /// Returns this node's number.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Time {
        self.shared.now.get()
    }

    /// Returns the virtual time in the driver's type.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now().ns())
    }

    /// Returns the two pins of the node's port, of version 1.
    pub fn pins(&self) -> (Pin<'_>, Pin<'_>) {
        (self.pin(0), self.pin(0))
    }

    /// Returns a line of the node's port, outward or inward by its use; for the numbers see `fpga_model::channels`.
    pub fn pin(&self, line: usize) -> Pin<'_> {
        Pin { host: self, line }
    }

    /// Computes for this time.
    pub fn compute(&self, time: Time) {
        self.ask(Request::Compute(time));
    }

    /// Between two polls: assumes reads without a gap between them, and skips those that would sample the same level as the last one,
    /// until the level at the connector changes or for at most `limit`.
    pub fn watch(&self, limit: Option<Time>) {
        let until = limit.map(|limit| self.now() + limit);
        self.ask(Request::Watch { until });
    }

    /// Reports to the observer that the program enters the barrier.
    pub fn enter(&self) {
        self.ask(Request::Enter);
    }

    /// Reports to the observer that the program has left the barrier.
    pub fn leave(&self) {
        self.ask(Request::Leave);
    }

    /// A software barrier of all nodes.
    pub fn fence(&self) -> Result<(), FenceFailed> {
        match self.ask(Request::Fence) {
            Some(Answer::FenceFailed) => Err(FenceFailed {
                dead: self.shared.dead.borrow().iter().copied().collect(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns `mine` if the step succeeded at every node; else all nodes return the message of the first node that reported an error.
    pub fn agree<T>(&self, mine: Result<T, String>) -> Result<T, Disagreement> {
        let number = self.agreements.get();
        self.agreements.set(number + 1);
        let complaint = mine.as_ref().err().map(|sentence| Disagreement {
            node: self.node,
            sentence: sentence.clone(),
        });
        {
            let mut complaints = self.shared.complaints.borrow_mut();
            if complaints.len() <= number {
                complaints.resize(number + 1, Vec::new());
            }
            complaints[number].extend(complaint);
        }
        let fenced = self.fence();
        let complaints = self.shared.complaints.borrow();
        let first = complaints[number].iter().min_by_key(|said| said.node);
        let own = |sentence| Disagreement {
            node: self.node,
            sentence,
        };
        match (first, fenced) {
            (Some(said), _) => Err(said.clone()),
            (None, Err(e)) => Err(own(format!("the software fence failed: {e}"))),
            (None, Ok(())) => mine.map_err(own),
        }
    }

    /// Suspends the program; does nothing on a node that has died, whose program is being unwound.
    fn ask(&self, request: Request) -> Option<Answer> {
        let gone = self.shared.over.get() || self.shared.dead.borrow().contains(&self.node);
        (!gone).then(|| self.yielder.suspend(request))
    }
}

/// The error of an agreement: at least one node reported an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The first node that reported one.
    pub node: usize,
    /// Its message.
    pub sentence: String,
}

/// Not every node entered a software fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceFailed {
    dead: Vec<usize>,
}

impl fmt::Display for FenceFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dead: Vec<_> = self.dead.iter().map(ToString::to_string).collect();
        match dead.as_slice() {
            [] => f.write_str("a node has ended its program"),
            [one] => write!(f, "node {one} has died"),
            many => write!(f, "nodes {} have died", many.join(", ")),
        }
    }
}

impl std::error::Error for FenceFailed {}

/// A pin of a node's port, as embedded-hal defines it.
pub struct Pin<'h> {
    host: &'h Host<'h>,
    line: usize,
}

/// The port of a machine that has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Down;

impl Error for Down {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

impl ErrorType for Pin<'_> {
    type Error = Down;
}

impl Pin<'_> {
    fn write(&mut self, high: bool) -> Result<(), Down> {
        let line = self.line;
        let done = self.host.ask(Request::Write { line, high });
        done.map(drop).ok_or(Down)
    }
}

impl OutputPin for Pin<'_> {
    fn set_low(&mut self) -> Result<(), Down> {
        self.write(false)
    }

    fn set_high(&mut self) -> Result<(), Down> {
        self.write(true)
    }
}

impl InputPin for Pin<'_> {
    fn is_high(&mut self) -> Result<bool, Down> {
        match self.host.ask(Request::Read { line: self.line }) {
            Some(Answer::Level(high)) => Ok(high),
            _ => Err(Down),
        }
    }

    fn is_low(&mut self) -> Result<bool, Down> {
        self.is_high().map(|high| !high)
    }
}

/// Pauses of the serial lines take virtual time.
pub struct Delay<'h>(pub &'h Host<'h>);

impl DelayNs for Delay<'_> {
    fn delay_ns(&mut self, ns: u32) {
        self.0.compute(Time::from_ns(ns.into()));
    }
}
