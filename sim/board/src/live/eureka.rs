//! The wires of one node at the eureka line of a [`Board`], as embedded-hal pins for `barrier_driver::Eureka`.
//!
//! A node's wires to the line belong to one process at a time, like its wires to the barrier, and have a separate claim.
//! Reading changes nothing in the memory.
//! A rising line wakes no node: nodes that search for a result poll the line.
//! A board with a record records each change of a wire, by a commit on the board.
//! If that commit contains a release, it also wakes the nodes.

use super::board::Board;
use super::claim::{Claim, WiresError};
use super::line::{LINE_WORDS, Line, LineState};
use super::shared::{HeadWord, Shared};
use super::wires::{self, others};
use crate::event::What;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use std::convert::Infallible;
use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;

/// The result of [`Board::eureka`]: three handles that may go to different threads.
#[derive(Debug)]
pub struct EurekaWires<'m, R> {
    /// The wire by which the node raises the line.
    pub out: RaiseWire<'m, R>,
    /// The wire from the eureka line that all nodes read.
    pub found: EurekaInput<'m>,
    /// The wire to this node only; high if this node raised the line first.
    pub first: EurekaInput<'m>,
}

/// The wire from a node to the line.
pub struct RaiseWire<'m, R> {
    writer: Writer<'m>,
    notes: wires::Writer<'m>,
    ring: R,
}

/// A wire from the line to a node.
#[derive(Debug)]
pub struct EurekaInput<'m> {
    writer: Writer<'m>,
    signal: EurekaSignal,
}

/// Selects one of the two wires from the eureka line to a node.
#[derive(Clone, Copy, Debug)]
enum EurekaSignal {
    Found,
    First,
}

/// A node's handle of the eureka line.
/// Only the node's single [`RaiseWire`] commits through this handle.
#[derive(Clone)]
struct Writer<'m> {
    board: Board<'m>,
    line: Line<'m>,
    node: usize,
    _claim: Arc<Claim<'m>>,
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} at the eureka line", self.node)
    }
}

impl<'m> Board<'m> {
    /// Claims the wires of `node` at the board's eureka line.
    /// When a commit contains a release, `ring` wakes the other nodes, as in [`wires`](Self::wires).
    pub fn eureka<R: Fn(usize)>(
        &self,
        node: usize,
        ring: R,
    ) -> Result<EurekaWires<'m, R>, WiresError> {
        let (nodes, line) = (self.nodes(), self.line());
        let line = line.filter(|_| node < nodes);
        let line = line.ok_or(WiresError::NoSuchNode { node, nodes })?;
        let claim = Arc::new(Claim::take(line.claim(node), node)?);
        let notes = self.noting(node, claim.clone());
        let writer = Writer {
            board: *self,
            line,
            node,
            _claim: claim,
        };
        Ok(EurekaWires {
            out: RaiseWire {
                writer: writer.clone(),
                notes,
                ring,
            },
            found: EurekaInput {
                writer: writer.clone(),
                signal: EurekaSignal::Found,
            },
            first: EurekaInput {
                writer,
                signal: EurekaSignal::First,
            },
        })
    }
}

impl Writer<'_> {
    /// Returns the present state of the line, and the head that a commit has to replace.
    fn now(&self) -> (HeadWord, LineState) {
        let (head, mut state) = self.line.copy();
        // Releases and time are read after the copy, so both are at least as recent as the copy.
        let (releases, now) = (self.board.committed_releases(), self.board.core().now_ns());
        state.run_until(now, releases);
        (head, state)
    }

    /// Drives the node's wire, and calls `changed` if the level changes.
    /// When the call returns, a rising wire has passed the line's synchroniser,
    /// so the node reads the line as high.
    fn say(&mut self, high: bool, changed: impl FnOnce()) {
        // A write of the current level changes nothing.
        if self.line.copy().1.says(self.node) == high {
            return;
        }
        let slots = Shared::<LINE_WORDS>::slots_of(self.node);
        let seen = loop {
            let (head, mut state) = self.now();
            state.say(self.node, high);
            if self.line.commit(head, slots, state) {
                break state.seen_ns();
            }
        };
        changed();
        while high && self.board.core().now_ns() < seen {
            spin_loop();
        }
    }
}

impl<R> fmt::Debug for RaiseWire<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wire from {:?}", self.writer)
    }
}

impl<R: Fn(usize)> RaiseWire<'_, R> {
    fn say(&mut self, high: bool) {
        let Self {
            writer,
            notes,
            ring,
        } = self;
        let node = writer.node;
        writer.say(high, || {
            let released = others(notes, ring);
            notes.mark(&released, What::Say { node, high });
        });
    }
}

impl<R> ErrorType for RaiseWire<'_, R> {
    type Error = Infallible;
}

impl ErrorType for EurekaInput<'_> {
    type Error = Infallible;
}

impl<R: Fn(usize)> OutputPin for RaiseWire<'_, R> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.say(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.say(true);
        Ok(())
    }
}

impl InputPin for EurekaInput<'_> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let (_, line) = self.writer.now();
        Ok(match self.signal {
            EurekaSignal::Found => line.found(),
            EurekaSignal::First => line.first() == Some(self.writer.node),
        })
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}
