//! Registration of sessions.

use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, exhausted, wrong};
use crate::object::Attached;
use crate::object::session::SessionObject;
use crate::state::state;
use std::rc::Rc;

/// Registers a handle for a new session.
pub fn register(attached: Attached) -> Result<Rc<SessionObject>, Failure> {
    let object = SessionObject::new(attached);
    let handle = state()
        .tables()
        .sessions()
        .borrow_mut()
        .insert(object.clone());
    let handle = handle.ok_or_else(|| exhausted("sessions"))?;
    object.set_handle(MPI_Session(handle));
    Ok(object)
}

/// Removes a session from the table. Objects that derive from the session keep it alive.
pub fn remove(handle: MPI_Session) -> Result<(), Failure> {
    let removed = state().tables().sessions().borrow_mut().remove(handle.0);
    removed
        .map(|_| ())
        .ok_or_else(|| wrong(Kind::Session, handle.0))
}
