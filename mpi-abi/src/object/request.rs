//! Requests as the program holds them.
//!
//! A handle leads to an operation of the engine, a persistent operation, or a generalized request of the program.
//! A send that was over when it returned needs none of these: it gets the handle [`DONE`], which is always complete.
//!
//! One operation of the engine is the commonest case, and its handle leads straight into the engine's own table (`direct`):
//! bit [`DIRECT`] is set, the index is that of the engine, and the engine knows the request by its handle.
//! All others are in the table of the process, whose handles have that bit clear.
//!
//! Protocol: the table is never borrowed while the engine progresses or a function of the program runs.

mod general;

pub use general::{General, complete_general};

use super::comm::CommObject;
use crate::abi::*;
use crate::call::Target;
use crate::error::Failure;
use crate::handle::{self, Kind, wrong};
use crate::state::{self, state};
use mpi_core::Engine;
use mpi_core::request::{Operation, Partitioned, Persistent, Req, Status, Table};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// The handle of an operation that was complete from the start; no table gives it out.
pub const DONE: MPI_Request = MPI_Request(((Kind::Request as usize + 1) << 27) - 1);

/// Set in a handle whose index is one of the engine's table.
const DIRECT: usize = 1 << 19;

/// What a request handle leads to.
#[derive(Clone)]
pub enum RequestObject {
    Running {
        req: Req,
        /// The send half of a send-receive, whose receive half is `req`.
        also: Option<Req>,
        /// Whose it is; nobody's where a buffer of the process or of a session is flushed.
        comm: Option<Rc<CommObject>>,
    },
    Persistent(Rc<PersistentObject>),
    General(Rc<General>),
}

/// An operation that is started again and again.
pub struct PersistentObject {
    operation: RefCell<Persistent>,
    comm: Rc<CommObject>,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A null handle or a persistent request that is not started: nothing to wait for.
    Inactive,
    Running,
    Complete,
}

/// How an operation ended.
pub struct Finished {
    pub status: MPI_Status,
    pub failure: Option<Failure>,
    /// The handle has become null; that of a persistent operation stays.
    pub gone: bool,
}

/// The status of an operation that received nothing (section 3.7.3).
pub const EMPTY: MPI_Status = MPI_Status {
    MPI_SOURCE: MPI_ANY_SOURCE,
    MPI_TAG: MPI_ANY_TAG,
    MPI_ERROR: MPI_SUCCESS,
    MPI_internal: [0; 5],
};

/// The engine's status as C sees it.
#[inline]
pub fn c_status(status: Status) -> MPI_Status {
    let mut c = MPI_Status {
        MPI_SOURCE: status.source,
        MPI_TAG: status.tag,
        ..EMPTY
    };
    c.set_bytes(status.bytes as i64);
    c.set_cancelled(status.cancelled);
    c
}

/// Gives an operation a handle.
#[inline(always)]
pub fn register(object: RequestObject) -> Result<MPI_Request, Failure> {
    let handle = state().requests.borrow_mut().insert(object);
    handle
        .filter(|handle| handle & DIRECT == 0)
        .map(MPI_Request)
        .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many requests"))
}

/// A handle for an operation of the engine.
pub fn running(req: Req, comm: &Rc<CommObject>) -> Result<MPI_Request, Failure> {
    running_for(req, Some(comm.clone()))
}

/// The same, perhaps without a communicator.
#[inline(always)]
pub fn running_for(req: Req, comm: Option<Rc<CommObject>>) -> Result<MPI_Request, Failure> {
    // The last index is left out: with it a handle could be `DONE`.
    if (req.index() as usize) < DIRECT - 1 {
        let handle = handle::make(
            Kind::Request,
            req.generation(),
            req.index() as usize | DIRECT,
        );
        req.hold(handle as u32, comm.map(|comm| comm as Rc<dyn Any>));
        return Ok(MPI_Request(handle));
    }
    register(RequestObject::Running {
        req,
        also: None,
        comm,
    })
}

/// The place in the engine's table that a handle leads to, if it leads there, and the name by which the engine knows it.
#[inline]
fn direct(handle: MPI_Request) -> Option<(u32, u32)> {
    /// What such handles have in common.
    const COMMON: usize = handle::make(Kind::Request, 0, DIRECT);
    let leads_there = handle.0 & !((DIRECT - 1) | handle::GENERATIONS) == COMMON;
    leads_there.then_some(((handle.0 & (DIRECT - 1)) as u32, handle.0 as u32))
}

/// Uses the engine's table of requests; `None` while there is no engine.
#[inline(always)]
fn with_table<R>(use_it: impl FnOnce(&Table) -> Option<R>) -> Option<R> {
    let engine = state().engine.borrow();
    use_it(engine.as_ref()?.pml().requests())
}

/// A handle for a persistent operation.
pub fn persistent(comm: &Rc<CommObject>, operation: Operation) -> Result<MPI_Request, Failure> {
    let operation = RefCell::new(Persistent::new(&comm.comm, operation));
    register(RequestObject::Persistent(Rc::new(PersistentObject {
        operation,
        comm: comm.clone(),
    })))
}

/// The object behind a handle that is neither null nor [`DONE`].
fn object(handle: MPI_Request) -> Result<RequestObject, Failure> {
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
        None => state().requests.borrow().get(handle.0).cloned(),
    };
    found.ok_or_else(|| wrong(Kind::Request, handle.0))
}

/// Takes a handle out of the world; the engine takes its own when their requests are handed back.
fn remove(handle: MPI_Request) -> Result<RequestObject, Failure> {
    match direct(handle) {
        Some(_) => {
            let object = object(handle)?;
            if let RequestObject::Running { req, .. } = &object {
                req.forget_name();
            }
            Ok(object)
        }
        None => {
            let removed = state().requests.borrow_mut().remove(handle.0);
            removed.ok_or_else(|| wrong(Kind::Request, handle.0))
        }
    }
}

/// How far the operation behind a handle is.
#[inline]
pub fn look(handle: MPI_Request) -> Result<Look, Failure> {
    match handle {
        MPI_REQUEST_NULL => return Ok(Look::Inactive),
        DONE => return Ok(Look::Complete),
        _ => {}
    }
    if let Some((index, name)) = direct(handle) {
        return match with_table(|table| table.is_named_complete(index, name)) {
            Some(true) => Ok(Look::Complete),
            Some(false) => Ok(Look::Running),
            None => Err(wrong(Kind::Request, handle.0)),
        };
    }
    look_up(handle)
}

/// How far an operation of the table of the process is.
fn look_up(handle: MPI_Request) -> Result<Look, Failure> {
    let requests = state().requests.borrow();
    let object = requests
        .get(handle.0)
        .ok_or_else(|| wrong(Kind::Request, handle.0))?;
    Ok(object.look())
}

/// Whether waiting for a handle is over; one that is wrong will be reported by whoever takes it.
#[inline]
pub fn is_settled(handle: MPI_Request) -> bool {
    !matches!(look(handle), Ok(Look::Running))
}

impl RequestObject {
    fn look(&self) -> Look {
        let complete = match self {
            RequestObject::Running { req, also, .. } => {
                req.is_complete() && also.as_ref().is_none_or(|r| r.is_complete())
            }
            RequestObject::Persistent(p) => {
                let operation = p.operation.borrow();
                if !operation.is_active() {
                    return Look::Inactive;
                }
                operation.is_complete()
            }
            RequestObject::General(g) => g.complete.get(),
        };
        if complete {
            Look::Complete
        } else {
            Look::Running
        }
    }

    /// Where failures of the operation are raised.
    fn target(&self) -> Target {
        match self {
            RequestObject::Running { comm, .. } => comm
                .as_ref()
                .map_or(Target::None, |comm| Target::Comm(comm.handle())),
            RequestObject::Persistent(p) => Target::Comm(p.comm.handle()),
            RequestObject::General(_) => Target::None,
        }
    }
}

/// Status and failure of an outcome of the engine.
fn settle(
    outcome: Result<Status, mpi_core::Error>,
    target: Target,
) -> (MPI_Status, Option<Failure>) {
    match outcome {
        Ok(status) => (c_status(status), None),
        Err(e) => {
            let failure = Failure::from(e).on(target);
            let status = MPI_Status {
                MPI_ERROR: failure.code(),
                ..EMPTY
            };
            (status, Some(failure))
        }
    }
}

/// Takes the outcome of an operation that is complete.
pub fn finish(handle: MPI_Request) -> Result<Finished, Failure> {
    if handle == MPI_REQUEST_NULL || handle == DONE {
        return Ok(Finished {
            status: EMPTY,
            failure: None,
            gone: true,
        });
    }
    let object = object(handle)?;
    let target = object.target();
    let gone = !matches!(object, RequestObject::Persistent(_));
    let (status, failure) = match &object {
        RequestObject::Running { req, also, comm } => {
            let engine;
            let table = match comm {
                Some(comm) => comm.comm.engine().pml().requests(),
                None => {
                    engine = state::engine()?;
                    engine.pml().requests()
                }
            };
            let sent = also.as_ref().map_or(Ok(Status::EMPTY), |r| table.finish(r));
            let received = table.finish(req);
            settle(received.and_then(|status| sent.map(|_| status)), target)
        }
        RequestObject::Persistent(p) => {
            let outcome = p.operation.borrow_mut().finish();
            settle(outcome, target)
        }
        RequestObject::General(g) => g.query(),
    };
    if gone && direct(handle).is_none() {
        state().requests.borrow_mut().remove(handle.0);
    }
    let freed = match &object {
        RequestObject::General(g) => g.free(),
        _ => None,
    };
    Ok(Finished {
        status,
        failure: failure.or(freed),
        gone,
    })
}

/// Takes the outcome of an operation of the commonest kinds that is complete and went well; anything else is for [`finish`].
#[inline(never)]
pub fn finish_simple(mut handle: MPI_Request) -> Option<Status> {
    let mut well = None;
    finish_simple_ones(std::slice::from_mut(&mut handle), |_, status| {
        well = Some(status)
    });
    well
}

/// The same for one operation after another, until there is one that it does not take; their handles become null.
///
/// Answers how many it took, and gives each one's place and status to `store`.
#[inline(always)]
pub fn finish_simple_ones(
    handles: &mut [MPI_Request],
    mut store: impl FnMut(usize, Status),
) -> usize {
    let engine = state().engine.borrow();
    let table = engine.as_ref().map(|engine| engine.pml().requests());
    for (at, handle) in handles.iter_mut().enumerate() {
        let well = match *handle {
            DONE => Some(Status::EMPTY),
            other => direct(other)
                .zip(table)
                .and_then(|((index, name), table)| table.finish_named(index, name)),
        };
        let Some(status) = well else { return at };
        *handle = MPI_REQUEST_NULL;
        store(at, status);
    }
    handles.len()
}

/// Looks at the outcome of a complete operation and leaves it there (`MPI_Request_get_status`).
pub fn peek(handle: MPI_Request) -> Result<(MPI_Status, Option<Failure>), Failure> {
    if handle == MPI_REQUEST_NULL || handle == DONE {
        return Ok((EMPTY, None));
    }
    let object = object(handle)?;
    let target = object.target();
    Ok(match &object {
        RequestObject::Running { req, .. } => settle(req.peek(), target),
        RequestObject::Persistent(p) => settle(p.operation.borrow().peek(), target),
        RequestObject::General(g) => g.query(),
    })
}

/// Waits for one operation.
pub fn wait(handle: MPI_Request) -> Result<(), Failure> {
    if look(handle)? != Look::Running {
        return Ok(());
    }
    state::engine()?.wait_telling(|| is_settled(handle), || tell(handle, 1));
    Ok(())
}

/// Tells the state page that the process waits for this request, the first of so many.
#[cold]
pub fn tell(handle: MPI_Request, requests: usize) {
    let Ok(engine) = state::engine() else { return };
    let running = match object(handle) {
        Ok(RequestObject::Running { req, also, .. }) if req.is_complete() => also,
        Ok(RequestObject::Running { req, .. }) => Some(req),
        Ok(RequestObject::Persistent(p)) => p.operation.borrow().request().cloned(),
        _ => None,
    };
    if let Some(req) = running {
        engine.tell(&req, requests as u32);
    }
}

/// Starts a persistent operation.
pub fn start(handle: MPI_Request) -> Result<(), Failure> {
    let RequestObject::Persistent(p) = object(handle)? else {
        return Err(Failure::new(
            MPI_ERR_REQUEST,
            "the request is not persistent and cannot be started",
        ));
    };
    let target = Target::Comm(p.comm.handle());
    let mut operation = p.operation.borrow_mut();
    if operation.is_active() {
        return Err(Failure::new(MPI_ERR_REQUEST, "the request is active already").on(target));
    }
    operation.start().map_err(|e| Failure::from(e).on(target))
}

/// Uses a partitioned operation; what goes wrong is raised where its other failures are.
pub fn with_partitioned<R>(
    handle: MPI_Request,
    use_it: impl FnOnce(&Partitioned) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let not_partitioned = || Failure::new(MPI_ERR_REQUEST, "the request is not partitioned");
    if handle == DONE {
        return Err(not_partitioned());
    }
    let RequestObject::Persistent(p) = object(handle)? else {
        return Err(not_partitioned());
    };
    let operation = p.operation.borrow();
    let partitioned = operation.partitioned().ok_or_else(not_partitioned)?;
    use_it(partitioned).map_err(|failure| failure.on(Target::Comm(p.comm.handle())))
}

/// Frees a handle; an operation under way goes on to its end.
pub fn free(handle: MPI_Request) -> Result<(), Failure> {
    if handle == DONE {
        return Ok(());
    }
    let orphans = &state().orphans;
    match remove(handle)? {
        RequestObject::Running { req, also, .. } => {
            orphans.borrow_mut().extend(also.into_iter().chain([req]))
        }
        RequestObject::Persistent(p) => orphans
            .borrow_mut()
            .extend(p.operation.borrow().request().cloned()),
        RequestObject::General(g) if g.complete.get() => {
            if let Some(failure) = g.free() {
                return Err(failure);
            }
        }
        RequestObject::General(_) => {}
    }
    reap_orphans();
    Ok(())
}

/// Lets go of freed operations that have ended.
pub fn reap_orphans() {
    let Ok(engine) = state::engine() else {
        return;
    };
    let requests = engine.pml().requests();
    state().orphans.borrow_mut().retain(|req| {
        if req.is_complete() {
            // Nobody is left to hear of a failure.
            let _ = requests.finish(req);
        }
        !req.is_complete()
    });
}

/// Asks for cancellation (section 3.8.4); it succeeds for receives that no message has met.
pub fn cancel(handle: MPI_Request) -> Result<(), Failure> {
    if handle == DONE {
        return Ok(());
    }
    let engine = state::engine()?;
    match object(handle)? {
        RequestObject::Running { req, .. } => cancel_operation(&engine, &req),
        RequestObject::Persistent(p) => {
            let req = p.operation.borrow().request().cloned();
            req.map_or(Ok(()), |req| cancel_operation(&engine, &req))
        }
        RequestObject::General(g) => g.cancel(),
    }
}

fn cancel_operation(engine: &Engine, req: &Req) -> Result<(), Failure> {
    match engine.script() {
        Some(script) => script.cancel(engine, req)?,
        None => {
            engine.pml().cancel_recv(req);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handle_of_a_finished_send_survives_the_way_through_fortran() {
        assert_eq!(
            crate::handle::from_int(crate::handle::to_int(DONE.0)),
            DONE.0
        );
        assert_eq!(look(DONE).ok(), Some(Look::Complete));
        assert_eq!(look(MPI_REQUEST_NULL).ok(), Some(Look::Inactive));
        assert!(look(MPI_Request(DONE.0 - 1)).is_err());
    }
}
