//! Operations that the program wants no more: freed handles, and cancellation.
//!
//! A freed operation goes on to its end as an orphan of the process, which lets go of it there.

use super::RequestObject;
use super::handles::{DONE, object, remove};
use crate::abi::*;
use crate::error::Failure;
use crate::state::{self, state};
use mpi_core::Engine;
use mpi_core::request::Req;

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

/// Asks for cancellation (section 3.8.4); it succeeds for receives that no message has met, and for sends that no receive has met.
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
    if engine.pml().cancel_send(req) {
        return Ok(());
    }
    match engine.script() {
        Some(script) => script.cancel(engine, req)?,
        None => {
            engine.pml().cancel_recv(req);
        }
    }
    Ok(())
}
