//! Communicators as the program holds them: the engine's value with an error handler, attributes, hints and a buffer.

use super::Attached;
use super::attribute::{Carrier, Owner};
use super::buffer::UserBuffer;
use super::session::SessionObject;
use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, wrong};
use crate::state::state;
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
    fn new(
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

    pub fn owner(&self) -> Owner<'_> {
        Owner {
            carrier: Carrier::Comm,
            handle: self.handle.get().0,
            attributes: &self.attached.attributes,
            keyvals: &state().keyvals,
        }
    }
}

/// Gives a communicator made from `parent` a handle; it inherits the error handler and the session.
pub fn register(comm: Comm, parent: &CommObject) -> Result<Rc<CommObject>, Failure> {
    let attached = Attached::inheriting(&parent.attached);
    register_with(comm, attached, parent.session.clone())
}

/// Gives a communicator a handle.
pub fn register_with(
    comm: Comm,
    attached: Attached,
    session: Option<Rc<SessionObject>>,
) -> Result<Rc<CommObject>, Failure> {
    let object = CommObject::new(comm, MPI_COMM_NULL, attached, session);
    let handle = state().comms.borrow_mut().insert(object.clone());
    let handle =
        handle.ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many communicators"))?;
    object.handle.set(MPI_Comm(handle));
    Ok(object)
}

/// Takes a communicator out of the table; operations under way keep it.
pub fn remove(handle: MPI_Comm) -> Result<(), Failure> {
    let removed = state().comms.borrow_mut().remove(handle.0);
    let removed = removed.ok_or_else(|| wrong(Kind::Comm, handle.0))?;
    let mut freed = state().freed_comms.borrow_mut();
    freed.retain(|object| object.strong_count() > 0);
    if Rc::strong_count(&removed) > 1 {
        freed.push(Rc::downgrade(&removed));
    }
    Ok(())
}
