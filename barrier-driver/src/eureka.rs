//! One node's end of the eureka line (crate `fpga-model`, `eureka`): a global flag that any node can raise.
//!
//! The line is used together with a barrier, which the caller drives.
//! A round consists of these steps:
//!
//! ```text
//! announce, or poll until a node has  --> rest --> the barrier --> the next round
//! ```
//!
//! The board keeps the line high until the round's barrier releases, so no node misses it, and lowers the line at the next edge of the
//! board's clock, before any port could read it again.
//! Every node calls [`rest`](Eureka::rest) before it enters the barrier, so after the barrier all
//! wires are low and a new round begins. Several nodes may announce in the same round; exactly one of them reads that it was
//! the first. A node that stops searching enters the barrier, and may continue to poll the line while it waits there.

use crate::PinFault;
use core::fmt;
use core::task::Poll;
use embedded_hal::digital::{InputPin, OutputPin};

/// The driver of one node's three wires.
///
/// Drop lowers the wire, so a node that panics does not keep the line high for the others.
#[derive(Debug)]
pub struct Eureka<O: OutputPin, I: InputPin<Error = O::Error>> {
    out: O,
    found: I,
    first: I,
    announced: bool,
}

/// The result of a poll when a node has announced in this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// True if this node was the first to raise the line.
    pub first: bool,
}

/// The reason why the line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EurekaError<E, F> {
    /// The port refused an access.
    Pin(PinFault<E>),
    /// The software fence of all nodes failed.
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
    /// Lowers the wire, synchronises with the other nodes in `fence`, and checks that the line is low.
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

    /// Raises the line for all nodes, by one write.
    pub fn announce(&mut self) -> Result<(), PinFault<O::Error>> {
        // The node counts as announced even if the port fails,
        // because the level may have reached the wire.
        self.announced = true;
        self.out.set_high().map_err(PinFault::Write)
    }

    /// Reads the line once; ready if a node has announced.
    pub fn poll(&mut self) -> Result<Poll<Found>, PinFault<O::Error>> {
        if !self.read()? {
            return Ok(Poll::Pending);
        }
        // The line and the `first` wire rise at the same edge. A node that has not announced is not the first, and skips the second read.
        let first = self.announced && self.first.is_high().map_err(PinFault::Read)?;
        Ok(Poll::Ready(Found { first }))
    }

    /// Ends the round for this node, which must enter the barrier next.
    ///
    /// If this node has announced, it must poll first: lowering the wire before the board has sampled it would lose the announcement.
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
        // No caller can receive the error.
        let _ = self.lower();
    }
}
