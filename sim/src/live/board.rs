//! A process's view of the board: making it, finding it, looking at it.

use super::engine::Engine;
use super::line::Line;
use super::monotonic_ns;
use super::shared::{Geometry, HANDS, HeadWord, LINE_WORDS, Shared};
use super::state::{SLOT_WORDS, State};
use crate::event::{Event, Record, What};
use core::sync::atomic::AtomicU32;
use fpga_model::{BadNodeCount, Gates, Registers, ToggleMachine};
use std::fmt;

/// A barrier in shared memory.
///
/// A plain value that borrows the memory for `'m`; looking through it changes nothing.
/// The wires of a node are taken by [`wires`](Self::wires).
#[derive(Clone, Copy)]
pub struct Board<'m> {
    shared: Shared<'m>,
    geometry: Geometry,
    /// The machine after power-on, which knows the number of nodes.
    blank: ToggleMachine,
    /// What steps it.
    pub(super) engine: Engine<'m>,
    /// The eureka line beside it; a board of a tree has none.
    line: Option<Line<'m>>,
}

/// A consistent view of the board at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Nanoseconds since the board was made.
    pub at_ns: u64,
    /// Levels of the wires to the barrier, bit `n` for node `n`.
    pub inputs: u64,
    /// Levels of the wires from the barrier: all or none.
    pub outputs: u64,
    /// How often the barrier has released its nodes.
    pub releases: u64,
}

/// How a board belongs to a tree.
pub(super) enum OfTree {
    /// It is a board by itself.
    No,
    /// The first board of a tree with the given number of nodes and of boards at the lowest level.
    First { nodes: usize, lowest: usize },
    /// Another board of a tree.
    Later,
}

/// A board, or the boards of a tree, as an onlooker sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Nanoseconds since the board was made; of a tree, since its root was made.
    pub at_ns: u64,
    /// The level that the nodes read.
    pub output: bool,
    /// How often the nodes have been released.
    pub releases: u64,
    /// How many nodes each of the lowest boards has, the last perhaps fewer.
    pub share: usize,
    /// Of each node its level at the board, and whether a process drives it.
    pub nodes: Vec<(bool, bool)>,
    /// What the nodes hear of the eureka line, if there is one.
    pub line: Option<LineLook>,
}

/// An eureka line as an onlooker sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineLook {
    /// A node has found it.
    pub found: bool,
    /// Which node was the first.
    pub first: Option<usize>,
}

impl Look {
    /// At one board of so many nodes, of which processes drive those in the mask.
    pub fn at(board: &Snapshot, nodes: usize, driven: u64) -> Self {
        let mut look = Self {
            at_ns: board.at_ns,
            output: board.outputs != 0,
            releases: board.releases,
            share: nodes,
            nodes: Vec::with_capacity(nodes),
            line: None,
        };
        look.push(board.inputs, nodes, driven);
        look
    }

    /// The same beside such a line.
    #[must_use]
    pub fn beside(self, line: Option<LineLook>) -> Self {
        Self { line, ..self }
    }

    /// Further nodes.
    pub(super) fn push(&mut self, levels: u64, nodes: usize, driven: u64) {
        let bits = (0..nodes.min(fpga_model::MAX_NODES)).map(|node| 1 << node);
        let each = bits.map(|bit: u64| (levels & bit != 0, driven & bit != 0));
        self.nodes.extend(each);
    }
}

impl Snapshot {
    /// The nodes whose wire differs from the barrier's: those that have entered and are not released.
    pub fn arrived(&self) -> u64 {
        self.inputs ^ self.outputs
    }
}

/// Why a board cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitError {
    /// No barrier has this many nodes.
    Nodes(BadNodeCount),
    /// The memory is too small.
    TooSmall {
        /// Bytes that [`Board::layout_size`] asks for.
        need: usize,
        /// Bytes given.
        have: usize,
    },
    /// The memory does not begin at a multiple of this many bytes.
    Misaligned {
        /// The alignment that is needed.
        align: usize,
    },
}

/// Why a board cannot be found in the given memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachError {
    /// There is no board of this version that fits the memory; perhaps it has not been made yet.
    NoBoard {
        /// Bytes given.
        have: usize,
    },
    /// The memory does not begin at a multiple of this many bytes.
    Misaligned {
        /// The alignment that is needed.
        align: usize,
    },
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(bad) => bad.fmt(f),
            Self::TooSmall { need, have } => {
                write!(f, "the board needs {need} bytes and was given {have}")
            }
            Self::Misaligned { align } => write!(
                f,
                "the board's memory must begin at a multiple of {align} bytes"
            ),
        }
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBoard { have } => {
                write!(
                    f,
                    "there is no board of this program's version in the {have} bytes given"
                )
            }
            Self::Misaligned { align } => write!(
                f,
                "the board's memory must begin at a multiple of {align} bytes"
            ),
        }
    }
}

impl std::error::Error for InitError {}
impl std::error::Error for AttachError {}

impl<'m> Board<'m> {
    pub(super) fn new(shared: Shared<'m>, geometry: Geometry, blank: ToggleMachine) -> Self {
        Self {
            shared,
            geometry,
            blank,
            engine: Engine::default(),
            line: None,
        }
    }

    /// The same board with this line beside it.
    pub(super) fn beside(self, line: Line<'m>) -> Self {
        Self {
            line: Some(line),
            ..self
        }
    }

    /// The same board with these gates in the model's place; every process has to put the same there.
    pub fn with_gates(self, gates: &'m dyn Gates) -> Self {
        Self {
            engine: Engine::of(gates),
            ..self
        }
    }

    /// Bytes for a board of `nodes` nodes that records `record` events, and its eureka line; the memory must begin at a
    /// multiple of 128.
    pub fn layout_size(nodes: usize, record: usize) -> usize {
        let line = Geometry::size::<LINE_WORDS>(nodes, 0).unwrap_or(usize::MAX);
        Self::line_begins(nodes.saturating_mul(HANDS), record).saturating_add(line)
    }

    /// How far into the board's memory its line begins: behind the board, rounded up to where a line may begin.
    pub(super) fn line_begins(hands: usize, record: usize) -> usize {
        let board = Self::size_with(hands, record);
        board.checked_next_multiple_of(128).unwrap_or(usize::MAX)
    }

    /// The same with so many handles.
    pub(super) fn size_with(hands: usize, record: usize) -> usize {
        Geometry::size::<SLOT_WORDS>(hands, record).unwrap_or(usize::MAX)
    }

    /// How many wire pairs the board has.
    pub fn nodes(&self) -> usize {
        self.geometry.nodes
    }

    /// Whether changes and marks are recorded.
    pub fn is_recording(&self) -> bool {
        self.geometry.capacity > 0
    }

    /// How often the barrier has released its nodes until now.
    pub fn releases(&self) -> u64 {
        self.snapshot().releases
    }

    /// The board as it is now, for onlookers.
    pub fn snapshot(&self) -> Snapshot {
        let mut state = self.copy().1.next();
        let at_ns = self.now_ns();
        // On the copy only: an onlooker sees what time has done without doing anything to the board.
        state.run_until(self.engine, at_ns);
        let (outputs, releases) = (state.machine.outputs(), state.machine.releases());
        Snapshot {
            at_ns,
            inputs: state.inputs,
            outputs,
            releases,
        }
    }

    /// The events so far, oldest first; may be read while the board is in use.
    pub fn record(&self) -> Record {
        let (_, state) = self.copy();
        self.publish(&state);
        let events: Vec<_> = self
            .shared
            .entries(state.events())
            .filter_map(|(at_ns, what)| {
                Some(Event {
                    at_ns,
                    what: What::from_word(what)?,
                })
            })
            .collect();
        let dropped = if self.is_recording() {
            state.events() - events.len() as u64
        } else {
            0
        };
        Record {
            nodes: self.nodes(),
            events,
            dropped,
        }
    }

    /// The eureka line beside the board as it is now, for onlookers.
    pub(super) fn line_look(&self) -> Option<LineLook> {
        let mut line = self.line?.copy().1;
        // Both are read after the copy: neither is behind it.
        let (releases, now) = (self.committed_releases(), self.now_ns());
        line.run_until(now, releases);
        Some(LineLook {
            found: line.found(),
            first: line.first(),
        })
    }

    /// The eureka line beside the board.
    pub(super) fn line(&self) -> Option<Line<'m>> {
        self.line
    }

    /// How often the barrier has released its nodes, as any node can know until now.
    pub(super) fn committed_releases(&self) -> u64 {
        self.copy().1.machine.releases()
    }

    /// How many handles may commit.
    pub(super) fn hands(&self) -> usize {
        self.geometry.hands
    }

    /// What of each of a tree's boards is recorded.
    pub(super) fn capacity(&self) -> usize {
        self.geometry.capacity
    }

    /// Whether the board is of a tree, and then which.
    pub(super) fn tree(&self) -> OfTree {
        match self.geometry.tree {
            [0, _] => OfTree::No,
            [_, 0] => OfTree::Later,
            [nodes, lowest] => OfTree::First { nodes, lowest },
        }
    }

    /// When the board was made, on the machine's clock.
    pub(super) fn origin_ns(&self) -> u64 {
        self.geometry.origin_ns
    }

    /// Nanoseconds since the board was made.
    pub(super) fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.geometry.origin_ns)
    }

    /// The current state, and the head that a commit has to replace.
    pub(super) fn copy(&self) -> (HeadWord, State) {
        let (head, words) = self.shared.read::<SLOT_WORDS>();
        (head, State::from_words(&self.blank, &words))
    }

    /// The level of the barrier's wires if the passing of time cannot change it: four loads, no clock, no write.
    #[inline]
    pub(super) fn settled_output(&self) -> Option<bool> {
        let (_, [inputs, stage1, stage2, output]) = self.shared.read();
        let registers = Registers {
            stage1,
            stage2,
            output,
            releases: 0,
        };
        self.engine
            .is_settled(&self.blank.load(registers), inputs)
            .then_some(output != 0)
    }

    /// Writes the events of a commit to their places in the record.
    pub(super) fn publish(&self, state: &State) {
        if self.is_recording() {
            for (place, event) in (state.older_events..).zip(state.news()) {
                self.shared
                    .write_entry(place, event.at_ns, event.what.to_word());
            }
        }
    }

    /// Replaces the state that was copied with `head` by `state`, using a slot of `slots` that is not current.
    pub(super) fn commit(&self, head: HeadWord, slots: [usize; 2], state: &State) -> bool {
        let slot = if head.slot() == slots[0] {
            slots[1]
        } else {
            slots[0]
        };
        self.shared.fill(slot, &state.to_words());
        self.shared.commit(head, slot)
    }

    /// The claim word of a node that exists.
    pub(super) fn claim(&self, node: usize) -> &'m AtomicU32 {
        self.shared.claim(node)
    }
}
