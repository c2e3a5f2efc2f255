//! One run of bytes to be written: the buffer of most receives, small enough for registers; and a receive's buffer of either kind.
#![allow(unsafe_code)]

use std::cell::Cell;

use super::{Named, RecvBuf};
use mpi_base::copy::copy;

/// A run of bytes of the user's.
#[derive(Clone, Copy, Debug)]
pub struct RecvBytes {
    ptr: *mut u8,
    len: usize,
}

impl RecvBytes {
    /// `len` bytes at `ptr`.
    ///
    /// # Safety
    /// Until the operation that uses them is complete, all of them must be writable and no other code may use them.
    #[inline]
    pub unsafe fn new(ptr: *mut u8, len: usize) -> RecvBytes {
        RecvBytes { ptr, len }
    }

    /// Nothing at all.
    pub const fn empty() -> RecvBytes {
        RecvBytes {
            ptr: std::ptr::null_mut(),
            len: 0,
        }
    }

    /// In bytes; what a longer message has beyond that is cut off.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Room for nothing still receives: a message without data.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// So many of the bytes from `at` on; cut to what there is.
    #[inline]
    pub fn part(self, at: usize, len: usize) -> RecvBytes {
        let at = at.min(self.len);
        RecvBytes {
            ptr: self.ptr.wrapping_add(at),
            len: len.min(self.len - at),
        }
    }

    /// Shows the bytes to `f`.
    #[inline]
    pub fn with<R>(self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        if self.len == 0 {
            return f(&mut []);
        }
        // SAFETY: the maker of this vouched for its bytes until the operation is complete, and the operation is ours.
        f(unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) })
    }

    /// Copies as much of `data` as there is room for.
    #[inline]
    pub fn fill(self, data: &[u8]) {
        let n = data.len().min(self.len);
        self.with(|room| copy(&data[..n], &mut room[..n]));
    }
}

impl From<RecvBytes> for RecvBuf {
    fn from(bytes: RecvBytes) -> RecvBuf {
        // SAFETY: the same bytes, vouched for by the maker of `bytes`.
        unsafe { RecvBuf::new(bytes.ptr, bytes.len as i64, Named::BYTE.into()) }
    }
}

/// The buffer of a receive.
pub enum Room {
    Bytes(RecvBytes),
    Typed(RecvBuf),
}

impl From<RecvBytes> for Room {
    #[inline]
    fn from(bytes: RecvBytes) -> Room {
        Room::Bytes(bytes)
    }
}

impl From<RecvBuf> for Room {
    #[inline]
    fn from(buf: RecvBuf) -> Room {
        Room::Typed(buf)
    }
}

impl Room {
    /// How many packed bytes it holds.
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            Room::Bytes(bytes) => bytes.len() as u64,
            Room::Typed(buf) => buf.bytes() as u64,
        }
    }

    /// Takes a whole message, as much of it as fits.
    #[inline]
    pub fn fill(&mut self, data: &[u8]) {
        match self {
            Room::Bytes(bytes) => bytes.fill(data),
            Room::Typed(buf) => {
                buf.unpack_at(0, data);
            }
        }
    }

    /// Takes packed bytes that belong at `at`, as many as fit.
    pub fn unpack_at(&mut self, at: i64, data: &[u8]) {
        match self {
            Room::Bytes(bytes) => {
                bytes.part(at.max(0) as usize, bytes.len()).fill(data);
            }
            Room::Typed(buf) => {
                buf.unpack_at(at, data);
            }
        }
    }

    /// Whether all of it is in few and long runs.
    #[inline]
    pub fn is_in_runs(&self) -> bool {
        match self {
            Room::Bytes(_) => true,
            Room::Typed(buf) => buf.is_in_runs(),
        }
    }

    /// Shows the places of the first `len` packed bytes to `f`, if they are in few and long runs.
    pub fn in_runs<R>(&mut self, len: u64, f: impl FnOnce(&[&[Cell<u8>]]) -> R) -> Option<R> {
        if let Room::Typed(buf) = self {
            return buf.in_runs(len, f);
        }
        let all = self.contiguous()?.get_mut(..usize::try_from(len).ok()?)?;
        Some(f(&[Cell::from_mut(all).as_slice_of_cells()]))
    }

    /// The whole of it as one slice, if its memory is one run.
    pub fn contiguous(&mut self) -> Option<&mut [u8]> {
        match self {
            Room::Bytes(RecvBytes { len: 0, .. }) => Some(&mut []),
            Room::Bytes(bytes) => {
                // SAFETY: the maker of this vouched for its bytes until the operation is complete, and the operation is ours.
                Some(unsafe { std::slice::from_raw_parts_mut(bytes.ptr, bytes.len) })
            }
            Room::Typed(buf) => buf.contiguous(),
        }
    }
}
