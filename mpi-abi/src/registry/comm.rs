//! Registration of communicators.

use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, exhausted, wrong};
use crate::object::Attached;
use crate::object::attribute::{Carrier, Owner};
use crate::object::comm::CommObject;
use crate::object::session::SessionObject;
use crate::phase;
use crate::state::state;
use crate::tool::event;
use mpi_core::comm::Comm;
use std::rc::Rc;
use std::sync::OnceLock;

/// The functions that are called with each new communicator, and with each communicator whose handle is removed.
struct Followers {
    made: fn(&CommObject),
    freed: fn(&Rc<CommObject>),
}

static FOLLOWERS: OnceLock<Followers> = OnceLock::new();

/// Calls `made` with each communicator that gets a handle from now on, before the program knows the handle,
/// and `freed` with each communicator whose handle is removed. Later calls of this function have no effect.
pub fn follow(made: fn(&CommObject), freed: fn(&Rc<CommObject>)) {
    let _ = FOLLOWERS.set(Followers { made, freed });
}

impl CommObject {
    pub fn owner(&self) -> Owner<'_> {
        Owner {
            carrier: Carrier::Comm,
            handle: self.handle().0,
            attributes: &self.attached.attributes,
            keyvals: state().program().keyvals(),
        }
    }
}

/// Registers a handle for a communicator derived from `parent`.
/// The new communicator inherits the parent's error handler and session.
pub fn register(comm: Comm, parent: &CommObject) -> Result<Rc<CommObject>, Failure> {
    let attached = Attached::inheriting(&parent.attached);
    register_with(comm, attached, parent.session.clone())
}

/// Registers a handle for a communicator.
pub fn register_with(
    comm: Comm,
    attached: Attached,
    session: Option<Rc<SessionObject>>,
) -> Result<Rc<CommObject>, Failure> {
    let object = CommObject::new(comm, MPI_COMM_NULL, attached, session);
    let handle = state().tables().comms().borrow_mut().insert(object.clone());
    let handle = handle.ok_or_else(|| exhausted("communicators"))?;
    object.set_handle(MPI_Comm(handle));
    if object.comm.is_mixed() {
        report_connections();
    }
    if let Some(Followers { made, .. }) = FOLLOWERS.get() {
        made(&object);
    }
    event::communicator_made(&object);
    Ok(object)
}

/// Reports to the launcher the other jobs to which this process is connected, if the set changed.
/// Called after a communicator with processes of another job was created or freed.
pub fn report_connections() {
    let engine = state().engines().engine().borrow().clone();
    let (Some(engine), Some(launcher)) = (engine, phase::launcher()) else {
        return;
    };
    let jobs = engine.universe().connected_jobs();
    let mut told = state().jobs().connections().borrow_mut();
    if *told != jobs {
        launcher.tell_connections(&jobs);
        *told = jobs;
    }
}

/// Removes a communicator from the table. Active operations keep the object alive.
pub fn remove(handle: MPI_Comm) -> Result<(), Failure> {
    let removed = state().tables().comms().borrow_mut().remove(handle.0);
    let removed = removed.ok_or_else(|| wrong(Kind::Comm, handle.0))?;
    if let Some(Followers { freed, .. }) = FOLLOWERS.get() {
        freed(&removed);
    }
    event::communicator_freed(&removed);
    let mut freed = state().tables().freed_comms().borrow_mut();
    freed.retain(|object| object.strong_count() > 0);
    if Rc::strong_count(&removed) > 1 {
        freed.push(Rc::downgrade(&removed));
    }
    Ok(())
}

/// Registers a handle for a new communicator.
/// Returns the null handle on a process that is not a member.
pub fn register_some(
    new: Option<Comm>,
    attached: Attached,
    session: Option<Rc<SessionObject>>,
) -> Result<MPI_Comm, Failure> {
    match new {
        Some(new) => Ok(register_with(new, attached, session)?.handle()),
        None => Ok(MPI_COMM_NULL),
    }
}
