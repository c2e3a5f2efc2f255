//! Request handles: lookup, state, wait and start.
//!
//! A handle refers to an engine operation, a persistent operation, or a generalized request.
//! Module `handles` resolves handles.
//! A send that completes within the call has the handle [`DONE`], which is always complete.
//!
//! Protocol: the table is not borrowed while the engine progresses or a callback runs.

mod free_cancel;
mod handles;
mod outcome;

pub use free_cancel::{cancel, complete_general, free, reap_orphans, wait_for_orphans};
pub use handles::{
    DONE, limit_direct, persistent, persistent_in, register, running, running_for, running_on,
};
pub use outcome::{
    Finished, c_status, failed_status, finish, finish_simple, finish_simple_ones, of_both_halves,
    peek,
};

use handles::{direct, object as object_of, with_table};

use crate::abi::*;
use crate::device::Views;
use crate::error::{Failure, Target};
use crate::handle::{Kind, wrong};
use crate::object::request::{RequestObject, RequestState, StagedObject};
use crate::state::{self, state};
use mpi_core::request::{Body, Partitioned};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Returns the state of the operation behind a handle.
#[inline]
pub fn look(handle: MPI_Request) -> Result<RequestState, Failure> {
    match handle {
        MPI_REQUEST_NULL => return Ok(RequestState::Inactive),
        DONE => return Ok(RequestState::Complete),
        _ => {}
    }
    if let Some((index, name)) = direct(handle) {
        return match with_table(|table| table.is_named_complete(index, name)) {
            Some(true) => Ok(RequestState::Complete),
            Some(false) => Ok(RequestState::Running),
            None => Err(wrong(Kind::Request, handle.0)),
        };
    }
    look_up(handle)
}

/// Returns the state of an operation in the process's request table.
fn look_up(handle: MPI_Request) -> Result<RequestState, Failure> {
    let requests = state().tables().requests().borrow();
    let object = requests
        .get(handle.0)
        .ok_or_else(|| wrong(Kind::Request, handle.0))?;
    Ok(object.look())
}

/// Returns true if a wait for the handle would return immediately.
/// An invalid handle counts as settled: the call that takes it reports the error.
#[inline]
pub fn is_settled(handle: MPI_Request) -> bool {
    !matches!(look(handle), Ok(RequestState::Running))
}

/// Waits for one operation.
pub fn wait(handle: MPI_Request) -> Result<(), Failure> {
    if look(handle)? != RequestState::Running || spin_for(handle) {
        return Ok(());
    }
    state::engine()?.wait_for_messages(|| is_settled(handle), || publish_wait(handle, 1));
    Ok(())
}

/// Polls a running collective operation briefly, before a wait that also polls everything else.
/// Returns true if the operation is complete, and false for other operations.
#[inline]
pub fn spin_for(handle: MPI_Request) -> bool {
    let Some((index, name)) = direct(handle) else {
        return false;
    };
    let engine = state().engines().engine().borrow();
    let Some(engine) = engine.as_ref() else {
        return false;
    };
    let req = engine.pml().requests().named(index, name);
    req.is_some_and(|req| engine.operations().spin_for(&req))
}

/// Returns the state of a request. If it is running, polls the engine once and checks again.
pub fn state_after_progress(handle: MPI_Request) -> Result<RequestState, Failure> {
    match look(handle)? {
        RequestState::Running => {
            state::engine()?.poll_once();
            look(handle)
        }
        settled => Ok(settled),
    }
}

/// Publishes on the state page that the process waits for `requests` requests,
/// and that `handle` is the first of them.
#[cold]
pub fn publish_wait(handle: MPI_Request, requests: usize) {
    let Ok(engine) = state::engine() else { return };
    let Ok(object) = object_of(handle) else {
        return;
    };
    let begun = begun_by(object.unstaged());
    let running = match object.unstaged() {
        RequestObject::Running { req, also, .. } if req.is_complete() => also.clone(),
        RequestObject::Running { req, .. } => Some(req.clone()),
        RequestObject::Persistent(p) => {
            let operation = p.operation.borrow();
            if let Some(about) = operation.about() {
                engine
                    .published()
                    .waits_about(&about, requests as u32, begun);
            }
            operation.request().cloned()
        }
        _ => None,
    };
    if let Some(req) = running {
        engine.published().waits_for(&req, requests as u32, begun);
    }
}

/// Returns the number on the state page of the function that began a request, or 0 if it is not known.
fn begun_by(object: &RequestObject) -> u16 {
    match object {
        RequestObject::Running { also: Some(_), .. } => 0,
        RequestObject::Running { req, .. } => number_of_beginner(&req.body.borrow()),
        RequestObject::Persistent(p) => {
            (p.operation.borrow().created_by()).map_or(0, number_of_known)
        }
        _ => 0,
    }
}

/// Returns the number on the state page of the function that began a point-to-point operation, or 0
/// if it is not known. Requests do not record their function:
/// those of `MPI_Imrecv` and `MPI_Isendrecv` are named like a receive, those of `MPI_Irsend` like a send.
pub fn number_of_beginner(body: &Body) -> u16 {
    match body {
        Body::Recv(_) => number_of_known("MPI_Irecv"),
        Body::Send(send) if send.is_standard() => number_of_known("MPI_Isend"),
        _ => 0,
    }
}

/// The functions that are named as the beginners of requests.
const BEGINNERS: [&str; 8] = [
    "MPI_Irecv",
    "MPI_Isend",
    "MPI_Ssend_init",
    "MPI_Send_init",
    "MPI_Bsend_init",
    "MPI_Recv_init",
    "MPI_Psend_init",
    "MPI_Precv_init",
];

/// Returns the number on the state page of a function that begins requests, or 0.
///
/// The number is searched for in the first call. Threads of several lanes may make their first calls
/// at the same time; each of them then stores the same number.
fn number_of_known(name: &str) -> u16 {
    static NUMBERS: [AtomicU16; BEGINNERS.len()] = [const { AtomicU16::new(0) }; BEGINNERS.len()];
    let known = BEGINNERS.iter().zip(&NUMBERS);
    let Some((_, number)) = known.into_iter().find(|(known, _)| **known == name) else {
        return 0;
    };
    match number.load(Relaxed) {
        0 => {
            let found = state::number(crate::functions::id_of(name));
            number.store(found, Relaxed);
            found
        }
        found => found,
    }
}

/// Starts a persistent operation.
pub fn start(handle: MPI_Request) -> Result<(), Failure> {
    let object = object_of(handle)?;
    let RequestObject::Persistent(p) = object.unstaged() else {
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
    if let Some(staged) = object.staged() {
        staged.begin().map_err(|failure| failure.on(target))?;
    }
    operation
        .start(p.comm.send_buffer())
        .map_err(|e| Failure::from(e).on(target))
}

/// Calls `use_it` with a partitioned operation. Failures are raised on its communicator.
pub fn with_partitioned<R>(
    handle: MPI_Request,
    use_it: impl FnOnce(&Partitioned, Option<&Views>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let not_partitioned = || Failure::new(MPI_ERR_REQUEST, "the request is not partitioned");
    if handle == DONE {
        return Err(not_partitioned());
    }
    let object = object_of(handle)?;
    let RequestObject::Persistent(p) = object.unstaged() else {
        return Err(not_partitioned());
    };
    let operation = p.operation.borrow();
    let partitioned = operation.partitioned().ok_or_else(not_partitioned)?;
    let views = object.staged().map(|staged| &staged.views);
    use_it(partitioned, views).map_err(|failure| failure.on(Target::Comm(p.comm.handle())))
}

/// Attaches staged buffers to an operation until its request completes.
/// Returns the handle that replaces `handle`.
pub fn stage(handle: MPI_Request, views: Views) -> Result<MPI_Request, Failure> {
    if matches!(handle, MPI_REQUEST_NULL | DONE) {
        views.land()?;
        return Ok(handle);
    }
    let inner = handles::remove(handle)?;
    let staged = StagedObject::new(inner, views);
    register(RequestObject::Staged(Rc::new(staged)))
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
        assert_eq!(look(DONE).ok(), Some(RequestState::Complete));
        assert_eq!(look(MPI_REQUEST_NULL).ok(), Some(RequestState::Inactive));
        assert!(look(MPI_Request(DONE.0 - 1)).is_err());
    }
}
