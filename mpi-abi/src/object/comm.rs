//! Communicator objects: an engine communicator with the program's attached state.

use super::Attached;
use super::buffer::UserBuffer;
use super::session::SessionObject;
use crate::abi::*;
use crate::error::{Failure, Target};
use mpi_core::comm::Comm;
use mpi_core::pml::buffered::Buffer;
use mpi_core::topo::Topology;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A communicator with its attached error handler, attributes, hints and buffer.
pub struct CommObject {
    pub comm: Comm,
    handle: Cell<MPI_Comm>,
    pub attached: Attached,
    /// The buffer for buffered sends that is attached to this communicator.
    pub buffer: Buffer,
    pub user_buffer: UserBuffer,
    /// The virtual topology of the communicator, set at creation.
    pub topology: OnceCell<Topology>,
    /// The session from which the communicator derives, or `None` for the world model.
    pub session: Option<Rc<SessionObject>>,
}

impl CommObject {
    /// Creates a communicator object with the given state, without a buffer and without a topology.
    pub(crate) fn new(
        comm: Comm,
        handle: MPI_Comm,
        attached: Attached,
        session: Option<Rc<SessionObject>>,
    ) -> Rc<CommObject> {
        Rc::new(CommObject {
            comm,
            handle: Cell::new(handle),
            attached,
            buffer: Buffer::default(),
            user_buffer: UserBuffer::new(),
            topology: OnceCell::new(),
            session,
        })
    }

    /// Creates the object of a predefined communicator.
    pub fn predefined(comm: Comm, handle: MPI_Comm) -> Rc<CommObject> {
        CommObject::new(comm, handle, Attached::new(), None)
    }

    /// Returns the handle of the communicator, even after it was freed.
    pub fn handle(&self) -> MPI_Comm {
        self.handle.get()
    }

    /// Sets the handle of the communicator.
    pub(crate) fn set_handle(&self, handle: MPI_Comm) {
        self.handle.set(handle);
    }

    /// Returns the name that the program has set, or else a description.
    pub fn label(&self) -> String {
        self.comm.label()
    }

    /// Returns the buffer for buffered sends on this communicator (section 3.6).
    /// Candidates are the communicator's own buffer, then its session's, then the process's.
    /// Without an attached buffer, the process's buffer is returned.
    pub fn send_buffer(&self) -> &Buffer {
        match &self.session {
            _ if self.buffer.is_attached() => &self.buffer,
            Some(session) if session.buffer.is_attached() => &session.buffer,
            _ => self.comm.engine().buffer(),
        }
    }
}

impl Failure {
    /// Raises the failure on a communicator.
    /// A freed communicator is kept alive until its error handler has been called.
    pub fn of(self, comm: &Rc<CommObject>) -> Failure {
        self.on_kept(Target::Comm(comm.handle()), comm.clone())
    }
}
