//! The handle by which a process creates a board, attaches to it and observes it.

use super::channel_look::ChannelLook;
use super::engine::Engine;
use super::line::{LINE_WORDS, Line};
use super::shared::{Geometry, HANDS};
use super::slots::{Core, Slots};
use super::state::{SLOT_WORDS, State};
use crate::event::{Event, Record, What};
use fpga_model::{BadNodeCount, Gates, Registers};
use std::fmt;

/// The shared state of a version 1 board ([`Slots`](super::slots::Slots)), and its engine.
pub(super) type BoardCore<'m> = Core<'m, State, Engine<'m>, SLOT_WORDS>;

/// A barrier in shared memory.
///
/// A plain value that borrows the memory for `'m`; reading a board changes nothing in the memory.
/// [`wires`](Self::wires) claims the wires of a node.
#[derive(Clone, Copy)]
pub struct Board<'m> {
    core: BoardCore<'m>,
    /// The eureka line of the board; a board of a tree has none.
    line: Option<Line<'m>>,
}

/// A consistent view of the board at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Nanoseconds since the board was created.
    pub at_ns: u64,
    /// Levels of the wires to the barrier, bit `n` for node `n`.
    pub inputs: u64,
    /// Levels of the wires from the barrier, bit `n` for node `n`: all high or all low.
    pub outputs: u64,
    /// Number of releases since the board was created.
    pub releases: u64,
}

/// The position of a board in a tree.
pub(super) enum TreeRole {
    /// A board that is not in a tree.
    No,
    /// The first board of a tree with `nodes` nodes and `lowest` leaf boards.
    First { nodes: usize, lowest: usize },
    /// A board of a tree other than the first.
    Later,
}

/// A board, or the boards of a tree, as an observer (a process that only reads the board) sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Nanoseconds since the board was created; for a tree, since its root was created.
    pub at_ns: u64,
    /// The level that the nodes read on their wires from the barrier.
    pub output: bool,
    /// Number of releases since the board was created; for a tree, of its root.
    pub releases: u64,
    /// Number of nodes per leaf board; the last leaf board may have fewer.
    pub share: usize,
    /// For each node the level of its wire, and true if a process drives the wire.
    pub nodes: Vec<(bool, bool)>,
    /// The eureka line as the nodes read it; `None` on a board without one.
    pub line: Option<LineLook>,
    /// The channels of a board of version 2; empty for a board of version 1.
    pub channels: Vec<ChannelLook>,
}

/// A eureka line as an observer sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineLook {
    /// True if a node has raised the line.
    pub found: bool,
    /// The first node that raised the line.
    pub first: Option<usize>,
}

impl Look {
    /// Returns the view of one board of `nodes` nodes.
    /// Bit `n` of `driven` is set if a process drives node `n`'s wire.
    pub fn at(board: &Snapshot, nodes: usize, driven: u64) -> Self {
        let mut look = Self {
            at_ns: board.at_ns,
            output: board.outputs != 0,
            releases: board.releases,
            share: nodes,
            nodes: Vec::with_capacity(nodes),
            line: None,
            channels: Vec::new(),
        };
        look.push(board.inputs, nodes, driven);
        look
    }

    /// Returns the view with this eureka line added.
    #[must_use]
    pub fn beside(self, line: Option<LineLook>) -> Self {
        Self { line, ..self }
    }

    /// Returns the view with these channels added.
    #[must_use]
    pub fn with_channels(self, channels: Vec<ChannelLook>) -> Self {
        Self { channels, ..self }
    }

    /// Adds `nodes` nodes of one leaf board; `levels` and `driven` have one bit per node.
    pub(super) fn push(&mut self, levels: u64, nodes: usize, driven: u64) {
        let bits = (0..nodes.min(fpga_model::MAX_NODES)).map(|node| 1 << node);
        let each = bits.map(|bit: u64| (levels & bit != 0, driven & bit != 0));
        self.nodes.extend(each);
    }
}

impl Snapshot {
    /// Returns the nodes whose wire differs from the barrier's output.
    /// These nodes have entered the barrier and are not yet released.
    pub fn arrived(&self) -> u64 {
        self.inputs ^ self.outputs
    }
}

/// The reason why a board cannot be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitError {
    /// A barrier cannot have this number of nodes.
    Nodes(BadNodeCount),
    /// The memory is too small for the board.
    TooSmall {
        /// The bytes that the board requires, by [`Board::layout_size`].
        need: usize,
        /// The size of the given memory in bytes.
        have: usize,
    },
    /// The memory is not aligned to this number of bytes.
    Misaligned {
        /// The required alignment in bytes.
        align: usize,
    },
}

/// The reason why no board can be found in the given memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachError {
    /// The memory has no board of this version; perhaps the board is not created yet.
    NoBoard {
        /// The size of the given memory in bytes.
        have: usize,
    },
    /// The memory is not aligned to this number of bytes.
    Misaligned {
        /// The required alignment in bytes.
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
    pub(super) fn new(slots: Slots<'m, State, SLOT_WORDS>, line: Option<Line<'m>>) -> Self {
        Self {
            core: Core::new(slots, Engine::default()),
            line,
        }
    }

    /// Returns the part of the board that both versions have: slots, engine and record.
    pub(super) fn core(&self) -> &BoardCore<'m> {
        &self.core
    }

    /// Replaces the model by gates (for example the RTL);
    /// all processes of the board must use the same gates.
    pub fn with_gates(self, gates: &'m dyn Gates) -> Self {
        Self {
            core: self.core.with_engine(Engine::of(gates)),
            ..self
        }
    }

    /// Returns the size in bytes of a board of `nodes` nodes with a record of `record` events.
    /// The size includes the eureka line; the memory must be aligned to 128 bytes.
    pub fn layout_size(nodes: usize, record: usize) -> usize {
        let line = Geometry::size::<LINE_WORDS>(nodes, 0).unwrap_or(usize::MAX);
        Self::line_begins(nodes.saturating_mul(HANDS), record).saturating_add(line)
    }

    /// Returns the offset of the eureka line in the board's memory.
    /// The line follows the board, at the next multiple of the line's alignment.
    pub(super) fn line_begins(writers: usize, record: usize) -> usize {
        let board = Self::size_with(writers, record);
        board.checked_next_multiple_of(128).unwrap_or(usize::MAX)
    }

    /// Returns the size in bytes of a board with `writers` handles, without the eureka line.
    pub(super) fn size_with(writers: usize, record: usize) -> usize {
        Geometry::size::<SLOT_WORDS>(writers, record).unwrap_or(usize::MAX)
    }

    /// Returns the number of nodes, each of which has a pair of wires.
    pub fn nodes(&self) -> usize {
        self.core.nodes()
    }

    /// Returns true if changes and marks are recorded.
    pub fn is_recording(&self) -> bool {
        self.core.is_recording()
    }

    /// Returns the number of releases until now.
    pub fn releases(&self) -> u64 {
        self.snapshot().releases
    }

    /// Returns the board's state now, for observers.
    pub fn snapshot(&self) -> Snapshot {
        let (at_ns, state) = self.core.now();
        let (outputs, releases) = (state.machine.outputs(), state.machine.releases());
        Snapshot {
            at_ns,
            inputs: state.inputs,
            outputs,
            releases,
        }
    }

    /// Returns the events recorded so far, oldest first; may be called while the board is in use.
    pub fn record(&self) -> Record {
        let (events, dropped) = self.core.record(|at_ns, what| {
            let what = What::from_word(what)?;
            Some(Event { at_ns, what })
        });
        Record {
            nodes: self.nodes(),
            events,
            dropped,
        }
    }

    /// Returns the eureka line's state now, for observers.
    pub(super) fn line_look(&self) -> Option<LineLook> {
        let mut line = self.line?.copy().1;
        // Releases and time are read after the copy, so both are at least as recent as the copy.
        let (releases, now) = (self.committed_releases(), self.core.now_ns());
        line.run_until(now, releases);
        Some(LineLook {
            found: line.found(),
            first: line.first(),
        })
    }

    /// Returns the board's eureka line.
    pub(super) fn line(&self) -> Option<Line<'m>> {
        self.line
    }

    /// Returns the number of committed releases: those that a node can have seen.
    pub(super) fn committed_releases(&self) -> u64 {
        self.core.current().machine.releases()
    }

    /// Returns the board's position in a tree.
    pub(super) fn tree(&self) -> TreeRole {
        match self.core.geometry().tree {
            [0, _] => TreeRole::No,
            [_, 0] => TreeRole::Later,
            [nodes, lowest] => TreeRole::First { nodes, lowest },
        }
    }
}

impl BoardCore<'_> {
    /// Returns the output level if no further clock edge can change it, else `None`.
    /// Costs four loads; reads no clock and stores nothing.
    #[inline]
    pub(super) fn settled_output(&self) -> Option<bool> {
        let [inputs, stage1, stage2, output] = self.slots().first_words();
        let registers = Registers {
            stage1,
            stage2,
            output,
            releases: 0,
        };
        self.engine()
            .is_settled(&self.slots().blank().load(registers), inputs)
            .then_some(output != 0)
    }
}
