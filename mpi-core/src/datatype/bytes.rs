//! One run of bytes to be written: the buffer of most receives, small enough for registers.
#![allow(unsafe_code)]

use super::{Named, RecvBuf};

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
    /// Until the operation that uses them is complete, all of them must be writable and nobody else may use them.
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

    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Copies as much of `data` as there is room for.
    #[inline]
    pub fn fill(self, data: &[u8]) {
        let n = data.len().min(self.len);
        if n == 8 {
            // The commonest message is one word; spelling it out saves the call that copies.
            // SAFETY: as below, and `n` is 8.
            unsafe { self.ptr.cast::<[u8; 8]>().write(*data.as_ptr().cast()) };
            return;
        }
        // SAFETY: whoever made this vouched for its bytes, of which `n` are used; `data` is memory of the transport.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.ptr, n) };
    }
}

impl From<RecvBytes> for RecvBuf {
    fn from(bytes: RecvBytes) -> RecvBuf {
        // SAFETY: the same bytes, vouched for by whoever made `bytes`.
        unsafe { RecvBuf::new(bytes.ptr, bytes.len as i64, Named::BYTE.into()) }
    }
}
