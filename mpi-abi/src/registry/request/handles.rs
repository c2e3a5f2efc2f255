//! Conversion between requests and handles.
//!
//! The handle of a single engine operation, the most frequent case, refers directly to the engine's own table ([`direct`]):
//! bit [`DIRECT`] is set, the index is the engine's, and the engine knows the request by its handle.
//! All others are in the table of the process, whose handles have that bit clear or, beyond the first half million, have another kind.

use crate::abi::*;
use crate::error::Failure;
use crate::handle::{self, Kind, wrong};
use crate::object::comm::CommObject;
use crate::object::file::FileObject;
use crate::object::request::{PersistentObject, RequestObject};
use crate::state::state;
use mpi_core::comm::Comm;
use mpi_core::request::{Operation, Persistent, Req, Table};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// The handle of an operation that was complete from the start; no table issues it.
pub const DONE: MPI_Request = MPI_Request(((Kind::Request as usize + 1) << 27) - 1);

/// Set in a handle whose index is one of the engine's table.
const DIRECT: usize = 1 << 19;

/// Gives an operation a handle.
#[inline(always)]
pub fn register(object: RequestObject) -> Result<MPI_Request, Failure> {
    let handle = state().tables().requests().borrow_mut().insert(object);
    handle
        .map(MPI_Request)
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many requests"))
}

/// Returns a handle for an operation of the engine.
pub fn running(req: Req, comm: &Rc<CommObject>) -> Result<MPI_Request, Failure> {
    running_for(req, Some(comm.clone()))
}

/// The same with an optional communicator.
#[inline(always)]
pub fn running_for(req: Req, comm: Option<Rc<CommObject>>) -> Result<MPI_Request, Failure> {
    match direct_handle(&req) {
        Some(handle) => {
            req.hold(handle.0 as u32, comm.map(|comm| comm as Rc<dyn Any>));
            Ok(handle)
        }
        None => register(RequestObject::Running {
            req,
            also: None,
            comm,
        }),
    }
}

/// The same for an access to a file, whose error handler is called on failure.
pub fn running_on(req: Req, file: Rc<FileObject>) -> Result<MPI_Request, Failure> {
    match direct_handle(&req) {
        Some(handle) => {
            req.hold(handle.0 as u32, Some(file));
            Ok(handle)
        }
        None => running_for(req, None),
    }
}

/// Returns the handle of an operation whose index in the engine's table fits into the direct range.
#[inline(always)]
fn direct_handle(req: &Req) -> Option<MPI_Request> {
    let index = req.index() as usize;
    // The last index is excluded: a handle with it could equal `DONE`.
    (index < DIRECT - 1).then(|| {
        MPI_Request(handle::make(
            Kind::Request,
            req.generation(),
            index | DIRECT,
        ))
    })
}

/// Returns the file of a request, if it is a file access.
pub(super) fn file_of(req: &Req) -> Option<Rc<FileObject>> {
    req.held().and_then(|held| held.downcast().ok())
}

/// Returns the index into the engine's table for a direct handle, and the name by which the engine knows the request.
#[inline]
pub(super) fn direct(handle: MPI_Request) -> Option<(u32, u32)> {
    /// The bits that all direct handles share.
    const COMMON: usize = handle::make(Kind::Request, 0, DIRECT);
    let leads_there = handle.0 & !((DIRECT - 1) | handle::GENERATIONS) == COMMON;
    leads_there.then_some(((handle.0 & (DIRECT - 1)) as u32, handle.0 as u32))
}

/// Calls `use_it` with the engine's table of requests; `None` while there is no engine.
#[inline(always)]
pub(super) fn with_table<R>(use_it: impl FnOnce(&Table) -> Option<R>) -> Option<R> {
    let engine = state().engines().engine().borrow();
    use_it(engine.as_ref()?.pml().requests())
}

/// Returns a handle for a persistent operation.
pub fn persistent(comm: &Rc<CommObject>, operation: Operation) -> Result<MPI_Request, Failure> {
    persistent_in(&comm.comm, comm, operation)
}

/// The same for an operation that is executed `within` another communicator than the one it was created on.
pub fn persistent_in(
    within: &Comm,
    comm: &Rc<CommObject>,
    operation: Operation,
) -> Result<MPI_Request, Failure> {
    let operation = RefCell::new(Persistent::new(within, operation));
    register(RequestObject::Persistent(Rc::new(PersistentObject {
        operation,
        comm: comm.clone(),
    })))
}

/// Returns the object behind a handle that is neither null nor [`DONE`].
pub(super) fn object(handle: MPI_Request) -> Result<RequestObject, Failure> {
    let found = match direct(handle) {
        Some((index, name)) => with_table(|table| {
            let req = table.named(index, name)?;
            let comm = req.held().and_then(|held| held.downcast().ok());
            Some(RequestObject::Running {
                req,
                also: None,
                comm,
            })
        }),
        None => state().tables().requests().borrow().get(handle.0).cloned(),
    };
    found.ok_or_else(|| wrong(Kind::Request, handle.0))
}

/// Removes a handle; the engine invalidates its own handles when their requests are released.
pub(super) fn remove(handle: MPI_Request) -> Result<RequestObject, Failure> {
    match direct(handle) {
        Some(_) => {
            let object = object(handle)?;
            if let RequestObject::Running { req, .. } = &object {
                req.forget_name();
            }
            Ok(object)
        }
        None => {
            let removed = state().tables().requests().borrow_mut().remove(handle.0);
            removed.ok_or_else(|| wrong(Kind::Request, handle.0))
        }
    }
}
