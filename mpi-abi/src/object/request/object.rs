//! What handles of requests lead to.

use super::General;
use crate::abi::MPI_Request;
use crate::object::comm::CommObject;
use mpi_core::request::{Persistent, Req};
use std::cell::RefCell;
use std::rc::Rc;

/// What a request handle leads to.
#[derive(Clone)]
pub enum RequestObject {
    Running {
        req: Req,
        /// The send half of a send-receive, whose receive half is `req`.
        also: Option<Req>,
        /// The communicator that it belongs to; none where a buffer of the process or of a session is flushed.
        comm: Option<Rc<CommObject>>,
    },
    Persistent(Rc<PersistentObject>),
    General(Rc<General>),
}

/// An operation that is started again and again.
pub struct PersistentObject {
    pub(super) operation: RefCell<Persistent>,
    pub(super) comm: Rc<CommObject>,
}

impl RequestObject {
    /// Where failures of the operation are raised.
    pub(super) fn comm(&self) -> Option<&Rc<CommObject>> {
        match self {
            RequestObject::Running { comm, .. } => comm.as_ref(),
            RequestObject::Persistent(p) => Some(&p.comm),
            RequestObject::General(_) => None,
        }
    }
}

/// An operation whose handle was freed while it was under way.
pub struct Orphan {
    pub(super) req: Req,
    pub(super) comm: Option<Rc<CommObject>>,
}

/// A generalized request whose handle was freed before it was complete.
pub type FreedGeneral = (MPI_Request, Rc<General>);
