//! The object types behind request handles.

use super::General;
use crate::abi::MPI_Request;
use crate::object::comm::CommObject;
use mpi_core::request::{Persistent, Req};
use std::cell::RefCell;
use std::rc::Rc;

/// The object behind a request handle.
#[derive(Clone)]
pub enum RequestObject {
    Running {
        req: Req,
        /// The send half of a send-receive, whose receive half is `req`.
        also: Option<Req>,
        /// The communicator that it belongs to; none for a flush of a buffer of the process or of a session.
        comm: Option<Rc<CommObject>>,
    },
    Persistent(Rc<PersistentObject>),
    General(Rc<General>),
}

/// A persistent operation.
pub struct PersistentObject {
    pub(super) operation: RefCell<Persistent>,
    pub(super) comm: Rc<CommObject>,
}

impl RequestObject {
    /// The communicator that failures of the operation are raised on.
    pub(super) fn comm(&self) -> Option<&Rc<CommObject>> {
        match self {
            RequestObject::Running { comm, .. } => comm.as_ref(),
            RequestObject::Persistent(p) => Some(&p.comm),
            RequestObject::General(_) => None,
        }
    }
}

/// An operation whose handle was freed before it completed.
pub struct Orphan {
    pub(super) req: Req,
    pub(super) comm: Option<Rc<CommObject>>,
}

/// A generalized request whose handle was freed before it was complete.
pub type FreedGeneral = (MPI_Request, Rc<General>);
