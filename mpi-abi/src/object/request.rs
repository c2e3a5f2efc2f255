//! Request objects: an engine operation, a persistent operation, or a generalized request.

mod general;

pub use general::General;

use crate::abi::MPI_Request;
use crate::device::Views;
use crate::error::Failure;
use crate::object::comm::CommObject;
use mpi_core::request::{Persistent, Req};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// A null handle, or a persistent request that is not started.
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
        /// The communicator of the operation, or `None` for a flush of a process or session buffer.
        comm: Option<Rc<CommObject>>,
    },
    Persistent(Rc<PersistentObject>),
    General(Rc<General>),
    /// A `Running` or `Persistent` request whose buffers are in device memory.
    Staged(Rc<StagedObject>),
}

/// An operation whose buffers are in device memory, with the copies in host memory.
pub struct StagedObject {
    pub(crate) inner: RequestObject,
    pub(crate) views: Views,
    /// True after the results of the current operation were copied to the device.
    landed: Cell<bool>,
}

impl StagedObject {
    pub(crate) fn new(inner: RequestObject, views: Views) -> StagedObject {
        StagedObject {
            inner,
            views,
            landed: Cell::new(false),
        }
    }

    /// Starts the next operation of a persistent request.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        self.landed.set(false);
        Ok(self.views.fill()?)
    }

    /// Copies the results of a complete operation to the device, unless they were copied before.
    /// `received` is the length of a received message.
    pub(crate) fn land(&self, received: u64) -> Result<(), Failure> {
        if self.landed.replace(true) {
            return Ok(());
        }
        self.views.set_received(received);
        Ok(self.views.land()?)
    }
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
            RequestObject::Staged(staged) => return staged.inner.look(),
        };
        if complete {
            RequestState::Complete
        } else {
            RequestState::Running
        }
    }

    /// Returns the communicator on which failures of the operation are raised.
    pub(crate) fn comm(&self) -> Option<&Rc<CommObject>> {
        match self {
            RequestObject::Running { comm, .. } => comm.as_ref(),
            RequestObject::Persistent(p) => Some(&p.comm),
            RequestObject::General(_) => None,
            RequestObject::Staged(staged) => staged.inner.comm(),
        }
    }

    /// Returns the operation without its staged buffers.
    pub(crate) fn unstaged(&self) -> &RequestObject {
        match self {
            RequestObject::Staged(staged) => &staged.inner,
            other => other,
        }
    }

    /// Returns the staged operation, or `None` if no buffer is in device memory.
    pub(crate) fn staged(&self) -> Option<&Rc<StagedObject>> {
        match self {
            RequestObject::Staged(staged) => Some(staged),
            _ => None,
        }
    }
}

/// An operation whose handle was freed before completion.
pub struct Orphan {
    pub(crate) req: Req,
    pub(crate) comm: Option<Rc<CommObject>>,
    /// The staged buffers of the operation.
    pub(crate) staged: Option<Rc<StagedObject>>,
    /// True if the completion of `req` completes the whole operation, so that results are copied
    /// to the device. False for the send half of a send-receive.
    pub(crate) lands: bool,
}

/// A generalized request whose handle was freed before it was complete.
pub type FreedGeneral = (MPI_Request, Rc<General>);
