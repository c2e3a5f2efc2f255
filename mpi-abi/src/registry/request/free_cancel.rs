//! Freeing and cancellation of requests.
//!
//! A freed operation continues as an orphan, and is released when it completes.
//! No call can report a failure of an orphan, so a failure ends the job (section 3.7.3).
//! A freed generalized request continues, too (section 13.2).
//! The program still completes the request by its handle.

use super::handles::{DONE, file_of, object, remove};
use crate::abi::*;
use crate::error::{Failure, Target};
use crate::functions::id_of;
use crate::object::comm::CommObject;
use crate::object::request::{General, Orphan, RequestObject, StagedObject};
use crate::raise;
use crate::state::{self, state};
use mpi_core::Engine;
use mpi_core::request::{Body, Req};
use std::rc::Rc;

/// Frees a handle. An active operation continues until completion.
pub fn free(handle: MPI_Request) -> Result<(), Failure> {
    if handle == DONE {
        return Ok(());
    }
    let object = remove(handle)?;
    let staged = object.staged().cloned();
    match object.unstaged().clone() {
        RequestObject::Running { req, also, comm } => {
            let send = also.map(|send| (send, false));
            let both = send.into_iter().chain([(req, true)]);
            adopt(both, comm.as_ref(), staged)
        }
        RequestObject::Persistent(p) => {
            let operation = p.operation.borrow();
            if operation.is_active() && operation.partitioned().is_some() {
                // The messages of the partitions have no common request for which an orphan could wait,
                // so their host memory is kept until the process ends.
                std::mem::forget(staged.clone());
            }
            let req = operation.request().map(|req| (req.clone(), true));
            adopt(req, Some(&p.comm), staged);
        }
        // `unstaged` never returns a staged request.
        RequestObject::Staged(_) => {}
        RequestObject::General(g) if g.complete.get() => {
            if let Some(failure) = g.free() {
                return Err(failure);
            }
        }
        RequestObject::General(g) => state()
            .unfinished()
            .freed_general()
            .borrow_mut()
            .push((handle, g)),
    }
    reap_orphans();
    Ok(())
}

/// Adds active operations, whose handles were freed, to the orphans.
/// The flag of a `Req` is true if its completion completes the whole operation.
/// In a send-receive, the flag is true for the receive and false for the send.
fn adopt(
    reqs: impl IntoIterator<Item = (Req, bool)>,
    comm: Option<&Rc<CommObject>>,
    staged: Option<Rc<StagedObject>>,
) {
    let comm = comm.cloned();
    let orphans = reqs.into_iter().map(|(req, lands)| Orphan {
        req,
        comm: comm.clone(),
        staged: staged.clone(),
        lands,
    });
    state().unfinished().orphans().borrow_mut().extend(orphans);
}

/// Releases orphans that have completed.
pub fn reap_orphans() {
    let Ok(engine) = state::engine() else {
        return;
    };
    let requests = engine.pml().requests();
    state()
        .unfinished()
        .orphans()
        .borrow_mut()
        .retain(|orphan| {
            let ended = orphan.req.is_complete();
            if ended {
                // An error of a file access is only returned to callers, and never ends the job.
                let of_file = file_of(&orphan.req).is_some();
                let finished = requests.finish(&orphan.req);
                let bytes = finished.as_ref().map_or(0, |status| status.bytes);
                let landing = orphan.staged.as_ref().filter(|_| orphan.lands);
                let landed = landing.map(|staged| staged.land(bytes));
                let failed = finished.err().map(Failure::from);
                if let Some(failure) = failed.or(landed.and_then(Result::err))
                    && !of_file
                {
                    orphan.end_job(failure);
                }
            }
            !ended
        });
}

impl Orphan {
    /// Ends the job because an orphan has failed. No call remains that can return the error.
    #[cold]
    fn end_job(&self, failure: Failure) -> ! {
        let target = match &self.comm {
            Some(comm) => Target::Comm(comm.handle()),
            None => Target::None,
        };
        raise::fatal(id_of("MPI_Request_free"), target, &failure)
    }
}

/// Waits until all orphans of a communicator are complete.
pub fn wait_for_orphans(comm: &Rc<CommObject>) -> Result<(), Failure> {
    let left = || {
        let orphans = state().unfinished().orphans().borrow();
        let of = |orphan: &Orphan| orphan.comm.as_ref().is_some_and(|c| Rc::ptr_eq(c, comm));
        orphans.iter().any(|o| of(o) && !o.req.is_complete())
    };
    state::engine()?.wait_until(|| !left());
    reap_orphans();
    Ok(())
}

/// Removes and returns the generalized request of a freed handle, if it is not complete.
fn take_freed_general(handle: MPI_Request) -> Option<Rc<General>> {
    let mut freed = state().unfinished().freed_general().borrow_mut();
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

/// Cancels an unmatched receive or an unmatched send (section 3.8.4).
///
/// Other operations cannot be cancelled, and return an error.
/// A program that relied on the cancellation would wait indefinitely.
pub fn cancel(handle: MPI_Request) -> Result<(), Failure> {
    if handle == DONE {
        return Ok(());
    }
    let engine = state::engine()?;
    match object(handle)?.unstaged() {
        RequestObject::Running { req, comm, .. } => {
            cancel_operation(&engine, req).map_err(|failure| match &comm {
                Some(comm) => failure.of(comm),
                None => failure,
            })
        }
        RequestObject::Persistent(p) => {
            let operation = p.operation.borrow();
            let cancelled = if operation.partitioned().is_some() {
                Err(not_cancelled("a partitioned send or receive"))
            } else if operation.is_collective() {
                Err(not_cancelled("a persistent collective operation"))
            } else {
                let active = operation.request();
                active.map_or(Ok(()), |req| cancel_operation(&engine, req))
            };
            cancelled.map_err(|failure| failure.of(&p.comm))
        }
        RequestObject::General(g) => g.cancel(),
        // `unstaged` never returns a staged request.
        RequestObject::Staged(_) => Ok(()),
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
