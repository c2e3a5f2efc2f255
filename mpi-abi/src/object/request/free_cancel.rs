//! Operations that the program wants no more: freed handles, and cancellation.
//!
//! A freed operation goes on to its end as an orphan of the process, which lets go of it there.
//! No call can tell that it failed, so that ends the job (section 3.7.3).
//! A freed generalized request goes on as well: the program still has its handle and says when it is complete (section 13.2).

use super::handles::{DONE, file_of, object, remove};
use super::{General, Orphan, RequestObject};
use crate::abi::*;
use crate::error::{Failure, Target, raise};
use crate::functions::id_of;
use crate::object::comm::CommObject;
use crate::state::{self, state};
use mpi_core::Engine;
use mpi_core::request::{Body, Req};
use std::rc::Rc;

/// Frees a handle; an operation under way goes on to its end.
pub fn free(handle: MPI_Request) -> Result<(), Failure> {
    if handle == DONE {
        return Ok(());
    }
    match remove(handle)? {
        RequestObject::Running { req, also, comm } => {
            adopt(also.into_iter().chain([req]), comm.as_ref())
        }
        RequestObject::Persistent(p) => {
            adopt(p.operation.borrow().request().cloned(), Some(&p.comm))
        }
        RequestObject::General(g) if g.complete.get() => {
            if let Some(failure) = g.free() {
                return Err(failure);
            }
        }
        RequestObject::General(g) => state().freed_general.borrow_mut().push((handle, g)),
    }
    reap_orphans();
    Ok(())
}

/// Takes operations under way that no other code looks after.
fn adopt(reqs: impl IntoIterator<Item = Req>, comm: Option<&Rc<CommObject>>) {
    let comm = comm.cloned();
    let orphans = reqs.into_iter().map(|req| Orphan {
        req,
        comm: comm.clone(),
    });
    state().orphans.borrow_mut().extend(orphans);
}

/// Lets go of freed operations that have ended.
pub fn reap_orphans() {
    let Ok(engine) = state::engine() else {
        return;
    };
    let requests = engine.pml().requests();
    state().orphans.borrow_mut().retain(|orphan| {
        let ended = orphan.req.is_complete();
        if ended {
            // Errors of files are told to those that ask, and end no job.
            let of_file = file_of(&orphan.req).is_some();
            if let Err(error) = requests.finish(&orphan.req)
                && !of_file
            {
                orphan.end_job(error.into());
            }
        }
        !ended
    });
}

impl Orphan {
    /// It failed, and the call that could have said so has returned.
    #[cold]
    fn end_job(&self, failure: Failure) -> ! {
        let target = match &self.comm {
            Some(comm) => Target::Comm(comm.handle()),
            None => Target::None,
        };
        raise::fatal(id_of("MPI_Request_free"), target, &failure)
    }
}

/// Waits until no freed operation of a communicator is under way.
pub fn wait_for_orphans(comm: &Rc<CommObject>) -> Result<(), Failure> {
    let left = || {
        let orphans = state().orphans.borrow();
        let of = |orphan: &Orphan| orphan.comm.as_ref().is_some_and(|c| Rc::ptr_eq(c, comm));
        orphans.iter().any(|o| of(o) && !o.req.is_complete())
    };
    state::engine()?.wait_until(|| !left());
    reap_orphans();
    Ok(())
}

/// Takes the generalized request that a freed handle led to, if it is yet to be completed.
fn take_freed_general(handle: MPI_Request) -> Option<Rc<General>> {
    let mut freed = state().freed_general.borrow_mut();
    let at = freed.iter().position(|(freed, _)| *freed == handle)?;
    Some(freed.swap_remove(at).1)
}

/// Marks a generalized request as complete.
pub fn complete_general(handle: MPI_Request) -> Result<(), Failure> {
    if let Some(freed) = take_freed_general(handle) {
        freed.complete.set(true);
        return freed.free().map_or(Ok(()), Err);
    }
    let RequestObject::General(g) = object(handle)? else {
        return Err(Failure::new(
            MPI_ERR_REQUEST,
            "the request is not a generalized request",
        ));
    };
    g.complete.set(true);
    if let Ok(engine) = state::engine() {
        engine.pml().requests().nudge();
    }
    Ok(())
}

/// Asks for cancellation (section 3.8.4); it succeeds for receives that no message has met, and for sends that no receive has met.
///
/// Other operations cannot be cancelled, and a program that believed it would wait without end.
pub fn cancel(handle: MPI_Request) -> Result<(), Failure> {
    if handle == DONE {
        return Ok(());
    }
    let engine = state::engine()?;
    match object(handle)? {
        RequestObject::Running { req, comm, .. } => {
            cancel_operation(&engine, &req).map_err(|failure| match &comm {
                Some(comm) => failure.of(comm),
                None => failure,
            })
        }
        RequestObject::Persistent(p) => {
            let operation = p.operation.borrow();
            let cancelled = match (operation.partitioned(), operation.request()) {
                (Some(_), _) => Err(not_cancelled("a partitioned send or receive")),
                (None, Some(req)) => cancel_operation(&engine, req),
                (None, None) => Ok(()),
            };
            cancelled.map_err(|failure| failure.of(&p.comm))
        }
        RequestObject::General(g) => g.cancel(),
    }
}

fn not_cancelled(what: &str) -> Failure {
    let why = format!(
        "the request is of {what}, which cannot be cancelled; only nonblocking and persistent sends and receives can, so complete it by MPI_Wait"
    );
    Failure::new(MPI_ERR_REQUEST, why)
}

fn cancel_operation(engine: &Engine, req: &Req) -> Result<(), Failure> {
    if matches!(&*req.body.borrow(), Body::Coll(_)) {
        return Err(not_cancelled(
            "a nonblocking collective operation, or one on a window or a file",
        ));
    }
    if engine.pml().cancel_send(req) {
        return Ok(());
    }
    Ok(engine.cancel_recv(req)?)
}
