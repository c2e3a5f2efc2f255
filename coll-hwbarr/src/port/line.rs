//! A node's end of the eureka line beside the barrier, without its pin types: see `barrier_driver::Eureka`.

use super::Fence;
use barrier_driver::{Eureka, Found};
use embedded_hal::digital::{InputPin, OutputPin};
use std::task::Poll;

/// An open end of the line.
pub trait Line {
    /// This node has found it: the line is high when this returns; true if it was the first of the round.
    fn raise(&mut self) -> Result<bool, String>;

    /// Whether a node has found it.
    fn is_found(&mut self) -> Result<bool, String>;

    /// Lowers this node's wire, before it enters the barrier that ends the round.
    fn rest(&mut self) -> Result<(), String>;
}

/// How far a node is with its end.
#[derive(Default)]
pub enum End {
    #[default]
    Unopened,
    Open(Box<dyn Line>),
    /// All members do without.
    Refused,
}

/// The wires of an end that is not open yet.
pub trait LineWires {
    /// Opens it around `fence`, which it calls once.
    fn open(self: Box<Self>, fence: Fence) -> Result<Box<dyn Line>, String>;
}

/// The wire to the line and the two from it.
pub struct Three<O, I> {
    pub out: O,
    pub found: I,
    pub first: I,
}

/// So often the line is looked at after this node's wire has risen; a port's access takes longer than the line's few edges.
const LOOKS: usize = 1000;

impl<O, I> LineWires for Three<O, I>
where
    O: OutputPin + 'static,
    I: InputPin<Error = O::Error> + 'static,
{
    fn open(self: Box<Self>, fence: Fence) -> Result<Box<dyn Line>, String> {
        let Three { out, found, first } = *self;
        let line = Eureka::open(out, found, first, fence).map_err(|e| e.to_string())?;
        Ok(Box::new(line))
    }
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Line for Eureka<O, I> {
    fn raise(&mut self) -> Result<bool, String> {
        self.announce().map_err(|e| e.to_string())?;
        for _ in 0..LOOKS {
            if let Poll::Ready(Found { first }) = self.poll().map_err(|e| e.to_string())? {
                return Ok(first);
            }
        }
        Err(format!(
            "the line is low at {LOOKS} looks after this node has raised its wire: a wire is cut or stuck"
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
