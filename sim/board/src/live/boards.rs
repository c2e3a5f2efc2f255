//! Cascaded boards in shared memory, for more nodes than one board has wires.
//!
//! Every board is an ordinary [`Board`] with its own origin, hence its own clock phase. All nodes read the root's output.
//!
//! # Propagation of a level
//!
//! A node propagates a level when it drives its wire to that level, and while it waits for the
//! root to have that level. The node reads its board; if the board's output has the level, then
//! all wires of the board have it, too. The node then drives the board's wire to the board above,
//! and repeats this up to the root. Usually the last node of a board propagates the level;
//! a polling node does it if that node was killed first.
//!
//! Several nodes may drive the same wire between boards, but no node can drive an outdated level:
//! the board's output keeps the level until the wires of all its nodes have left the level, and the
//! driving node keeps its own wire at the level until it has driven the wires above.
//! A lock ensures that only one thread at a time uses a node's wires.

use super::Snapshot;
use super::board::{Board, Look};
use super::claim::WiresError;
use super::shared::HANDS;
use super::wires::{Writer, ring_others};
use crate::event::{Event, Record, What};
use crate::tree::Tree;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The boards of a tree; they borrow the memory as a [`Board`] does.
#[derive(Clone)]
pub struct Boards<'m> {
    tree: Tree,
    boards: Vec<Board<'m>>,
}

/// The handles of one node that [`Boards::wires`] returns.
#[derive(Debug)]
pub struct NodeWires<'m, R> {
    /// The wire to the node's board.
    pub out: NodeOut<'m, R>,
    /// The wire from the root board to the node.
    pub input: NodeIn<'m, R>,
    /// The handle by which the node records marks: program entered, program left.
    pub marks: NodeMarks<'m, R>,
}

/// The wire from a node to its board.
#[derive(Debug)]
pub struct NodeOut<'m, R>(Handles<'m, R>);

/// The wire from the root to a node.
#[derive(Debug)]
pub struct NodeIn<'m, R>(Handles<'m, R>);

/// The handle that records when the node's program enters and leaves the barrier, as
/// [`Marks`](super::Marks).
#[derive(Debug)]
pub struct NodeMarks<'m, R>(Handles<'m, R>);

type Handles<'m, R> = Arc<Mutex<Node<'m, R>>>;

/// A node's handles on its own board and on all boards above.
struct Node<'m, R> {
    node: usize,
    nodes: usize,
    ring: R,
    /// The handle on the node's own board.
    own: Writer<'m>,
    /// The handles on the boards above the node's own board; the root's handle is last.
    above: Vec<Writer<'m>>,
}

impl<R> fmt::Debug for Node<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "node {} of {}, {} boards above its own",
            self.node,
            self.nodes,
            self.above.len()
        )
    }
}

impl<'m> Boards<'m> {
    /// Returns the size in bytes of all boards of this tree,
    /// with records of about `record` events in total.
    /// The memory must be aligned to 128 bytes.
    pub fn layout_size(tree: &Tree, record: usize) -> usize {
        let last = Self::places(tree, record).last();
        last.map_or(0, |(at, bytes, _)| at.saturating_add(bytes))
    }

    /// Returns each board's offset in the memory, size and index.
    pub(super) fn places(
        tree: &Tree,
        record: usize,
    ) -> impl Iterator<Item = (usize, usize, usize)> {
        let each = record / tree.boards();
        (0..tree.boards()).scan(0usize, move |end, board| {
            let at = *end;
            let bytes = Board::size_with(Self::writers(tree, board), each);
            // The size is rounded up to the alignment of a board.
            let bytes = bytes.checked_next_multiple_of(128).unwrap_or(usize::MAX);
            *end = at.saturating_add(bytes);
            Some((at, bytes, board))
        })
    }

    /// Returns a board's number of handles: `HANDS` per node on a leaf board.
    /// Any other board has one handle for each node of the tree.
    pub(super) fn writers(tree: &Tree, board: usize) -> usize {
        match board < tree.lowest() {
            true => tree.pins(board) * HANDS,
            false => tree.nodes(),
        }
    }

    pub(super) fn of(tree: &Tree, boards: Vec<Board<'m>>) -> Self {
        Self {
            tree: tree.clone(),
            boards,
        }
    }

    fn root(&self) -> &Board<'m> {
        &self.boards[self.tree.root()]
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.tree.nodes()
    }

    /// Returns the number of boards.
    pub fn boards(&self) -> usize {
        self.boards.len()
    }

    /// Returns the number of the root's releases until now.
    pub fn releases(&self) -> u64 {
        self.root().releases()
    }

    /// Returns true if changes and marks are recorded.
    pub fn is_recording(&self) -> bool {
        self.root().is_recording()
    }

    /// Returns the boards' state for an observer: the nodes of all boards, and the level and releases of the root.
    pub fn look(&self) -> Look {
        let root = self.root().snapshot();
        let share = self.boards[0].nodes();
        let mut look = Look {
            nodes: Vec::with_capacity(self.nodes()),
            share,
            ..Look::at(&root, 0, 0)
        };
        for board in &self.boards[..self.tree.lowest()] {
            look.push(
                board.snapshot().inputs,
                board.nodes(),
                board.core().claimed(),
            );
        }
        look
    }

    /// Returns the nodes whose wire has the root's level:
    /// they have not entered the pending barrier.
    pub fn missing(&self) -> Vec<usize> {
        let Snapshot { outputs, .. } = self.root().snapshot();
        let lowest = self.boards[..self.tree.lowest()].iter();
        let inputs: Vec<u64> = lowest.map(|board| board.snapshot().inputs).collect();
        let waits = |node: &usize| {
            let (board, pin) = self.tree.place(*node);
            (inputs[board] >> pin & 1 == 1) != (outputs != 0)
        };
        (0..self.nodes()).filter(|node| !waits(node)).collect()
    }

    /// Returns the events of all nodes and the root's releases, oldest first.
    pub fn record(&self) -> Record {
        let first = self.boards.iter().map(origin_ns).min().unwrap_or(0);
        let mut record = Record {
            nodes: self.nodes(),
            ..Record::default()
        };
        for (number, board) in self.boards.iter().enumerate() {
            let own = board.record();
            record.dropped += own.dropped;
            let later = origin_ns(board) - first;
            record
                .events
                .extend(own.events.into_iter().filter_map(|event| {
                    Some(Event {
                        at_ns: event.at_ns + later,
                        what: self.seen_from_outside(number, event.what)?,
                    })
                }));
        }
        // A stable sort keeps the order of events of the same board.
        record.events.sort_by_key(|event| event.at_ns);
        record
    }

    /// Converts an event of one board to an event of the whole tree.
    /// Returns `None` for an event on a wire between boards.
    fn seen_from_outside(&self, board: usize, what: What) -> Option<What> {
        let is_root = board == self.tree.root();
        let is_lowest = board < self.tree.lowest();
        let first = self.tree.first_node(board);
        match what {
            What::Release { .. } => is_root.then_some(what),
            _ if !is_lowest => None,
            What::Wire { node, high } => Some(What::Wire {
                node: first + node,
                high,
            }),
            What::Enter { node } => Some(What::Enter { node: first + node }),
            What::Leave { node } => Some(What::Leave { node: first + node }),
            What::Down { node } => Some(What::Down { node: first + node }),
            // Boards of a tree have no eureka line.
            What::Say { .. } => None,
        }
    }

    /// Claims the wires of `node`. The node that commits a release of the root calls `ring(other)`
    /// for every other node, as with [`Board::wires`].
    pub fn wires<R: Fn(usize)>(
        &self,
        node: usize,
        ring: R,
    ) -> Result<NodeWires<'m, R>, WiresError> {
        let nodes = self.nodes();
        if node >= nodes {
            return Err(WiresError::NoSuchNode { node, nodes });
        }
        let (board, pin) = self.tree.place(node);
        let own = self.boards[board].writer(pin).map_err(|e| match e {
            WiresError::Taken { pid, .. } => WiresError::Taken { node, pid },
            other => other,
        })?;
        let links =
            std::iter::successors(self.tree.above(board), |(above, _)| self.tree.above(*above));
        let above = links.map(|(above, pin)| own.above(*self.boards[above].core(), pin, node));
        let above = above.collect();
        let handles = Arc::new(Mutex::new(Node {
            node,
            nodes,
            ring,
            own,
            above,
        }));
        Ok(NodeWires {
            out: NodeOut(handles.clone()),
            input: NodeIn(handles.clone()),
            marks: NodeMarks(handles),
        })
    }
}

#[cfg(test)]
impl Boards<'_> {
    /// Drives a node's wire without propagation, as if the node died immediately afterwards.
    /// Uses the claim of the process that owns the node's wires.
    pub(super) fn own_board_only(&self, node: usize, high: bool) {
        let (board, pin) = self.tree.place(node);
        self.boards[board].drive_as_if_killed(pin, high);
    }
}

impl<R: Fn(usize)> Node<'_, R> {
    /// Drives the node's wire, and then the wires to the boards above, up to the first board whose output does not change.
    fn set(&mut self, high: bool) {
        let Self {
            node,
            nodes,
            ref ring,
            ref mut own,
            ref mut above,
        } = *self;
        let boards = above.len();
        for (level, writer) in std::iter::once(own).chain(above).enumerate() {
            let released = || {
                // Only the root releases nodes; a release of a lower board wakes no node.
                if level == boards {
                    ring_others(nodes, node, ring);
                }
            };
            writer.drive(&released, high);
            if level < boards && writer.output(&released) != high {
                return;
            }
        }
    }

    /// Returns the root's level.
    fn root(&mut self) -> bool {
        let Self {
            node,
            nodes,
            ref ring,
            ref mut own,
            ref mut above,
        } = *self;
        let root = above.last_mut().unwrap_or(own);
        root.output(&|| ring_others(nodes, node, ring))
    }

    fn get(&mut self) -> bool {
        let mine = self.own.level();
        if self.root() != mine {
            // Repeats the propagation: a node may have died before it propagated its level.
            self.set(mine);
        }
        self.root()
    }

    /// Records a mark on the node's own board.
    fn mark(&mut self, what: impl Fn(usize) -> What) {
        let Self {
            node,
            nodes,
            ref ring,
            ref mut own,
            ref above,
        } = *self;
        let released = || {
            if above.is_empty() {
                ring_others(nodes, node, ring);
            }
        };
        let pin = own.node();
        own.mark(&released, what(pin));
    }
}

/// Returns the time of the board's creation by `CLOCK_MONOTONIC`, in ns.
fn origin_ns(board: &Board<'_>) -> u64 {
    board.core().geometry().origin_ns
}

fn lock<'g, 'm, R>(handles: &'g Handles<'m, R>) -> MutexGuard<'g, Node<'m, R>> {
    // A poisoned lock is usable: each commit is atomic, so a panic leaves a consistent state.
    handles.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Fn(usize)> NodeMarks<'_, R> {
    /// Records that the node's program has entered the barrier.
    pub fn enter(&mut self) {
        lock(&self.0).mark(|node| What::Enter { node });
    }

    /// Records that the node's program leaves the barrier.
    pub fn leave(&mut self) {
        lock(&self.0).mark(|node| What::Leave { node });
    }
}

impl<R> ErrorType for NodeOut<'_, R> {
    type Error = Infallible;
}

impl<R> ErrorType for NodeIn<'_, R> {
    type Error = Infallible;
}

impl<R: Fn(usize)> OutputPin for NodeOut<'_, R> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        lock(&self.0).set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        lock(&self.0).set(true);
        Ok(())
    }
}

/// The board is in memory and raises no interrupt.
impl<R: Fn(usize)> barrier_driver::InputEvents for NodeIn<'_, R> {}

impl<R: Fn(usize)> InputPin for NodeIn<'_, R> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(lock(&self.0).get())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!lock(&self.0).get())
    }
}
