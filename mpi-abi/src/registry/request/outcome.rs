//! Outcomes of operations: status and failure, taken at the end of a request or only read.

use super::handles::{DONE, direct, file_of, object};
use crate::abi::*;
use crate::error::{Failure, Target};
use crate::object::comm::CommObject;
use crate::object::file::FileObject;
use crate::object::request::RequestObject;
use crate::object::status::EMPTY;
use crate::state::{self, state};
use mpi_core::request::Status;
use std::rc::Rc;

/// The outcome of an operation.
pub struct Finished {
    pub status: MPI_Status,
    pub failure: Option<Failure>,
    /// True if the handle has become null. The handle of a persistent request stays.
    pub gone: bool,
}

/// Converts the engine's status into the C struct.
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

/// Returns the status of a failed operation.
/// If a message arrived, the status describes it, so that the program can identify it.
pub fn failed_status(error: &mpi_core::Error) -> MPI_Status {
    error.received().map_or(EMPTY, c_status)
}

/// Converts an engine result to a status and a failure.
fn status_and_failure(
    outcome: Result<Status, mpi_core::Error>,
    comm: Option<&Rc<CommObject>>,
    file: Option<&Rc<FileObject>>,
) -> (MPI_Status, Option<Failure>) {
    match outcome {
        Ok(status) => (c_status(status), None),
        Err(e) => {
            let seen = failed_status(&e);
            let failure = Failure::from(e);
            let failure = match comm {
                Some(comm) => failure.of(comm),
                None => failure.on(file.map_or(Target::None, |file| Target::File(file.handle()))),
            };
            let status = MPI_Status {
                MPI_ERROR: failure.code(),
                ..seen
            };
            (status, Some(failure))
        }
    }
}

impl RequestObject {
    /// Returns the outcome of an interrupted wait for an active operation. The handle stays.
    fn interruption(&self) -> Option<Finished> {
        let (status, failure) = match self.unstaged() {
            RequestObject::Running { req, .. } if req.is_interrupted() => {
                status_and_failure(req.peek(), self.comm(), None)
            }
            RequestObject::Persistent(p) => {
                let operation = p.operation.borrow();
                let req = operation.request().filter(|req| req.is_interrupted())?;
                status_and_failure(req.peek(), self.comm(), None)
            }
            _ => return None,
        };
        Some(Finished {
            status,
            failure,
            gone: false,
        })
    }
}

/// Returns the outcome of a send-receive.
/// If both halves failed, the receive's error is returned, as in MPICH.
/// The status is that of the receive, whose error also shows whether a message was received.
pub fn of_both_halves<R, S, E>(received: Result<R, E>, sent: Result<S, E>) -> Result<R, E> {
    received.and_then(|status| sent.map(|_| status))
}

/// Takes the outcome of a complete operation, and releases the request.
pub fn finish(handle: MPI_Request) -> Result<Finished, Failure> {
    if handle == MPI_REQUEST_NULL || handle == DONE {
        return Ok(Finished {
            status: EMPTY,
            failure: None,
            gone: true,
        });
    }
    let object = object(handle)?;
    if let Some(interrupted) = object.interruption() {
        return Ok(interrupted);
    }
    let gone = !matches!(object.unstaged(), RequestObject::Persistent(_));
    let (status, failure) = match object.unstaged() {
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
            let file = comm.is_none().then(|| file_of(req)).flatten();
            let both = of_both_halves(table.finish(req), sent);
            status_and_failure(both, object.comm(), file.as_ref())
        }
        RequestObject::Persistent(p) => {
            let outcome = p.operation.borrow_mut().finish();
            status_and_failure(outcome, object.comm(), None)
        }
        RequestObject::General(g) => g.query(),
        // `unstaged` never returns a staged request.
        RequestObject::Staged(_) => (EMPTY, None),
    };
    let failure = landed(&object, &status, failure);
    if gone && direct(handle).is_none() {
        state().tables().requests().borrow_mut().remove(handle.0);
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

/// Takes the outcome of a successful operation with a direct handle or with the handle [`DONE`].
/// Returns `None` for all other operations, which [`finish`] handles.
#[inline(never)]
pub fn finish_simple(mut handle: MPI_Request) -> Option<Status> {
    let mut well = None;
    finish_simple_ones(std::slice::from_mut(&mut handle), |_, status| {
        well = Some(status)
    });
    well
}

/// Takes the outcomes of consecutive operations, as [`finish_simple`] does.
/// Stops at the first other operation. The handles of the taken operations become null.
///
/// Returns the number of taken operations. `store` receives the index and status of each.
#[inline(always)]
pub fn finish_simple_ones(
    handles: &mut [MPI_Request],
    mut store: impl FnMut(usize, Status),
) -> usize {
    let engine = state().engines().engine().borrow();
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

/// Reads the outcome of a complete operation, and keeps the request (`MPI_Request_get_status`).
pub fn peek(handle: MPI_Request) -> Result<(MPI_Status, Option<Failure>), Failure> {
    if handle == MPI_REQUEST_NULL || handle == DONE {
        return Ok((EMPTY, None));
    }
    let object = object(handle)?;
    let (status, failure) = match object.unstaged() {
        RequestObject::Running { req, .. } => {
            status_and_failure(req.peek(), object.comm(), file_of(req).as_ref())
        }
        RequestObject::Persistent(p) => {
            status_and_failure(p.operation.borrow().peek(), object.comm(), None)
        }
        RequestObject::General(g) => g.query(),
        // `unstaged` never returns a staged request.
        RequestObject::Staged(_) => (EMPTY, None),
    };
    let failure = landed(&object, &status, failure);
    Ok((status, failure))
}

/// Copies the results of a complete operation to device memory. Returns the first failure.
fn landed(
    object: &RequestObject,
    status: &MPI_Status,
    failure: Option<Failure>,
) -> Option<Failure> {
    let Some(staged) = object.staged() else {
        return failure;
    };
    if failure.as_ref().is_some_and(Failure::is_of_fault_tolerance) {
        // Messages of an operation that failed by the death of a rank may still arrive.
        // So the operation's host memory is kept until the process ends.
        std::mem::forget(staged.clone());
    }
    let copied = staged.land(u64::try_from(status.bytes()).unwrap_or(0));
    let lost = copied.err().map(|lost| match object.comm() {
        Some(comm) => lost.of(comm),
        None => lost,
    });
    failure.or(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_errors_of_a_send_receive_the_receives_is_returned() {
        let both = |received, sent| of_both_halves::<i32, (), &str>(received, sent);
        assert_eq!(both(Ok(1), Ok(())), Ok(1));
        assert_eq!(both(Ok(1), Err("send")), Err("send"));
        assert_eq!(both(Err("receive"), Ok(())), Err("receive"));
        assert_eq!(both(Err("receive"), Err("send")), Err("receive"));
    }
}
