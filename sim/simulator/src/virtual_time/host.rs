//! The simulated computer of a node: the interface of the node's program to the simulated world.
//!
//! The program is ordinary sequential code and uses the real driver.
//! The program is a coroutine: a port access, a fence or a computation suspends the program,
//! and the world resumes it when the virtual time of this access, fence or computation has passed.
//! So sixty nodes need one thread and no locks, and all events of a run have a fixed order.

use super::Time;
use corosensei::Yielder;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{Error, ErrorKind, ErrorType, InputPin, OutputPin};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// The program of a node; it runs on the node's [`Host`].
pub type Program = Box<dyn FnOnce(&Host<'_>)>;

/// A request of a program to the world; most requests suspend the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// A write access that drives this level at its end.
    Write { line: usize, high: bool },
    /// A read access that samples the level at its end.
    Read { line: usize },
    /// Compute for this time.
    Compute(Time),
    /// Wait for a change at the input, at most until this time.
    Watch { until: Option<Time> },
    /// Wait until all nodes have entered a software barrier (*fence*).
    Fence,
    /// Report that the program enters the barrier; does not suspend.
    Enter,
    /// Report that the program has left the barrier; does not suspend.
    Leave,
}

/// The world's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The request is complete.
    Done,
    /// The level that the read sampled.
    Level(bool),
    /// The fence failed: a node has ended or died without entering it.
    FenceFailed,
}

/// The state shared by the nodes and the world.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The present virtual time, which is the time of the present event.
    pub now: Cell<Time>,
    /// The nodes that have died.
    pub dead: RefCell<BTreeSet<usize>>,
    /// True if the simulation has ended and the unfinished programs are being unwound.
    pub over: Cell<bool>,
    /// The errors that nodes reported in each agreement, indexed by the agreement's number.
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

    /// Returns the present virtual time.
    pub fn now(&self) -> Time {
        self.shared.now.get()
    }

    /// Returns the present virtual time in the driver's type.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now().ns())
    }

    /// Returns the outward and the inward pin of a port of version 1.
    pub fn pins(&self) -> (Pin<'_>, Pin<'_>) {
        (self.pin(0), self.pin(0))
    }

    /// Returns the pin of the outward line and of the inward line with the number `line`.
    /// For the numbers of the lines see `fpga_model::channels`.
    pub fn pin(&self, line: usize) -> Pin<'_> {
        Pin { host: self, line }
    }

    /// Suspends the program while it computes for `time`.
    pub fn compute(&self, time: Time) {
        self.ask(Request::Compute(time));
    }

    /// Polls the input: waits until the level at the connector changes, or for at most `limit`.
    /// A real program would read without pauses; the simulation skips reads of an unchanged level.
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

    /// Enters a software barrier of all nodes, and returns when all nodes have entered.
    pub fn fence(&self) -> Result<(), FenceFailed> {
        match self.ask(Request::Fence) {
            Some(Answer::FenceFailed) => Err(FenceFailed {
                dead: self.shared.dead.borrow().iter().copied().collect(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns `mine` if no node has an error.
    /// Otherwise all nodes return the message of the first node that reported an error.
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

    /// Suspends the program until the world answers.
    /// Does nothing on a node that has died, whose program is being unwound.
    fn ask(&self, request: Request) -> Option<Answer> {
        let gone = self.shared.over.get() || self.shared.dead.borrow().contains(&self.node);
        (!gone).then(|| self.yielder.suspend(request))
    }
}

/// The error of an agreement in which at least one node reported an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The first node that reported an error.
    pub node: usize,
    /// The message of that node.
    pub sentence: String,
}

/// The error of a software fence that some node did not enter.
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

/// The error of an access to a port whose machine has died.
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

/// Waits in virtual time; the driver uses it between writes to the serial lines.
pub struct Delay<'h>(pub &'h Host<'h>);

impl DelayNs for Delay<'_> {
    fn delay_ns(&mut self, ns: u32) {
        self.0.compute(Time::from_ns(ns.into()));
    }
}
