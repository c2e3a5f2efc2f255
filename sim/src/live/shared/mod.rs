//! The board's memory as atomics: the only `unsafe` of this crate.
//!
//! The promise to the safe code around it: whatever the other processes do, every access is in bounds and atomic,
//! so the worst that a broken neighbour can cause is a wrong level.
//! Which process may write which word when is the protocol at the head of [`live`](super).
#![allow(unsafe_code)]

mod layout;
mod memory;
mod window;

pub(super) use layout::{Geometry, HeadWord, Shared};
pub use memory::{Memory, MemoryError};
pub use window::Window;

use super::state::State;
use super::{AttachError, Board, ChannelBoard, InitError, monotonic_ns};
use fpga_model::ToggleMachine;
use std::ptr::NonNull;

impl<'m> Board<'m> {
    /// Makes a board of `nodes` nodes, as after power-on, that records the first `record` events.
    ///
    /// One process does this; the others [`attach`](Self::attach) when they know that it has been done.
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
        let blank = ToggleMachine::new(nodes).map_err(InitError::Nodes)?;
        let need = Self::layout_size(nodes, record);
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
            capacity: record,
            origin_ns: monotonic_ns(),
        };
        // SAFETY: the caller vouches for the memory; size and alignment have been checked above.
        let shared = unsafe { Shared::init(base, geometry, &State::power_on(blank).to_words()) };
        Ok(Self::new(shared, geometry, blank))
    }

    /// Finds the board that another process has made in this memory.
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    pub unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(AttachError::Misaligned {
                align: layout::ALIGN,
            });
        }
        // SAFETY: the caller vouches for the memory, and the alignment has been checked above.
        let found = unsafe { Shared::attach(base, len) };
        let (shared, geometry) = found.ok_or(AttachError::NoBoard { have: len })?;
        let blank =
            ToggleMachine::new(geometry.nodes).map_err(|_| AttachError::NoBoard { have: len })?;
        Ok(Self::new(shared, geometry, blank))
    }
}

impl<'m> ChannelBoard<'m> {
    /// Makes a version 2 board of `nodes` nodes that records `record` line changes, as after power-on; the others [`attach`](Self::attach) when that has been done.
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
        // SAFETY: the caller vouches for the memory; size and alignment have been checked above.
        let shared = unsafe { Shared::init(base, geometry, &words) };
        Self::over(shared, geometry, len).map_err(|_| InitError::TooSmall {
            need: Self::layout_size(nodes, record),
            have: len,
        })
    }

    /// Finds the version 2 board that another process has made in this memory.
    ///
    /// # Safety
    /// As for [`init`](Self::init).
    pub unsafe fn attach(base: NonNull<u8>, len: usize) -> Result<Self, AttachError> {
        if !base.cast::<layout::Header>().is_aligned() {
            return Err(AttachError::Misaligned {
                align: layout::ALIGN,
            });
        }
        // SAFETY: the caller vouches for the memory, and the alignment has been checked above.
        let found = unsafe { Shared::attach(base, len) };
        let (shared, geometry) = found.ok_or(AttachError::NoBoard { have: len })?;
        Self::over(shared, geometry, len)
    }
}
