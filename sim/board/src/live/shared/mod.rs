//! The board's memory as atomics; this module has the only `unsafe` code of this crate.
//!
//! The guarantee for safe code: whatever other processes do, every access is in bounds and atomic,
//! so the worst effect of a faulty process is a wrong level.
//! The head of [`live`](super) defines which process may write which word and when.
#![allow(unsafe_code)]

mod layout;
mod memory;
mod window;

pub(super) use layout::{Geometry, HANDS, HeadWord, Shared};
pub use memory::{Memory, MemoryError};
pub use window::Window;

use super::line::Line;
use super::slots::{Encoded, Slots};
use super::state::{SLOT_WORDS, State};
use super::{AttachError, Board, Boards, ChannelBoard, InitError};
use crate::tree::Tree;
use mpi_base::clock::now_ns;
use std::ptr::NonNull;

impl<'m, S: Encoded<WORDS>, const WORDS: usize> Slots<'m, S, WORDS> {
    /// Initialises slots with the state after power-on.
    ///
    /// # Safety
    /// The contract of [`Board::init`].
    unsafe fn init(base: NonNull<u8>, len: usize, geometry: Geometry) -> Result<Self, InitError> {
        let blank = S::blank(geometry.nodes).map_err(InitError::Nodes)?;
        let need = Geometry::size::<WORDS>(geometry.writers, geometry.capacity);
        let need = need.unwrap_or(usize::MAX);
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(InitError::Misaligned {
                align: layout::ALIGN,
            });
        }
        let words = S::power_on(blank).to_words();
        // SAFETY: the caller guarantees the memory;
        // the size and the alignment have been checked above.
        let shared = unsafe { Shared::init(base, S::MAGIC, geometry, &words) };
        Ok(Self::new(shared, geometry, blank))
    }

    /// Attaches to the slots that another process has initialised in this memory.
    ///
    /// # Safety
    /// The contract of [`Board::init`].
    unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(AttachError::Misaligned {
                align: layout::ALIGN,
            });
        }
        let none = AttachError::NoBoard { have: len };
        // SAFETY: the caller guarantees the memory, and the alignment has been checked above.
        let found = unsafe { Shared::attach(base, len, S::MAGIC) };
        let (shared, geometry) = found.ok_or(none.clone())?;
        let blank = S::blank(geometry.nodes).map_err(|_| none)?;
        Ok(Self::new(shared, geometry, blank))
    }
}

/// Returns the geometry of a new board that is not in a tree; its origin is the present time.
fn single(nodes: usize, record: usize) -> Geometry {
    Geometry {
        nodes,
        writers: nodes.saturating_mul(HANDS),
        capacity: record,
        origin_ns: now_ns(),
        tree: [0; 2],
    }
}

impl<'m> Board<'m> {
    /// Creates a board of `nodes` nodes in its state after power-on.
    /// The board records the first `record` events.
    ///
    /// One process creates the board; the others then call [`attach`](Self::attach).
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
        let board = single(nodes, record);
        State::blank(nodes).map_err(InitError::Nodes)?;
        let need = Self::layout_size(nodes, record);
        if need > len {
            return Err(InitError::TooSmall { need, have: len });
        }
        let at = Self::line_begins(board.writers, record);
        let line = Geometry {
            writers: nodes,
            capacity: 0,
            // The line uses the board's clock, so its own creation time is not used.
            origin_ns: 0,
            ..board
        };
        // The line is created before the board, so a process that finds the board also finds its line.
        // SAFETY: the line begins and ends within the `need` bytes, and `need <= len`.
        let line = unsafe { Line::init(base.add(at), len - at, line) }?;
        // SAFETY: the caller's contract is the same as that of `Slots::init`.
        let slots = unsafe { Slots::init(base, len, board) }?;
        Ok(Self::new(slots, Some(line)))
    }

    /// Attaches to the board that another process has created in this memory.
    ///
    /// # Safety
    /// The contract of [`init`](Self::init).
    pub unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        // SAFETY: the caller's contract is the same as that of `Slots::attach`.
        let slots: Slots<'m, State, SLOT_WORDS> = unsafe { Slots::attach(base, len) }?;
        let geometry = slots.geometry();
        if geometry.tree != [0; 2] {
            return Ok(Self::new(slots, None));
        }
        let none = AttachError::NoBoard { have: len };
        let at = Self::line_begins(geometry.writers, geometry.capacity);
        let left = len.checked_sub(at).ok_or(none.clone())?;
        // SAFETY: `at` is inside the `len` bytes, and a multiple of the alignment that `Slots::attach` has checked for `base`.
        let line = unsafe { Line::attach(base.add(at), left) }.map_err(|_| none.clone())?;
        let its = line.geometry();
        match its.nodes == geometry.nodes && its.writers == its.nodes {
            true => Ok(Self::new(slots, Some(line))),
            false => Err(none),
        }
    }
}

impl<'m> Boards<'m> {
    /// Creates the boards of this tree in their state after power-on.
    /// They record about `record` events in total.
    /// Other processes then call [`attach`](Self::attach).
    ///
    /// # Safety
    /// The contract of [`Board::init`]; only `Boards` may access the memory.
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
            let geometry = Geometry {
                writers,
                tree: [tree.nodes(), lowest],
                ..single(pins, record / tree.boards())
            };
            // SAFETY: the boards follow each other within `need` bytes, and `need <= len`, so the caller's
            // guarantee holds for each of them.
            let slots = unsafe { Slots::init(base.add(at), bytes, geometry) }?;
            Ok(Board::new(slots, None))
        });
        Ok(Self::of(tree, boards.collect::<Result<_, _>>()?))
    }

    /// Attaches to the boards of this tree that another process has created in this memory, with the same `record`.
    ///
    /// # Safety
    /// The contract of [`init`](Self::init).
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
            match found.nodes() == tree.pins(board)
                && found.core().geometry().writers >= Self::writers(tree, board)
            {
                true => Ok(found),
                false => Err(AttachError::NoBoard { have: bytes }),
            }
        });
        Ok(Self::of(tree, boards.collect::<Result<_, _>>()?))
    }
}

impl<'m> ChannelBoard<'m> {
    /// Creates a version 2 board of `nodes` nodes in its state after power-on.
    /// The board records `record` line changes. Other processes then call [`attach`](Self::attach).
    ///
    /// # Safety
    /// The contract of [`Board::init`]; only version 2 boards may access the memory.
    pub unsafe fn init(
        base: NonNull<u8>,
        len: usize,
        nodes: usize,
        record: usize,
    ) -> Result<Self, InitError> {
        // SAFETY: the caller's contract is the same as that of `Slots::init`.
        unsafe { Slots::init(base, len, single(nodes, record)) }.map(Self::new)
    }

    /// Attaches to the version 2 board that another process has created in this memory.
    ///
    /// # Safety
    /// The contract of [`init`](Self::init).
    pub unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        // SAFETY: the caller's contract is the same as that of `Slots::attach`.
        unsafe { Slots::attach(base, len) }.map(Self::new)
    }
}
