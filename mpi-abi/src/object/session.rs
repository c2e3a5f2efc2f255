//! Session objects (section 11.3), with an error handler, hints and a buffer.
//!
//! The engine runs while a session exists.

use super::Attached;
use super::buffer::UserBuffer;
use crate::abi::*;
use mpi_core::pml::buffered::Buffer;
use std::cell::Cell;
use std::rc::Rc;

/// A session with its attached error handler, hints and buffer.
pub struct SessionObject {
    handle: Cell<MPI_Session>,
    pub attached: Attached,
    /// The buffer for buffered sends on communicators that derive from this session.
    pub buffer: Buffer,
    pub user_buffer: UserBuffer,
}

impl SessionObject {
    /// Creates a session without a handle.
    pub(crate) fn new(attached: Attached) -> Rc<SessionObject> {
        Rc::new(SessionObject {
            handle: Cell::new(MPI_SESSION_NULL),
            attached,
            buffer: Buffer::default(),
            user_buffer: UserBuffer::new(),
        })
    }

    /// Sets the handle of the session.
    pub(crate) fn set_handle(&self, handle: MPI_Session) {
        self.handle.set(handle);
    }

    /// Returns the handle, even after the session was finalized.
    pub fn handle(&self) -> MPI_Session {
        self.handle.get()
    }
}
