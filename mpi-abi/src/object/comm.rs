//! Communicators as the program holds them: the engine's value with an error handler, attributes, hints and a buffer.

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

/// A communicator and what the program has hung on it.
pub struct CommObject {
    pub comm: Comm,
    handle: Cell<MPI_Comm>,
    pub attached: Attached,
    /// Buffered sends of this communicator alone.
    pub buffer: Buffer,
    pub user_buffer: UserBuffer,
    /// How its processes are arranged; set when it is made, if at all.
    pub topology: OnceCell<Topology>,
    /// Where it comes from, if not from `MPI_COMM_WORLD` or `MPI_COMM_SELF`.
    pub session: Option<Rc<SessionObject>>,
}

impl CommObject {
    /// A communicator without anything but what its origin gives it.
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

    /// A communicator with a predefined handle.
    pub fn predefined(comm: Comm, handle: MPI_Comm) -> Rc<CommObject> {
        CommObject::new(comm, handle, Attached::new(), None)
    }

    /// The handle, also after it has been freed.
    pub fn handle(&self) -> MPI_Comm {
        self.handle.get()
    }

    /// It has got this handle.
    pub(crate) fn set_handle(&self, handle: MPI_Comm) {
        self.handle.set(handle);
    }

    /// The name the program gave, or what can be said without one.
    pub fn label(&self) -> String {
        self.comm.label()
    }

    /// What its buffered sends go through: the buffer attached to it, or else to its session, or else to the process; the last
    /// serves also if none is attached (section 3.6).
    pub fn send_buffer(&self) -> &Buffer {
        match &self.session {
            _ if self.buffer.is_attached() => &self.buffer,
            Some(session) if session.buffer.is_attached() => &session.buffer,
            _ => self.comm.engine().buffer(),
        }
    }
}

impl Failure {
    /// The same failure of an operation on a communicator, which may have been freed and is kept until its handler has heard.
    pub fn of(self, comm: &Rc<CommObject>) -> Failure {
        self.on_kept(Target::Comm(comm.handle()), comm.clone())
    }
}
