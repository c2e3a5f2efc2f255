//! The buffer that a program attaches for buffered sends (section 3.6).
//!
//! The engine stores buffered messages in its own memory.
//! Their total size is limited to that of the program's buffer.
//! The buffer's address is only returned at detach.

use std::cell::Cell;
use std::ffi::c_void;

/// Address and size of the program's buffer.
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
