//! A simulated port with a faulty wire at one node, for tests.

use super::line::{EurekaPins, LineWires};
use super::sim::Sim;
use super::{Fence, Mark, Pair, Port, Wire};
use crate::choice::SimFiles;
use crate::defect::Defect;
use barrier_board::live::EurekaWires;
use barrier_driver::{InputEvents, ToggleBarrier};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin, PinState};
use mpi_core::plugin::guest::Comm;
use std::cell::Cell;
use std::rc::Rc;

/// Number of level changes before the fault occurs; the self-test makes fewer.
const HEARD: u32 = 20;

pub struct Broken {
    sim: Sim,
    defect: Option<Defect>,
    /// True if the fault is in the eureka line; the port must then have one.
    has_line: bool,
}

impl Broken {
    pub fn attach(comm: &Comm, defect: Defect, node: u32) -> Result<Broken, String> {
        let sim = Sim::attach(comm, &SimFiles::default(), None)?;
        Ok(Broken {
            sim,
            defect: (comm.rank() == node).then_some(defect),
            has_line: defect == Defect::Line,
        })
    }
}

impl Pair for Broken {
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String> {
        let (out, input) = self.sim.pins()?;
        let follows = (self.defect == Some(Defect::Floating)).then(|| Rc::new(Cell::new(false)));
        let changes = (self.defect == Some(Defect::Deaf)).then(|| Rc::new(Cell::new(0)));
        let input = Input {
            input,
            follows: follows.clone(),
            changes: changes.clone(),
            heard: false,
        };
        let out = Output {
            out,
            cut: self.defect == Some(Defect::Cut),
            follows,
            changes,
        };
        Ok(Box::new(
            ToggleBarrier::open(out, input, fence).map_err(|e| e.to_string())?,
        ))
    }
}

impl Port for Broken {
    fn has_line(&self) -> bool {
        self.has_line
    }

    fn line(&mut self) -> Result<Box<dyn LineWires>, String> {
        let EurekaWires { out, found, first } = self.sim.line_wires()?;
        let is_stuck = self.defect == Some(Defect::Line);
        let wire = |input, is_stuck| Told { input, is_stuck };
        Ok(Box::new(EurekaPins {
            out,
            found: wire(found, is_stuck),
            first: wire(first, false),
        }))
    }

    fn mark(&mut self, mark: Mark) {
        self.sim.mark(mark);
    }
}

/// A wire from the eureka line, which is stuck high at the faulty node.
struct Told<I> {
    input: I,
    is_stuck: bool,
}

impl<I: ErrorType> ErrorType for Told<I> {
    type Error = I::Error;
}

impl<I: InputPin> InputPin for Told<I> {
    fn is_high(&mut self) -> Result<bool, I::Error> {
        Ok(self.input.is_high()? || self.is_stuck)
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.is_high().map(|high| !high)
    }
}

struct Output<O> {
    out: O,
    cut: bool,
    follows: Option<Rc<Cell<bool>>>,
    /// Number of times that the output's level was set; `Some` if the fault depends on it.
    changes: Option<Rc<Cell<u32>>>,
}

struct Input<I> {
    input: I,
    follows: Option<Rc<Cell<bool>>>,
    changes: Option<Rc<Cell<u32>>>,
    /// The last level that was read before the wire broke.
    heard: bool,
}

/// A broken wire delivers no interrupt.
impl<I: InputPin> InputEvents for Input<I> {}

impl<O: ErrorType> ErrorType for Output<O> {
    type Error = O::Error;
}

impl<I: ErrorType> ErrorType for Input<I> {
    type Error = I::Error;
}

impl<O: OutputPin> OutputPin for Output<O> {
    fn set_low(&mut self) -> Result<(), O::Error> {
        self.set_state(PinState::Low)
    }

    fn set_high(&mut self) -> Result<(), O::Error> {
        self.set_state(PinState::High)
    }

    fn set_state(&mut self, state: PinState) -> Result<(), O::Error> {
        if let Some(follows) = &self.follows {
            follows.set(state == PinState::High);
        }
        if let Some(changes) = &self.changes {
            changes.set(changes.get() + 1);
        }
        if self.cut {
            Ok(())
        } else {
            self.out.set_state(state)
        }
    }
}

impl<I: InputPin> InputPin for Input<I> {
    fn is_high(&mut self) -> Result<bool, I::Error> {
        if let Some(level) = &self.follows {
            return Ok(level.get());
        }
        let is_deaf = self.changes.as_ref().is_some_and(|n| n.get() > HEARD);
        if !is_deaf {
            self.heard = self.input.is_high()?;
        }
        Ok(self.heard)
    }

    fn is_low(&mut self) -> Result<bool, I::Error> {
        self.is_high().map(|high| !high)
    }
}
