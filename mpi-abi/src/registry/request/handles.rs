//! Conversion between request handles and requests.
//!
//! The most frequent request is a single engine operation.
//! The handle of such a request refers directly to the engine's table ([`direct`]).
//! In such a handle, bit [`DIRECT`] is set, and the index is that of the engine's table.
//! The engine stores the handle's low 32 bits as the name of the request.
//! All other requests are in the process's table. In their handles the bit is clear.
//! After the first half million of these requests, the handles have another kind field.

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
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The handle of an operation that completed within its call. No table issues this handle.
pub const DONE: MPI_Request = MPI_Request(((Kind::Request as usize + 1) << 27) - 1);

/// The bit of handles that contain an index into the engine's table.
const DIRECT: usize = 1 << 19;

/// Registers a handle for an operation.
#[inline(always)]
pub fn register(object: RequestObject) -> Result<MPI_Request, Failure> {
    let handle = state().tables().requests().borrow_mut().insert(object);
    handle
        .map(MPI_Request)
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many requests"))
}

/// Returns a handle for an engine operation on a communicator.
pub fn running(req: Req, comm: &Rc<CommObject>) -> Result<MPI_Request, Failure> {
    running_for(req, Some(comm.clone()))
}

/// Returns a handle for an engine operation, with an optional communicator.
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

/// Returns a handle for a file access. A failure is raised on the file.
pub fn running_on(req: Req, file: Rc<FileObject>) -> Result<MPI_Request, Failure> {
    match direct_handle(&req) {
        Some(handle) => {
            req.hold(handle.0 as u32, Some(file));
            Ok(handle)
        }
        None => running_for(req, None),
    }
}

/// The number of direct handles. The last index is excluded, since its handle could equal `DONE`.
static DIRECT_HANDLES: AtomicUsize = AtomicUsize::new(DIRECT - 1);

/// Leaves the direct handles with an index from 2^16 on to the lanes of the process (module `lanes`).
pub fn limit_direct() {
    DIRECT_HANDLES.store(1 << 16, Relaxed);
}

/// Returns the handle of an operation, if its index in the engine's table is in the direct range.
#[inline(always)]
fn direct_handle(req: &Req) -> Option<MPI_Request> {
    let index = req.index() as usize;
    (index < DIRECT_HANDLES.load(Relaxed)).then(|| {
        MPI_Request(handle::make(
            Kind::Request,
            req.generation(),
            index | DIRECT,
        ))
    })
}

/// Returns the file of a request, or `None` if the request is not a file access.
pub(super) fn file_of(req: &Req) -> Option<Rc<FileObject>> {
    req.held().and_then(|held| held.downcast().ok())
}

/// Splits a direct handle into the index in the engine's table and the name of the request.
/// Returns `None` for other handles.
#[inline]
pub(super) fn direct(handle: MPI_Request) -> Option<(u32, u32)> {
    /// The bits that are equal in all direct handles.
    const COMMON: usize = handle::make(Kind::Request, 0, DIRECT);
    let leads_there = handle.0 & !((DIRECT - 1) | handle::GENERATIONS) == COMMON;
    leads_there.then_some(((handle.0 & (DIRECT - 1)) as u32, handle.0 as u32))
}

/// Calls `use_it` with the engine's request table. Returns `None` if there is no engine.
#[inline(always)]
pub(super) fn with_table<R>(use_it: impl FnOnce(&Table) -> Option<R>) -> Option<R> {
    let engine = state().engines().engine().borrow();
    use_it(engine.as_ref()?.pml().requests())
}

/// Returns a handle for a persistent operation.
pub fn persistent(comm: &Rc<CommObject>, operation: Operation) -> Result<MPI_Request, Failure> {
    let peers = comm.comm.p2p();
    match operation {
        Operation::Send { dest, .. } | Operation::Buffered { dest, .. } => {
            peers.check_peer(dest, false)?;
        }
        Operation::Recv { source, .. } => peers.check_peer(source, true)?,
        Operation::Collective(_) | Operation::Partitioned(_) => {}
    }
    persistent_in(&comm.comm, comm, operation)
}

/// Returns a handle for a persistent operation that runs on the communicator `within`.
/// `comm` is the communicator of the call that created the operation.
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

/// Returns the object of a handle that is not null and not [`DONE`].
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

/// Removes a handle. The engine invalidates its own handles when it releases their requests.
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
