//! The wires of one node, as embedded-hal pins.
//!
//! A node's wires belong to one process at a time.
//! If a process dies without releasing its claim, another process can take the claim over.
//! As at a real port, dropping the pins leaves the level on the wire; restoring it is the driver's duty.

use super::board::Board;
use super::shared::{HANDS, Shared};
use super::state::State;
use crate::event::What;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use rustix::process::{Pid, getpid, test_kill_process};
use std::convert::Infallible;
use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;

/// The result of [`Board::wires`]: three handles that may go to different threads.
#[derive(Debug)]
pub struct Wires<'m, R> {
    /// The wire to the barrier.
    pub out: OutWire<'m, R>,
    /// The wire from the barrier.
    pub input: InWire<'m, R>,
    /// The marks that the node sets in the record.
    pub marks: Marks<'m, R>,
}

/// The reason why the wires of a node are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WiresError {
    /// The board has no such node.
    NoSuchNode {
        /// The requested node.
        node: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// A living process holds them.
    Taken {
        /// The requested node.
        node: usize,
        /// The process.
        pid: u32,
    },
}

impl fmt::Display for WiresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchNode { node, nodes } => {
                write!(
                    f,
                    "the board has no node {node}: its {nodes} nodes count from 0"
                )
            }
            Self::Taken { node, pid } => {
                write!(f, "the wires of node {node} are in use by process {pid}")
            }
        }
    }
}

impl std::error::Error for WiresError {}

/// The nodes of a board that a living process has claimed, bit `n` for node `n`.
pub(super) fn claimed<'a>(nodes: usize, claim: impl Fn(usize) -> &'a AtomicU32) -> u64 {
    let has_owner = |node: &usize| match claim(*node).load(Ordering::Relaxed) {
        0 => false,
        pid => is_alive(pid),
    };
    let owned = (0..nodes).filter(has_owner);
    owned.fold(0, |mask, node| mask | 1 << node)
}

impl<'m> Board<'m> {
    /// Returns the nodes whose wires a living process holds, bit `n` for node `n`.
    pub(super) fn claimed(&self) -> u64 {
        claimed(self.nodes(), |node| self.claim(node))
    }

    /// Returns the handle that records a node's changes of the eureka line; it shares the claim of the wires there.
    pub(super) fn noting(&self, node: usize, claim: Arc<Claim<'m>>) -> Writer<'m> {
        Writer::of(*self, node, node * HANDS + 3, claim)
    }

    /// Claims a node's slots.
    fn take(&self, node: usize) -> Result<Arc<Claim<'m>>, WiresError> {
        let nodes = self.nodes();
        if node >= nodes {
            return Err(WiresError::NoSuchNode { node, nodes });
        }
        Ok(Arc::new(Claim::take(self.claim(node), node)?))
    }

    /// Claims the wires of `node`, as one handle.
    pub(super) fn writer(&self, node: usize) -> Result<Writer<'m>, WiresError> {
        let claim = self.take(node)?;
        Ok(Writer::of(*self, node, node * HANDS, claim))
    }

    /// Claims the wires of `node`.
    ///
    /// The handle that commits a release calls `ring(other)` for every other node;
    /// it must wake that node's process if it sleeps, and return at once if it does not.
    pub fn wires<R: Fn(usize) + Clone>(
        &self,
        node: usize,
        ring: R,
    ) -> Result<Wires<'m, R>, WiresError> {
        let claim = self.take(node)?;
        let writer = |which| Writer::of(*self, node, node * HANDS + which, claim.clone());
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
    /// Drives a pin with the handle that its owner uses for marks.
    pub(super) fn drive_as_if_killed(&self, node: usize, high: bool) {
        let claim = Arc::new(Claim {
            word: self.claim(node),
            // The number of no process, so nothing is released.
            me: 0,
        });
        Writer::of(*self, node, node * HANDS + 2, claim).drive(&|| (), high);
    }
}

/// This process's claim of a node's slots, released with the last handle.
#[derive(Debug)]
pub(super) struct Claim<'m> {
    word: &'m AtomicU32,
    me: u32,
}

impl<'m> Claim<'m> {
    pub(super) fn take(word: &'m AtomicU32, node: usize) -> Result<Self, WiresError> {
        let me = getpid().as_raw_nonzero().get().unsigned_abs();
        let mut holder = 0;
        loop {
            // Acquire pairs with the Release of `drop`: the previous owner has finished with the slots.
            match word.compare_exchange(holder, me, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(Self { word, me }),
                Err(other) if other != 0 && is_alive(other) => {
                    return Err(WiresError::Taken { node, pid: other });
                }
                // Released, or its owner is dead and will never write the slots: try to replace exactly that owner.
                Err(other) => holder = other,
            }
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // A child of fork that drops its copy must not release the parent's claim, hence the comparison.
        if getpid().as_raw_nonzero().get().unsigned_abs() == self.me {
            let _ = self
                .word
                .compare_exchange(self.me, 0, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// Returns true if the process exists.
pub(super) fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process of another user exists although it may not be signalled.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// The common part of the handles: a node's right to commit.
pub(super) struct Writer<'m> {
    board: Board<'m>,
    node: usize,
    /// Written only by this handle, hence every committing method takes `&mut self`.
    slots: [usize; 2],
    claim: Arc<Claim<'m>>,
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of {}", self.node, self.board.nodes())
    }
}

impl<'m> Writer<'m> {
    /// Returns handle number `writer` of the board, for this pin.
    pub(super) fn of(board: Board<'m>, node: usize, writer: usize, claim: Arc<Claim<'m>>) -> Self {
        Self {
            board,
            node,
            slots: <Shared<'_>>::slots_of(writer),
            claim,
        }
    }

    /// Records a mark, on a board with a record.
    pub(super) fn mark(&mut self, released: &impl Fn(), what: What) {
        if self.board.is_recording() {
            self.touch(released, |state, now| state.note(now, what));
        }
    }

    /// Returns a handle of a board above, for the pin of this board's output; it shares the node's claim.
    pub(super) fn above(&self, board: Board<'m>, pin: usize, writer: usize) -> Self {
        Self::of(board, pin, writer, self.claim.clone())
    }

    /// Returns the pin.
    pub(super) fn pin(&self) -> usize {
        self.node
    }

    /// Returns the level of this pin's wire.
    pub(super) fn level(&self) -> bool {
        self.board.copy().1.inputs >> self.node & 1 == 1
    }

    /// Drives the pin's wire. If that makes a release inevitable, it waits for the three edges and commits the release: see
    /// "Wake-ups" at the head of [`live`](super).
    pub(super) fn drive(&mut self, released: &impl Fn(), high: bool) {
        // A write of the current level changes nothing.
        if self.level() == high {
            return;
        }
        let node = self.node;
        let mut state = self.touch(released, |state, now| state.set_wire(now, node, high));
        // The barrier cannot release twice without this node, so the loop ends; gates that do release twice are not awaited again.
        let before = state.machine.releases();
        while state.machine.releases() == before
            && let Some(due) = state.release_due_ns(self.board.engine)
        {
            if self.board.now_ns() < due {
                spin_loop();
                state = self.board.copy().1;
            } else {
                state = self.touch(released, |_, _| ());
            }
        }
    }

    /// Returns the level of the board's output now.
    pub(super) fn output(&mut self, released: &impl Fn()) -> bool {
        if let Some(level) = self.board.settled_output() {
            return level;
        }
        let mut state = self.board.copy().1;
        // Between two edges there is nothing to commit.
        if state.is_behind(self.board.now_ns()) {
            state = self.touch(released, |_, _| ());
        }
        state.machine.outputs() != 0
    }

    /// Steps the board to the present and applies `change`; calls `released` if that commits a release.
    fn touch(&mut self, released: &impl Fn(), change: impl Fn(&mut State, u64)) -> State {
        let (has_released, state) = loop {
            let (head, before) = self.board.copy();
            // The predecessor may have died before it wrote its events.
            self.board.publish(&before);
            // Read after the copy, so times in the record increase with the commits.
            let now = self.board.now_ns();
            let mut state = before.next();
            state.run_until(self.board.engine, now);
            change(&mut state, now);
            if self.board.commit(head, self.slots, &state) {
                self.board.publish(&state);
                break (state.machine.releases() != before.machine.releases(), state);
            }
        };
        if has_released {
            // Pairs with the fence of a node that announces sleep and then reads its wire:
            // either it sees the release, or this process sees that it sleeps.
            fence(Ordering::SeqCst);
            released();
        }
        state
    }
}

/// Returns a function that wakes all nodes of a board but the handle's own.
pub(super) fn others<'r, R: Fn(usize)>(writer: &Writer<'_>, ring: &'r R) -> impl Fn() + use<'r, R> {
    let (nodes, me) = (writer.board.nodes(), writer.node);
    move || ring_others(nodes, me, ring)
}

/// Wakes all of `nodes` nodes but this one.
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

/// Records that a node's program entered and left the barrier; does nothing on a board without a record.
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
        let node = self.writer.node;
        let released = others(&self.writer, &self.ring);
        self.writer.mark(&released, What::Enter { node });
    }

    /// Records that the node's program leaves the barrier.
    pub fn leave(&mut self) {
        let node = self.writer.node;
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
