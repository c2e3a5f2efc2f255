//! The board's memory as atomics: the only `unsafe` of this crate.
//!
//! The guarantee to the safe code around it: whatever other processes do, every access is in bounds and atomic,
//! so the worst effect of a faulty process is a wrong level.
//! The head of [`live`](super) defines which process may write which word and when.
#![allow(unsafe_code)]

mod layout;
mod memory;
mod window;

pub(super) use layout::{Geometry, HANDS, HeadWord, LINE_WORDS, Shared};
pub use memory::{Memory, MemoryError};
pub use window::Window;

use super::line::{Line, LineState};
use super::state::State;
use super::{AttachError, Board, Boards, ChannelBoard, InitError, monotonic_ns};
use crate::tree::Tree;
use fpga_model::ToggleMachine;
use fpga_model::eureka::EurekaLine;
use std::ptr::NonNull;

impl<'m> Board<'m> {
    /// Creates a board of `nodes` nodes, as after power-on, that records the first `record` events.
    ///
    /// One process does this; the others [`attach`](Self::attach) afterwards.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `len` initialised bytes for `'m`,
    /// and during `'m` they are accessed, by any process, only through boards.
    pub unsafe fn init(
        base: NonNull<u8>,
        len: usize,
        nodes: usize,
        record: usize,
    ) -> Result<Self, InitError> {
        let writers = nodes.saturating_mul(HANDS);
        let need = Self::layout_size(nodes, record);
        let blank = ToggleMachine::new(nodes).map_err(InitError::Nodes)?;
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        let at = Self::line_begins(writers, record);
        // Before the board, so that what finds the board finds its line.
        // SAFETY: the line ends within the `need` bytes, and `need <= len`.
        let line = unsafe { Self::line_with(base.add(at), blank) }?;
        // SAFETY: the caller's contract is the same as that of `init_with`.
        let board = unsafe { Self::init_with(base, len, nodes, writers, record, [0; 2]) }?;
        Ok(board.beside(line))
    }

    /// Initialises the line for the nodes of this machine.
    ///
    /// # Safety
    /// As for [`init`](Self::init), with the size of a line for this number of nodes.
    unsafe fn line_with(base: NonNull<u8>, machine: ToggleMachine) -> Result<Line<'m>, InitError> {
        let nodes = machine.nodes();
        let Some(blank) = Self::blank_line(nodes) else {
            return Err(InitError::Nodes(fpga_model::BadNodeCount(nodes)));
        };
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(InitError::Misaligned {
                align: layout::ALIGN,
            });
        }
        let geometry = Geometry {
            nodes,
            writers: nodes,
            capacity: 0,
            // The line uses the board's clock.
            origin_ns: 0,
            tree: [0; 2],
        };
        let words = LineState::power_on(blank).to_words();
        // SAFETY: the caller guarantees the memory; the alignment has been checked above.
        let shared = unsafe { Shared::<LINE_WORDS>::init(base, geometry, &words) };
        Ok(Line::new(shared, blank))
    }

    /// Returns the line of `nodes` nodes after power-on: its wires are not filtered, as those of the board are not.
    fn blank_line(nodes: usize) -> Option<EurekaLine> {
        EurekaLine::new(nodes, 1).ok()
    }

    /// As [`init`](Self::init), with this number of handles, and as a board of this tree ([`Geometry::tree`]).
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    unsafe fn init_with(
        base: NonNull<u8>,
        len: usize,
        nodes: usize,
        writers: usize,
        record: usize,
        tree: [usize; 2],
    ) -> Result<Self, InitError> {
        let blank = ToggleMachine::new(nodes).map_err(InitError::Nodes)?;
        let need = Self::size_with(writers, record);
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(InitError::Misaligned {
                align: layout::ALIGN,
            });
        }
        let geometry = Geometry {
            nodes,
            writers,
            capacity: record,
            origin_ns: monotonic_ns(),
            tree,
        };
        // SAFETY: the caller guarantees the memory; size and alignment have been checked above.
        let shared = unsafe { Shared::init(base, geometry, &State::power_on(blank).to_words()) };
        Ok(Self::new(shared, geometry, blank))
    }

    /// Attaches to the board that another process has created in this memory.
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    pub unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(AttachError::Misaligned {
                align: layout::ALIGN,
            });
        }
        // SAFETY: the caller guarantees the memory, and the alignment has been checked above.
        let found = unsafe { Shared::attach(base, len) };
        let none = AttachError::NoBoard { have: len };
        let (shared, geometry) = found.ok_or(none.clone())?;
        let blank = ToggleMachine::new(geometry.nodes).map_err(|_| none.clone())?;
        let board = Self::new(shared, geometry, blank);
        if geometry.tree != [0; 2] {
            return Ok(board);
        }
        let at = Self::line_begins(geometry.writers, geometry.capacity);
        let left = len.checked_sub(at).ok_or(none.clone())?;
        // SAFETY: `at` is inside the `len` bytes, and a multiple of the alignment that has been checked for `base`.
        let line = unsafe { Shared::<LINE_WORDS>::attach(base.add(at), left) };
        let line =
            line.filter(|(_, line)| line.nodes == geometry.nodes && line.writers == line.nodes);
        let line = line.zip(Self::blank_line(geometry.nodes));
        let ((line, _), blank) = line.ok_or(none)?;
        Ok(board.beside(Line::new(line, blank)))
    }
}

impl<'m> Boards<'m> {
    /// Creates the boards of this tree, as after power-on, which record about `record` events in total; the others
    /// [`attach`](Self::attach) afterwards.
    ///
    /// # Safety
    /// As for [`Board::init`], with `Boards`.
    pub unsafe fn init(
        base: NonNull<u8>,
        len: usize,
        tree: &Tree,
        record: usize,
    ) -> Result<Self, InitError> {
        let need = Self::layout_size(tree, record);
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        let boards = Self::places(tree, record).map(|(at, bytes, board)| {
            let (pins, writers) = (tree.pins(board), Self::writers(tree, board));
            let lowest = if board == 0 { tree.lowest() } else { 0 };
            // SAFETY: the boards follow each other within `need` bytes, and `need <= len`, so the caller's
            // guarantee holds for each of them.
            unsafe {
                let (record, tree) = (record / tree.boards(), [tree.nodes(), lowest]);
                Board::init_with(base.add(at), bytes, pins, writers, record, tree)
            }
        });
        Ok(Self::of(tree, boards.collect::<Result<_, _>>()?))
    }

    /// Attaches to the boards of this tree that another process has created in this memory, with the same `record`.
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    pub unsafe fn attach(
        base: NonNull<u8>,
        len: usize,
        tree: &Tree,
        record: usize,
    ) -> Result<Self, AttachError> {
        if Self::layout_size(tree, record) > len {
            return Err(AttachError::NoBoard { have: len });
        }
        let boards = Self::places(tree, record).map(|(at, bytes, board)| {
            // SAFETY: the boards follow each other within the `len` bytes that the caller guarantees.
            let found = unsafe { Board::attach(base.add(at), bytes) }?;
            match found.nodes() == tree.pins(board) && found.writers() >= Self::writers(tree, board)
            {
                true => Ok(found),
                false => Err(AttachError::NoBoard { have: bytes }),
            }
        });
        Ok(Self::of(tree, boards.collect::<Result<_, _>>()?))
    }
}

impl<'m> ChannelBoard<'m> {
    /// Creates a version 2 board of `nodes` nodes that records `record` line changes, as after power-on; the others [`attach`](Self::attach) afterwards.
    ///
    /// # Safety
    /// As for [`Board::init`], with version 2 boards.
    pub unsafe fn init(
        base: NonNull<u8>,
        len: usize,
        nodes: usize,
        record: usize,
    ) -> Result<Self, InitError> {
        let (geometry, words) = Self::power_on(nodes, record, len)?;
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(InitError::Misaligned {
                align: layout::ALIGN,
            });
        }
        // SAFETY: the caller guarantees the memory; size and alignment have been checked above.
        let shared = unsafe { Shared::init(base, geometry, &words) };
        Self::over(shared, geometry, len).map_err(|_| InitError::TooSmall {
            need: Self::layout_size(nodes, record),
            have: len,
        })
    }

    /// Attaches to the version 2 board that another process has created in this memory.
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    pub unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(AttachError::Misaligned {
                align: layout::ALIGN,
            });
        }
        // SAFETY: the caller guarantees the memory, and the alignment has been checked above.
        let found = unsafe { Shared::attach(base, len) };
        let (shared, geometry) = found.ok_or(AttachError::NoBoard { have: len })?;
        Self::over(shared, geometry, len)
    }
}
