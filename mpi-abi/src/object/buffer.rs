//! The buffer a program attaches for buffered sends (section 3.6).
//!
//! The engine keeps messages in memory of its own and counts them against the size; the address is only given back.

use std::cell::Cell;
use std::ffi::c_void;

/// Where the program's buffer lies and how large it is.
#[derive(Debug)]
pub struct UserBuffer(Cell<Option<(*mut c_void, i64)>>);

impl UserBuffer {
    pub const fn new() -> Self {
        UserBuffer(Cell::new(None))
    }

    pub fn set(&self, address: *mut c_void, size: i64) {
        self.0.set(Some((address, size)));
    }

    pub fn take(&self) -> Option<(*mut c_void, i64)> {
        self.0.take()
    }
}

impl Default for UserBuffer {
    fn default() -> Self {
        UserBuffer::new()
    }
}
