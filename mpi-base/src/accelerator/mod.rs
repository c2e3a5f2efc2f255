//! Accelerators: devices with their own memory, such as GPUs, and copies between device memory and host memory.
//!
//! Each component calls one vendor's library, which the program must have loaded:
//! this crate neither loads nor links the library.
//! A device address is unique in the process, so it determines whether memory is on a device.
//! The processor may be unable to access device memory directly; [`Accelerator::copy`] copies it.
//!
//! | component | library | tested with |
//! |---|---|---|
//! | [`cuda`] | `libcuda.so.1` | a stand-in library of the tests; no GPU |
//! | [`rocm`] | `libamdhip64.so` | nothing |
//! | [`level_zero`] | `libze_loader.so.1` | a stand-in library of the tests; no GPU |
//!
//! Copies are not ordered with the program's streams, except for the default stream of CUDA and HIP:
//! the program synchronises its streams before it passes a buffer.
#![allow(unsafe_code)]

pub mod cuda;
#[cfg(test)]
mod fake;
mod ipc;
pub mod level_zero;
mod library;
mod ranges;
pub mod rocm;
mod sharing;
mod tail;
mod twin;
pub mod twins;
mod used;

pub use library::Library;
pub use sharing::{Export, Flight};
pub use tail::Tail;
pub use used::{add, are_in_use, close_all, named};

use std::fmt;

/// Properties of device memory, as reported by the accelerator's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// True if the memory is managed: the library migrates its pages between host and device.
    pub is_managed: bool,
    /// The context in which the memory was allocated; 0 if it belongs to none.
    pub context: usize,
    /// The device's index in the numbering of the accelerator's library.
    pub device: i32,
}

/// Equally spaced blocks of the same length, in device memory and with the same spacing in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The first block in device memory.
    pub device: *mut u8,
    /// The first block in host memory.
    pub host: *mut u8,
    /// Length of a block in bytes.
    pub len: usize,
    /// Distance between the starts of two consecutive blocks in bytes.
    pub stride: usize,
    /// Number of blocks.
    pub blocks: usize,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A copy from device memory to host memory.
    ToHost,
    /// A copy from host memory to device memory.
    ToDevice,
}

/// A failed call of an accelerator's library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceleratorError {
    /// The library's display name, used in messages to the user.
    pub title: &'static str,
    /// The library function that failed.
    pub function: &'static str,
    /// The function's result code, as a name or a number.
    pub reason: String,
}

impl fmt::Display for AcceleratorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} returned {}", self.function, self.reason)
    }
}

impl std::error::Error for AcceleratorError {}

/// Error: the library is loaded but lacks a required function, so it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacks {
    /// The library's soname (file name for the loader).
    pub soname: &'static str,
    /// The function that the library lacks.
    pub function: &'static str,
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has no function {}, so buffers in device memory are not recognised; update the driver that the library belongs to",
            self.soname, self.function
        )
    }
}

/// The interface of an accelerator component: calls of one vendor's library.
pub trait Accelerator: Sync + Send {
    /// Returns the component's name, also the name of its memory allocation kind (MPI 5.0, 11.4.3).
    fn name(&self) -> &'static str;

    /// Returns the library's display name, used in messages to the user.
    fn title(&self) -> &'static str;

    /// Returns the device memory at an address; `None` for memory of the host.
    fn recognise(&self, at: *const u8) -> Option<Memory>;

    /// Copies strips; the copies are complete when the call returns.
    ///
    /// # Safety
    /// The host blocks of each strip are valid for reading or, in the direction to the host, for writing.
    /// Addresses of the device are checked by its library.
    unsafe fn copy(
        &self,
        memory: &Memory,
        direction: Direction,
        strips: &mut dyn Iterator<Item = Strip>,
    ) -> Result<(), AcceleratorError>;

    /// Pins host memory, which makes copies faster; returns false if the library refuses.
    ///
    /// # Safety
    /// The memory stays mapped until the process ends.
    unsafe fn pin(&self, memory: &Memory, at: *mut u8, len: usize) -> bool;

    /// Returns true if the library supports asynchronous copies ([`Accelerator::begin`]).
    fn has_flights(&self) -> bool {
        false
    }

    /// Starts an asynchronous copy of a strip.
    ///
    /// # Safety
    /// As [`Accelerator::copy`]; the host blocks stay valid until [`Accelerator::end`] reports the end.
    unsafe fn begin(
        &self,
        _memory: &Memory,
        _direction: Direction,
        _strip: Strip,
    ) -> Result<Flight, AcceleratorError> {
        Err(self.has_no("copies in flight"))
    }

    /// Returns the result of an asynchronous copy, once; `None` while the copy is in flight.
    /// With `waits`, waits until the copy has ended and never returns `None`.
    fn end(&self, _flight: Flight, _waits: bool) -> Option<Result<(), AcceleratorError>> {
        Some(Ok(()))
    }

    /// Returns a handle of the memory for other processes of the node.
    /// Returns `None` if such a handle does not exist for the memory.
    /// The call first waits for the earlier work of the default stream on the memory.
    fn export(&self, _memory: &Memory, _at: *const u8, _len: usize) -> Option<Export> {
        None
    }

    /// Starts a copy from another process's device memory to memory of this process.
    /// `owner` is a number of the other process, which must be the same for all its exports.
    /// `near` describes the target if the target is on a device.
    ///
    /// # Safety
    /// A target in host memory is valid for writing until [`Accelerator::end`] reports the end.
    unsafe fn import(
        &self,
        _near: Option<&Memory>,
        _owner: u64,
        _from: &Export,
        _to: *mut u8,
        _len: usize,
    ) -> Result<Flight, AcceleratorError> {
        Err(self.has_no("memory of other processes"))
    }

    /// Closes all open memory of other processes, from which no copy may be in flight.
    fn close(&self) {}

    /// Returns the error that the component lacks the operation `what`.
    fn has_no(&self, what: &'static str) -> AcceleratorError {
        AcceleratorError {
            title: self.title(),
            function: what,
            reason: "no support".into(),
        }
    }
}

/// The result of looking for an accelerator's library: `None` if the program has not loaded it.
pub type Resident = Option<Result<Box<dyn Accelerator>, Lacks>>;

/// A component: its name, and a function that returns it if the program has loaded its library.
pub struct Component {
    /// The component's name in user settings that select accelerators.
    pub name: &'static str,
    /// Returns the accelerator if the program has loaded its library.
    pub resident: fn() -> Resident,
}

/// All components, in the order in which they are queried about an address.
pub const BUILT_IN: [Component; 3] = [cuda::COMPONENT, rocm::COMPONENT, level_zero::COMPONENT];

/// Maximum length in bytes of a piece, which one call copies.
/// Long data are copied in pieces, because a library overlaps the phases of several calls.
pub const PIECE: usize = 1 << 20;

/// Splits a strip into pieces of at most [`PIECE`] bytes: device address, host address, length.
fn pieces(strip: Strip) -> impl Iterator<Item = (*mut u8, *mut u8, usize)> {
    (0..strip.blocks).flat_map(move |block| {
        let start = block * strip.stride;
        (0..strip.len).step_by(PIECE).map(move |at| {
            let offset = start + at;
            (
                strip.device.wrapping_add(offset),
                strip.host.wrapping_add(offset),
                PIECE.min(strip.len - at),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_is_cut_into_pieces_that_cover_each_block_once() {
        let at = |n: usize| std::ptr::without_provenance_mut::<u8>(n);
        let strip = Strip {
            device: at(1 << 40),
            host: at(1 << 30),
            len: 2 * PIECE + 5,
            stride: 3 * PIECE,
            blocks: 2,
        };
        let all: Vec<_> = pieces(strip)
            .map(|(device, host, len)| (device.addr() - (1 << 40), host.addr() - (1 << 30), len))
            .collect();
        let one = |start: usize| {
            [(0, PIECE), (PIECE, PIECE), (2 * PIECE, 5)]
                .map(|(at, len)| (start + at, start + at, len))
        };
        assert_eq!(all, [one(0), one(3 * PIECE)].concat());
    }
}
