//! Sessions as the program holds them (section 11.3): a hold on the engine, with an error handler, hints and a buffer.

use super::Attached;
use super::buffer::UserBuffer;
use crate::abi::*;
use mpi_core::pml::buffered::Buffer;
use std::cell::Cell;
use std::rc::Rc;

/// A session and what the program has hung on it.
pub struct SessionObject {
    handle: Cell<MPI_Session>,
    pub attached: Attached,
    /// Buffered sends of the communicators that come from this session.
    pub buffer: Buffer,
    pub user_buffer: UserBuffer,
}

impl SessionObject {
    /// A session without a handle.
    pub(crate) fn new(attached: Attached) -> Rc<SessionObject> {
        Rc::new(SessionObject {
            handle: Cell::new(MPI_SESSION_NULL),
            attached,
            buffer: Buffer::default(),
            user_buffer: UserBuffer::new(),
        })
    }

    /// It has got this handle.
    pub(crate) fn set_handle(&self, handle: MPI_Session) {
        self.handle.set(handle);
    }

    /// The handle, also after the session has been finalized.
    pub fn handle(&self) -> MPI_Session {
        self.handle.get()
    }
}
