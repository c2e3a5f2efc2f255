//! One node's end of the eureka line (crate `fpga-model`, `eureka`): one of the nodes has found it, and all hear so.
//!
//! It lies beside a barrier, whose driver is the caller's. A round is
//!
//! ```text
//! announce, or poll until a node has  --> rest --> the barrier --> the next round
//! ```
//!
//! The board keeps the line high until that barrier releases, so no node misses it, and lowers it at the next edge of its
//! clock, long before a port can be read. Every node calls [`rest`](Eureka::rest) before it enters, so behind the barrier all
//! wires are low and a new round begins. Several nodes may announce in the same round, and exactly one is told that it was
//! first. A node that gives up the search enters the barrier, and may go on to poll in it.

use crate::PinFault;
use core::fmt;
use core::task::Poll;
use embedded_hal::digital::{InputPin, OutputPin};

/// The driver of one node's three wires.
///
/// Dropping lowers the wire, so a node that unwinds does not hold the line for the others.
#[derive(Debug)]
pub struct Eureka<O: OutputPin, I: InputPin<Error = O::Error>> {
    out: O,
    found: I,
    first: I,
    announced: bool,
}

/// What a node learns when one of the nodes has announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// This node was the first.
    pub first: bool,
}

/// Why the line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EurekaError<E, F> {
    /// The port refused an access.
    Pin(PinFault<E>),
    /// The software fence that all nodes meet in failed.
    Fence(F),
    /// The line is high although every node has lowered its wire.
    NotLow,
}

impl<E: fmt::Debug, F: fmt::Display> fmt::Display for EurekaError<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::Fence(e) => write!(f, "the nodes could not meet: {e}"),
            Self::NotLow => f.write_str(
                "the eureka line is high although every node has lowered its wire: a wire is stuck, floats or is inverted",
            ),
        }
    }
}

impl<E: fmt::Debug, F: fmt::Debug + fmt::Display> core::error::Error for EurekaError<E, F> {}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Eureka<O, I> {
    /// Lowers the wire, meets the other nodes in `fence`, and checks that the line is low.
    pub fn open<F>(
        out: O,
        found: I,
        first: I,
        fence: impl FnOnce() -> Result<(), F>,
    ) -> Result<Self, EurekaError<O::Error, F>> {
        let mut line = Self {
            out,
            found,
            first,
            announced: false,
        };
        line.lower().map_err(EurekaError::Pin)?;
        fence().map_err(EurekaError::Fence)?;
        match line.read().map_err(EurekaError::Pin)? {
            false => Ok(line),
            true => Err(EurekaError::NotLow),
        }
    }

    /// This node has found it: one write.
    pub fn announce(&mut self) -> Result<(), PinFault<O::Error>> {
        // Announced even if the port fails, for the level may have reached the wire.
        self.announced = true;
        self.out.set_high().map_err(PinFault::Write)
    }

    /// Reads the line once: ready when a node has found it.
    pub fn poll(&mut self) -> Result<Poll<Found>, PinFault<O::Error>> {
        if !self.read()? {
            return Ok(Poll::Pending);
        }
        // Both rise at one edge. A node that has not announced does not ask, which saves an access.
        let first = self.announced && self.first.is_high().map_err(PinFault::Read)?;
        Ok(Poll::Ready(Found { first }))
    }

    /// The round is over for this node, which now enters the barrier.
    ///
    /// A node that has announced polls first: a wire that is lowered before the board has seen it says nothing.
    pub fn rest(&mut self) -> Result<(), PinFault<O::Error>> {
        match self.announced {
            true => self.lower(),
            false => Ok(()),
        }
    }

    fn lower(&mut self) -> Result<(), PinFault<O::Error>> {
        self.out.set_low().map_err(PinFault::Write)?;
        self.announced = false;
        Ok(())
    }

    fn read(&mut self) -> Result<bool, PinFault<O::Error>> {
        self.found.is_high().map_err(PinFault::Read)
    }
}

impl<O: OutputPin, I: InputPin<Error = O::Error>> Drop for Eureka<O, I> {
    fn drop(&mut self) {
        // No caller is left to tell.
        let _ = self.lower();
    }
}
