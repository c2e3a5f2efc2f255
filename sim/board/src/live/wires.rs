//! The wires of one node of a live board, as embedded-hal pins.
//!
//! A node's wires belong to one process at a time ([`Claim`]).
//! As at a real port, dropping the pins leaves the level on the wire; restoring it is the driver's duty.

use super::board::Board;
use super::claim::{Claim, WiresError};
use super::engine::Engine;
use super::slots;
use super::state::{SLOT_WORDS, State};
use crate::event::What;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use std::convert::Infallible;
use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;

/// A node's right to commit to a board of version 1.
pub(super) type Writer<'m> = slots::Writer<'m, State, Engine<'m>, SLOT_WORDS>;

/// The result of [`Board::wires`]: three handles that may go to different threads.
#[derive(Debug)]
pub struct Wires<'m, R> {
    /// The wire to the barrier.
    pub out: OutWire<'m, R>,
    /// The wire from the barrier.
    pub input: InWire<'m, R>,
    /// The handle by which the node records marks: program entered, program left.
    pub marks: Marks<'m, R>,
}

impl<'m> Board<'m> {
    /// Returns the handle that records a node's changes of its wire to the eureka line.
    /// The handle shares the claim of the node's wires at the line.
    pub(super) fn noting(&self, node: usize, claim: Arc<Claim<'m>>) -> Writer<'m> {
        self.core().writer(node, 3, claim)
    }

    /// Claims the wires of `node` and returns one of the node's handles, which holds the claim.
    pub(super) fn writer(&self, node: usize) -> Result<Writer<'m>, WiresError> {
        let claim = self.core().take(node)?;
        Ok(self.core().writer(node, 0, claim))
    }

    /// Claims the wires of `node`.
    ///
    /// The handle that commits a release calls `ring(other)` for every other node.
    /// If that node's process sleeps, `ring` must wake it;
    /// if not, `ring` must return without waiting.
    pub fn wires<R: Fn(usize) + Clone>(
        &self,
        node: usize,
        ring: R,
    ) -> Result<Wires<'m, R>, WiresError> {
        let claim = self.core().take(node)?;
        let writer = |hand| self.core().writer(node, hand, claim.clone());
        Ok(Wires {
            out: OutWire {
                writer: writer(0),
                ring: ring.clone(),
            },
            input: InWire {
                writer: writer(1),
                ring: ring.clone(),
            },
            marks: Marks {
                writer: writer(2),
                ring,
            },
        })
    }
}

#[cfg(test)]
impl Board<'_> {
    /// Drives a node's pin with the handle that its owner uses for marks,
    /// as if the owner was killed.
    pub(super) fn drive_as_if_killed(&self, node: usize, high: bool) {
        let claim = Arc::new(Claim::by_no_process(self.core().slots().claim(node)));
        self.core().writer(node, 2, claim).drive(&|| (), high);
    }
}

impl Writer<'_> {
    /// Records a mark if the board has a record.
    pub(super) fn mark(&mut self, released: &impl Fn(), what: What) {
        if self.core().is_recording() {
            self.touch(released, |state, now| state.note(now, what));
        }
    }

    /// Returns the level of this pin's wire.
    pub(super) fn level(&self) -> bool {
        self.core().current().inputs >> self.node() & 1 == 1
    }

    /// Drives the pin's wire. If that makes a release inevitable,
    /// the call waits for the three edges and commits the release:
    /// see "Wake-ups" at the head of [`live`](super).
    pub(super) fn drive(&mut self, released: &impl Fn(), high: bool) {
        // A write of the current level changes nothing.
        if self.level() == high {
            return;
        }
        let node = self.node();
        let mut state = self.touch(released, |state, now| state.set_wire(now, node, high));
        // The barrier cannot release twice without this node,
        // so the number of releases changes once.
        // With faulty gates that release twice, the loop ends at the first release.
        let before = state.machine.releases();
        while state.machine.releases() == before
            && let Some(due) = state.release_due_ns(self.core().engine())
        {
            if self.core().now_ns() < due {
                spin_loop();
                state = self.core().current();
            } else {
                state = self.touch(released, |_, _| ());
            }
        }
    }

    /// Returns the level of the board's output now.
    pub(super) fn output(&mut self, released: &impl Fn()) -> bool {
        if let Some(level) = self.core().settled_output() {
            return level;
        }
        let mut state = self.core().current();
        // If no clock edge has passed since the last commit, there is nothing to commit.
        if state.is_behind(self.core().now_ns()) {
            state = self.touch(released, |_, _| ());
        }
        state.machine.outputs() != 0
    }
}

/// Returns a function that wakes all nodes of a board except the handle's own node.
pub(super) fn others<'r, R: Fn(usize)>(writer: &Writer<'_>, ring: &'r R) -> impl Fn() + use<'r, R> {
    let (nodes, me) = (writer.core().nodes(), writer.node());
    move || ring_others(nodes, me, ring)
}

/// Wakes all of `nodes` nodes except node `me`.
pub(super) fn ring_others(nodes: usize, me: usize, ring: &impl Fn(usize)) {
    (0..nodes).filter(|&other| other != me).for_each(ring);
}

/// The wire from a node to the barrier.
pub struct OutWire<'m, R> {
    writer: Writer<'m>,
    ring: R,
}

/// The wire from the barrier to a node.
pub struct InWire<'m, R> {
    writer: Writer<'m>,
    ring: R,
}

/// The handle that records when a node's program enters and leaves the barrier.
/// On a board without a record it does nothing.
pub struct Marks<'m, R> {
    writer: Writer<'m>,
    ring: R,
}

impl<R> fmt::Debug for OutWire<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wire from {:?}", self.writer)
    }
}

impl<R> fmt::Debug for InWire<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wire to {:?}", self.writer)
    }
}

impl<R> fmt::Debug for Marks<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "marks of {:?}", self.writer)
    }
}

impl<R: Fn(usize)> Marks<'_, R> {
    /// Records that the node's program has entered the barrier.
    pub fn enter(&mut self) {
        let node = self.writer.node();
        let released = others(&self.writer, &self.ring);
        self.writer.mark(&released, What::Enter { node });
    }

    /// Records that the node's program leaves the barrier.
    pub fn leave(&mut self) {
        let node = self.writer.node();
        let released = others(&self.writer, &self.ring);
        self.writer.mark(&released, What::Leave { node });
    }
}

impl<R> ErrorType for OutWire<'_, R> {
    type Error = Infallible;
}

impl<R> ErrorType for InWire<'_, R> {
    type Error = Infallible;
}

impl<R: Fn(usize)> OutputPin for OutWire<'_, R> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        let released = others(&self.writer, &self.ring);
        self.writer.drive(&released, false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        let released = others(&self.writer, &self.ring);
        self.writer.drive(&released, true);
        Ok(())
    }
}

/// The board is in memory and raises no interrupt.
impl<R: Fn(usize)> barrier_driver::InputEvents for InWire<'_, R> {}

impl<R: Fn(usize)> InputPin for InWire<'_, R> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let released = others(&self.writer, &self.ring);
        Ok(self.writer.output(&released))
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}
