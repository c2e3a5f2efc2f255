//! A node's connection to the eureka line: `barrier_driver::Eureka` without its pin types.

use super::Fence;
use barrier_driver::{Eureka, Found};
use embedded_hal::digital::{InputPin, OutputPin};
use std::task::Poll;

/// A node's open connection to the eureka line.
pub trait Line {
    /// Raises the line and waits until it is high. Returns true if this node was the round's first.
    fn raise(&mut self) -> Result<bool, String>;

    /// Returns true if a node has raised the line.
    fn is_found(&mut self) -> Result<bool, String>;

    /// Lowers this node's wire, before it enters the barrier that ends the round.
    fn rest(&mut self) -> Result<(), String>;
}

/// The state of a node's connection to the line.
#[derive(Default)]
pub enum LineEnd {
    #[default]
    Unopened,
    Open(Box<dyn Line>),
    /// The members do not use the line, because it could not be opened at all nodes.
    Refused,
}

/// A node's wires of the line, which are not open yet.
pub trait LineWires {
    /// Opens the wires at this node; calls `fence` one time.
    fn open(self: Box<Self>, fence: Fence) -> Result<Box<dyn Line>, String>;
}

/// The wire to the line and the two wires from it.
pub struct EurekaPins<O, I> {
    pub out: O,
    pub found: I,
    pub first: I,
}

/// Number of polls in which the line must rise after this node's wire;
/// one port access takes longer than the line's few clock edges.
const POLLS: usize = 1000;

impl<O, I> LineWires for EurekaPins<O, I>
where
    O: OutputPin + 'static,
    I: InputPin<Error = O::Error> + 'static,
{
    fn open(self: Box<Self>, fence: Fence) -> Result<Box<dyn Line>, String> {
        let EurekaPins { out, found, first } = *self;
        let line = Eureka::open(out, found, first, fence).map_err(|e| e.to_string())?;
        Ok(Box::new(line))
    }
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Line for Eureka<O, I> {
    fn raise(&mut self) -> Result<bool, String> {
        self.announce().map_err(|e| e.to_string())?;
        for _ in 0..POLLS {
            if let Poll::Ready(Found { first }) = self.poll().map_err(|e| e.to_string())? {
                return Ok(first);
            }
        }
        Err(format!(
            "the line is low in {POLLS} polls after this node has raised its wire: a wire is cut or stuck"
        ))
    }

    fn is_found(&mut self) -> Result<bool, String> {
        self.poll()
            .map(|found| found.is_ready())
            .map_err(|e| e.to_string())
    }

    fn rest(&mut self) -> Result<(), String> {
        Eureka::rest(self).map_err(|e| e.to_string())
    }
}
