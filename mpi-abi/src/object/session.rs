//! Sessions as the program holds them (section 11.3): a hold on the engine, with an error handler, hints and a buffer.

use super::Attached;
use super::buffer::UserBuffer;
use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, wrong};
use crate::state::state;
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
    /// The handle, also after the session has been finalized.
    pub fn handle(&self) -> MPI_Session {
        self.handle.get()
    }
}

/// Gives a session a handle.
pub fn register(attached: Attached) -> Result<Rc<SessionObject>, Failure> {
    let object = Rc::new(SessionObject {
        handle: Cell::new(MPI_SESSION_NULL),
        attached,
        buffer: Buffer::default(),
        user_buffer: UserBuffer::new(),
    });
    let handle = state().sessions.borrow_mut().insert(object.clone());
    let handle =
        handle.ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many sessions"))?;
    object.handle.set(MPI_Session(handle));
    Ok(object)
}

/// Takes a session out of the table; what was made from it keeps it.
pub fn remove(handle: MPI_Session) -> Result<(), Failure> {
    let removed = state().sessions.borrow_mut().remove(handle.0);
    removed
        .map(|_| ())
        .ok_or_else(|| wrong(Kind::Session, handle.0))
}
