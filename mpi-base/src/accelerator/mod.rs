//! Accelerators: devices with their own memory, such as GPUs, and copies between device memory and host memory.
//!
//! A component calls the library of one vendor, which the program has loaded: no library is loaded here, and none is linked.
//! Device memory has addresses that no other memory of the process has, so an address determines whether it is on a device.
//! The host may not be able to read or write there; [`Accelerator::copy`] can.
//!
//! | component | library | tried on |
//! |---|---|---|
//! | [`cuda`] | `libcuda.so.1` | the tests' library with these functions; no card |
//! | [`rocm`] | `libamdhip64.so` | nothing |
//! | [`level_zero`] | `libze_loader.so.1` | the tests' library with these functions; no card |
//!
//! Copies are not ordered with the program's streams, except for the default stream of CUDA and HIP:
//! the program synchronises its streams before it passes a buffer.
#![allow(unsafe_code)]

pub mod cuda;
mod ipc;
pub mod level_zero;
mod library;
pub mod rocm;
mod sharing;
mod tail;
pub mod twins;
mod used;

pub use library::Library;
pub use sharing::{Export, Flight};
pub use tail::Tail;
pub use used::{add, are_in_use, close_all, named};

use std::fmt;

/// Memory of a device, as its library describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// True if the library moves its pages between host and device.
    pub is_managed: bool,
    /// The context in which the memory was allocated; 0 if it belongs to none.
    pub context: usize,
    /// The device's index, as the accelerator's library numbers its devices.
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

/// A library that the program has loaded and that lacks a function, so that it cannot be used.
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

/// The library of a vendor.
pub trait Accelerator: Sync + Send {
    /// The name of the component, which is also that of its kind of memory (MPI 5.0, section 11.4.3).
    fn name(&self) -> &'static str;

    /// The library's display name, used in messages to the user.
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
    /// The memory is mapped as long as the process lives.
    unsafe fn pin(&self, memory: &Memory, at: *mut u8, len: usize) -> bool;

    /// Returns true if the library can copy while the caller does other work ([`Accelerator::begin`]).
    fn has_flights(&self) -> bool {
        false
    }

    /// Starts the copy of a strip.
    ///
    /// # Safety
    /// As [`Accelerator::copy`]; the host blocks stay valid until [`Accelerator::end`] has reported the end.
    unsafe fn begin(
        &self,
        _memory: &Memory,
        _direction: Direction,
        _strip: Strip,
    ) -> Result<Flight, AcceleratorError> {
        Err(self.has_no("copies in flight"))
    }

    /// Returns the outcome of a copy that was started, once; `None` while it is in flight. With `waits`, waits for the end of the copy and never returns
    /// `None`.
    fn end(&self, _flight: Flight, _waits: bool) -> Option<Result<(), AcceleratorError>> {
        Some(Ok(()))
    }

    /// Returns a handle of device memory for other processes of the node; earlier work of the default stream on the memory is complete then. `None` if the
    /// memory has no handle.
    fn export(&self, _memory: &Memory, _at: *const u8, _len: usize) -> Option<Export> {
        None
    }

    /// Starts a copy from device memory of another process to memory of this process. The number of the other process must be the same for all its exports.
    /// `near` is the memory at the target if it is on a device.
    ///
    /// # Safety
    /// If the target is in host memory it is valid for writing until [`Accelerator::end`] has reported the end.
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

    /// Closes the memory of other processes. The caller makes sure that no copy from it is in flight.
    fn close(&self) {}

    /// Returns the error for a function that a component does not have.
    fn has_no(&self, what: &'static str) -> AcceleratorError {
        AcceleratorError {
            title: self.title(),
            function: what,
            reason: "no support".into(),
        }
    }
}

/// The accelerator of a library: `None` if the program has not loaded it.
pub type Resident = Option<Result<Box<dyn Accelerator>, Lacks>>;

/// A component: its name, and a function that returns it if the program has loaded its library.
pub struct Component {
    /// The name in selections.
    pub name: &'static str,
    /// Returns the accelerator if the program has loaded its library.
    pub resident: fn() -> Resident,
}

/// The components, in the order in which they are asked about an address.
pub const BUILT_IN: [Component; 3] = [cuda::COMPONENT, rocm::COMPONENT, level_zero::COMPONENT];

/// Maximum length of a copy that is started as one: with several in flight, a library overlaps their steps.
const PIECE: usize = 1 << 20;

/// Returns the blocks of a strip in pieces of at most [`PIECE`] bytes: device address, host address, length.
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
