//! Completion of requests: wait and test calls (section 3.7).
//!
//! All calls consist of three steps of [`crate::registry::request`].
//! `look` reads the state of a handle, and the engine waits for completion.
//! `finish` then releases the complete request.

mod batch;
mod statuses;

use super::args::{InOut, InOutArray, Out};
use super::replay::decide;
use crate::abi::*;
use crate::device;
use crate::error::{Failure, Outcome};
use crate::object::request::RequestState;
use crate::object::status::EMPTY;
use crate::registry::request::{
    self, Finished, c_status, failed_status, finish, finish_simple, look,
};
use crate::state;
use batch::Batch;
pub(super) use batch::SomeOutcome;
use mpi_core::record::Asker;
use mpi_core::request::Status;
pub(super) use statuses::Statuses;
use std::ffi::c_int;

/// Stores a status without `MPI_ERROR`, for a call that returns one status (section 3.2.5).
#[inline]
pub(crate) fn set_status(to: Out<MPI_Status>, status: &MPI_Status) {
    to.set_fields(status);
}

/// Stores the empty status, which includes `MPI_ERROR` (section 3.7.3).
pub(super) fn set_empty(to: Out<MPI_Status>) {
    if !to.is_ignored() {
        to.put(EMPTY);
    }
}

/// Stores the status of a blocking receive, also if it failed after a message was received.
#[inline(always)]
pub(super) fn set_received(
    to: Out<MPI_Status>,
    received: Result<Status, mpi_core::Error>,
) -> Outcome {
    match received {
        Ok(status) => set_status(to, &c_status(status)),
        Err(error) => return Err(failed(to, error)),
    }
    Ok(())
}

/// Reports the length of a received message to the module that copies it to a device buffer.
pub(super) fn landed(received: Result<Status, mpi_core::Error>) -> Result<Status, mpi_core::Error> {
    if state::is_staging() {
        let status = received
            .as_ref()
            .map_or_else(|e| e.received(), |status| Some(*status));
        device::received(status.map_or(0, |status| status.bytes));
    }
    received
}

#[cold]
fn failed(to: Out<MPI_Status>, error: mpi_core::Error) -> Failure {
    if error.received().is_some() {
        set_status(to, &failed_status(&error));
    }
    error.into()
}

/// Finishes the request with the handle in `place`.
/// The handle becomes null unless the request is persistent.
fn take(place: &mut MPI_Request) -> Result<Finished, Failure> {
    let finished = finish(*place)?;
    if finished.gone {
        *place = MPI_REQUEST_NULL;
    }
    Ok(finished)
}

/// Finishes one request of a call that has one status.
fn take_one(place: &mut MPI_Request, status: Out<MPI_Status>) -> Outcome {
    if let Some(well) = finish_simple(*place) {
        *place = MPI_REQUEST_NULL;
        set_status(status, &c_status(well));
        return Ok(());
    }
    let finished = take(place)?;
    set_status(status, &finished.status);
    finished.failure.map_or(Ok(()), Err)
}

/// Finishes a request whose handle is an in-out argument.
fn take_at(
    request: InOut<MPI_Request>,
    mut handle: MPI_Request,
    status: Out<MPI_Status>,
) -> Outcome {
    let outcome = take_one(&mut handle, status);
    request.out().put(handle);
    outcome
}

pub fn MPI_Wait(request: InOut<MPI_Request>, status: Out<MPI_Status>) -> Outcome {
    let handle = request.get("request")?;
    if look(handle)? == RequestState::Inactive {
        set_empty(status);
        return Ok(());
    }
    request::wait(handle)?;
    take_at(request, handle, status)
}

pub fn MPI_Test(request: InOut<MPI_Request>, flag: Out<c_int>, status: Out<MPI_Status>) -> Outcome {
    let handle = request.get("request")?;
    let natural = || request::state_after_progress(handle);
    let seen = decide(Asker::Test, &[handle], natural)?;
    flag.set((seen != RequestState::Running).into(), "flag")?;
    match seen {
        RequestState::Running => Ok(()),
        RequestState::Inactive => {
            set_empty(status);
            Ok(())
        }
        RequestState::Complete => take_at(request, handle, status),
    }
}

pub fn MPI_Waitall(
    count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Outcome {
    Batch::new(count, array_of_requests, array_of_statuses)?.take_all()
}

pub fn MPI_Testall(
    count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    flag: Out<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Outcome {
    let batch = Batch::new(count, array_of_requests, array_of_statuses)?;
    let natural = || Ok(batch.survey_with_retry(|s| s.running == 0)?.running == 0);
    let done = decide(Asker::Testall, batch.requests, natural)?;
    flag.set(done.into(), "flag")?;
    // If a recorded run is replayed, `done` may be true while requests are still active.
    // `take_all` then waits for these requests.
    if done { batch.take_all() } else { Ok(()) }
}

/// Finishes the complete request of a batch, or reports that no request is active.
fn take_any(
    batch: &mut Batch<'_>,
    complete: Option<usize>,
    indx: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    match complete {
        Some(i) => {
            indx.set(i as c_int, "index")?;
            take_one(&mut batch.requests[i], status)
        }
        None => {
            set_empty(status);
            indx.set(MPI_UNDEFINED, "index")
        }
    }
}

pub fn MPI_Waitany(
    count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    indx: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    let mut batch = Batch::new(count, array_of_requests, InOutArray::none())?;
    let natural = || {
        batch.wait_any()?;
        Ok(batch.first_complete())
    };
    let complete = decide(Asker::Waitany, batch.requests, natural)?;
    take_any(&mut batch, complete, indx, status)
}

pub fn MPI_Testany(
    count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    indx: Out<c_int>,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    let mut batch = Batch::new(count, array_of_requests, InOutArray::none())?;
    let natural = || {
        let survey = batch.survey_with_retry(|s| s.complete > 0 || s.running == 0)?;
        let nothing = survey.complete == 0 && survey.running > 0;
        Ok((!nothing).then(|| batch.first_complete()))
    };
    let found = decide(Asker::Testany, batch.requests, natural)?;
    let Some(complete) = found else {
        indx.set(MPI_UNDEFINED, "index")?;
        return flag.set(0, "flag");
    };
    flag.set(1, "flag")?;
    take_any(&mut batch, complete, indx, status)
}

pub fn MPI_Waitsome(
    incount: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    outcount: Out<c_int>,
    array_of_indices: InOutArray<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Outcome {
    let batch = Batch::new(incount, array_of_requests, array_of_statuses)?;
    let natural = || {
        // As in MPI_Testsome, one call finds all messages that have arrived.
        batch.survey_with_retry(|s| s.running == 0)?;
        Ok(match batch.wait_any()? {
            true => SomeOutcome::Complete,
            false => SomeOutcome::Inactive,
        })
    };
    let found = decide(Asker::Waitsome, batch.requests, natural)?;
    batch.take_several(&found, outcount, array_of_indices)
}

pub fn MPI_Testsome(
    incount: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    outcount: Out<c_int>,
    array_of_indices: InOutArray<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Outcome {
    let batch = Batch::new(incount, array_of_requests, array_of_statuses)?;
    let natural = || {
        // Polls even if a request is complete: one call must find all arrived messages.
        let survey = batch.survey_with_retry(|s| s.running == 0)?;
        Ok(match survey.running + survey.complete {
            0 => SomeOutcome::Inactive,
            _ => SomeOutcome::Complete,
        })
    };
    let found = decide(Asker::Testsome, batch.requests, natural)?;
    batch.take_several(&found, outcount, array_of_indices)
}
