//! [`RecvBytes`], a contiguous receive buffer of bytes that is passed in registers, and
//! [`RecvTarget`], which is either a `RecvBytes` or a [`RecvBuf`].
#![allow(unsafe_code)]

use std::cell::Cell;

use super::{Named, RecvBuf};
use mpi_base::copy::copy;

/// A contiguous buffer of bytes in user memory.
#[derive(Clone, Copy, Debug)]
pub struct RecvBytes {
    ptr: *mut u8,
    len: usize,
}

impl RecvBytes {
    /// Creates a buffer of `len` bytes at `ptr`.
    ///
    /// # Safety
    /// Until the operation that uses the buffer is complete,
    /// all `len` bytes must be writable, and no other code may use them.
    #[inline]
    pub unsafe fn new(ptr: *mut u8, len: usize) -> RecvBytes {
        RecvBytes { ptr, len }
    }

    /// Creates a buffer of 0 bytes.
    pub const fn empty() -> RecvBytes {
        RecvBytes {
            ptr: std::ptr::null_mut(),
            len: 0,
        }
    }

    /// Returns the length in bytes, to which a longer message is truncated.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns the address of the bytes, for functions in C.
    #[inline]
    pub fn ptr(self) -> *mut u8 {
        self.ptr
    }

    /// Returns true for a buffer of 0 bytes, which can still receive a message without data.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns `len` bytes from `at` on, clamped to the buffer.
    #[inline]
    pub fn part(self, at: usize, len: usize) -> RecvBytes {
        let at = at.min(self.len);
        RecvBytes {
            ptr: self.ptr.wrapping_add(at),
            len: len.min(self.len - at),
        }
    }

    /// Calls `f` with the bytes.
    #[inline]
    pub fn with<R>(self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        if self.len == 0 {
            return f(&mut []);
        }
        // SAFETY: the caller of `new` guarantees that the bytes are writable, and that no other
        // code uses them until the operation is complete.
        // The library calls this method only before completion.
        f(unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) })
    }

    /// Copies `data` to the buffer, truncated to the buffer.
    #[inline]
    pub fn fill(self, data: &[u8]) {
        let n = data.len().min(self.len);
        self.with(|buffer| copy(&data[..n], &mut buffer[..n]));
    }
}

impl From<RecvBytes> for RecvBuf {
    fn from(bytes: RecvBytes) -> RecvBuf {
        // SAFETY: the new buffer has the same bytes.
        // The caller of `RecvBytes::new` guaranteed their validity.
        unsafe { RecvBuf::new(bytes.ptr, bytes.len as i64, Named::BYTE.into()) }
    }
}

/// The buffer of a receive: bytes, or elements of a datatype.
pub enum RecvTarget {
    Bytes(RecvBytes),
    Typed(RecvBuf),
}

impl From<RecvBytes> for RecvTarget {
    #[inline]
    fn from(bytes: RecvBytes) -> RecvTarget {
        RecvTarget::Bytes(bytes)
    }
}

impl From<RecvBuf> for RecvTarget {
    #[inline]
    fn from(buf: RecvBuf) -> RecvTarget {
        RecvTarget::Typed(buf)
    }
}

impl RecvTarget {
    /// Returns the length of the buffer in packed bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            RecvTarget::Bytes(bytes) => bytes.len() as u64,
            RecvTarget::Typed(buf) => buf.bytes() as u64,
        }
    }

    /// Stores a complete message, truncated to the buffer.
    #[inline]
    pub fn fill(&mut self, data: &[u8]) {
        match self {
            RecvTarget::Bytes(bytes) => bytes.fill(data),
            RecvTarget::Typed(buf) => {
                buf.unpack_at(0, data);
            }
        }
    }

    /// Stores packed bytes at position `at`, truncated to the buffer.
    pub fn unpack_at(&mut self, at: i64, data: &[u8]) {
        match self {
            RecvTarget::Bytes(bytes) => {
                bytes.part(at.max(0) as usize, bytes.len()).fill(data);
            }
            RecvTarget::Typed(buf) => {
                buf.unpack_at(at, data);
            }
        }
    }

    /// Returns true if all data of the buffer are in few, long contiguous segments.
    #[inline]
    pub fn is_in_runs(&self) -> bool {
        match self {
            RecvTarget::Bytes(_) => true,
            RecvTarget::Typed(buf) => buf.is_in_runs(),
        }
    }

    /// Calls `f` with the memory of the first `len` packed bytes,
    /// if it is in few, long contiguous segments.
    pub fn in_runs<R>(&mut self, len: u64, f: impl FnOnce(&[&[Cell<u8>]]) -> R) -> Option<R> {
        if let RecvTarget::Typed(buf) = self {
            return buf.in_runs(len, f);
        }
        let all = self.contiguous()?.get_mut(..usize::try_from(len).ok()?)?;
        Some(f(&[Cell::from_mut(all).as_slice_of_cells()]))
    }

    /// Returns the whole buffer as one slice, if its data are contiguous.
    pub fn contiguous(&mut self) -> Option<&mut [u8]> {
        match self {
            RecvTarget::Bytes(RecvBytes { len: 0, .. }) => Some(&mut []),
            RecvTarget::Bytes(bytes) => {
                // SAFETY: the caller of `RecvBytes::new` guarantees that the bytes are writable,
                // and that no other code uses them until the operation is complete.
                // The library calls this method only before completion.
                Some(unsafe { std::slice::from_raw_parts_mut(bytes.ptr, bytes.len) })
            }
            RecvTarget::Typed(buf) => buf.contiguous(),
        }
    }
}
