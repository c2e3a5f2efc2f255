//! Communicator objects: the engine's communicator with an error handler, attributes, hints and a buffer.

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

/// A communicator with everything the program has attached to it.
pub struct CommObject {
    pub comm: Comm,
    handle: Cell<MPI_Comm>,
    pub attached: Attached,
    /// The buffer for buffered sends of this communicator alone.
    pub buffer: Buffer,
    pub user_buffer: UserBuffer,
    /// Its virtual topology; set at creation, if at all.
    pub topology: OnceCell<Topology>,
    /// The session it derives from; none if it derives from `MPI_COMM_WORLD` or `MPI_COMM_SELF`.
    pub session: Option<Rc<SessionObject>>,
}

impl CommObject {
    /// Creates a communicator with nothing but what it inherits.
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

    /// Creates a communicator with a predefined handle.
    pub fn predefined(comm: Comm, handle: MPI_Comm) -> Rc<CommObject> {
        CommObject::new(comm, handle, Attached::new(), None)
    }

    /// Returns the handle, also after it has been freed.
    pub fn handle(&self) -> MPI_Comm {
        self.handle.get()
    }

    /// Sets its handle.
    pub(crate) fn set_handle(&self, handle: MPI_Comm) {
        self.handle.set(handle);
    }

    /// Returns the name that the program set, or a description.
    pub fn label(&self) -> String {
        self.comm.label()
    }

    /// The buffer for its buffered sends: the one attached to it, or else to its session, or else to the process; the last
    /// one is also used if none is attached (section 3.6).
    pub fn send_buffer(&self) -> &Buffer {
        match &self.session {
            _ if self.buffer.is_attached() => &self.buffer,
            Some(session) if session.buffer.is_attached() => &session.buffer,
            _ => self.comm.engine().buffer(),
        }
    }
}

impl Failure {
    /// The same failure, raised on a communicator, which may have been freed and is kept alive until its handler has been called.
    pub fn of(self, comm: &Rc<CommObject>) -> Failure {
        self.on_kept(Target::Comm(comm.handle()), comm.clone())
    }
}
