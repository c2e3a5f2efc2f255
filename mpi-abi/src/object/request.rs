//! Request objects: an operation of the engine, a persistent operation, or a generalized request of the program.

mod general;

pub use general::General;

use crate::abi::MPI_Request;
use crate::object::comm::CommObject;
use mpi_core::request::{Persistent, Req};
use std::cell::RefCell;
use std::rc::Rc;

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// A null handle or a persistent request that is not started: nothing to wait for.
    Inactive,
    Running,
    Complete,
}

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
    pub(crate) operation: RefCell<Persistent>,
    pub(crate) comm: Rc<CommObject>,
}

impl RequestObject {
    /// Returns the state of the operation.
    pub(crate) fn look(&self) -> RequestState {
        let complete = match self {
            RequestObject::Running { req, also, .. } => {
                req.is_complete() && also.as_ref().is_none_or(|r| r.is_complete())
            }
            RequestObject::Persistent(p) => {
                let operation = p.operation.borrow();
                if !operation.is_active() {
                    return RequestState::Inactive;
                }
                operation.is_complete()
            }
            RequestObject::General(g) => g.complete.get(),
        };
        if complete {
            RequestState::Complete
        } else {
            RequestState::Running
        }
    }

    /// The communicator that failures of the operation are raised on.
    pub(crate) fn comm(&self) -> Option<&Rc<CommObject>> {
        match self {
            RequestObject::Running { comm, .. } => comm.as_ref(),
            RequestObject::Persistent(p) => Some(&p.comm),
            RequestObject::General(_) => None,
        }
    }
}

/// An operation whose handle was freed before it completed.
pub struct Orphan {
    pub(crate) req: Req,
    pub(crate) comm: Option<Rc<CommObject>>,
}

/// A generalized request whose handle was freed before it was complete.
pub type FreedGeneral = (MPI_Request, Rc<General>);
