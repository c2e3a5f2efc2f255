//! Completion of requests: wait and test calls (section 3.7).
//!
//! All forms consist of three steps of [`crate::object::request`]: `look` at the state of a handle, `finish` a complete one, and wait
//! with the engine in between.

mod batch;
mod statuses;

use super::args::{out, read};
use super::replay::decide;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::request::{
    self, EMPTY, Finished, RequestState, c_status, failed_status, finish, finish_simple, look,
};
use batch::Batch;
pub(super) use batch::SomeOutcome;
use mpi_core::record::Asker;
use mpi_core::request::Status;
pub(super) use statuses::Statuses;
use std::ffi::c_int;

/// Stores a status for a call that returns one; its error field is not written (section 3.2.5).
///
/// # Safety
/// `to` is an output argument of the caller or `MPI_STATUS_IGNORE`.
#[inline]
pub(crate) unsafe fn set_status(to: *mut MPI_Status, status: &MPI_Status) {
    if to.addr() == MPI_STATUS_IGNORE.addr() {
        return;
    }
    // SAFETY: not `MPI_STATUS_IGNORE`, so an output argument by the `# Safety` contract of this function.
    unsafe {
        (&raw mut (*to).MPI_SOURCE).write(status.MPI_SOURCE);
        (&raw mut (*to).MPI_TAG).write(status.MPI_TAG);
        (&raw mut (*to).MPI_internal).write(status.MPI_internal);
    }
}

/// Stores the empty status, whose error field is part of it (section 3.7.3).
///
/// # Safety
/// As [`set_status`].
pub(super) unsafe fn set_empty(to: *mut MPI_Status) {
    if to.addr() != MPI_STATUS_IGNORE.addr() {
        // SAFETY: not `MPI_STATUS_IGNORE`, so an output argument by the `# Safety` contract of [`set_status`].
        unsafe { to.write(EMPTY) };
    }
}

/// Stores the status of a blocking receive, also of a failed one that has received a message.
///
/// # Safety
/// As [`set_status`].
#[inline(always)]
pub(super) unsafe fn set_received(
    to: *mut MPI_Status,
    received: Result<Status, mpi_core::Error>,
) -> Outcome {
    // SAFETY: `to` is valid by the `# Safety` contract of this function.
    unsafe {
        match received {
            Ok(status) => set_status(to, &c_status(status)),
            Err(error) => return Err(failed(to, error)),
        }
    }
    Ok(())
}

/// # Safety
/// As [`set_status`].
#[cold]
unsafe fn failed(to: *mut MPI_Status, error: mpi_core::Error) -> Failure {
    if error.received().is_some() {
        // SAFETY: `to` is valid by the `# Safety` contract of this function.
        unsafe { set_status(to, &failed_status(&error)) };
    }
    error.into()
}

/// Finishes the request at `place`, which becomes null unless it is persistent.
///
/// # Safety
/// `place` may be read and written.
unsafe fn take(place: *mut MPI_Request) -> Result<Finished, Failure> {
    // SAFETY: `place` is valid by the `# Safety` contract of this function.
    unsafe {
        let finished = finish(*place)?;
        if finished.gone {
            place.write(MPI_REQUEST_NULL);
        }
        Ok(finished)
    }
}

/// Finishes one request for a call that returns one status.
///
/// # Safety
/// `place` and `status` are arguments of the caller.
unsafe fn take_one(place: *mut MPI_Request, status: *mut MPI_Status) -> Outcome {
    // SAFETY: `place` and `status` are valid by the `# Safety` contract of this function.
    unsafe {
        if let Some(well) = finish_simple(*place) {
            place.write(MPI_REQUEST_NULL);
            set_status(status, &c_status(well));
            return Ok(());
        }
        let finished = take(place)?;
        set_status(status, &finished.status);
        finished.failure.map_or(Ok(()), Err)
    }
}

pub unsafe fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> Outcome {
    // SAFETY: `request` and `status` are valid as the C binding of MPI_Wait requires of its caller.
    unsafe {
        let handle = read(request, "request")?;
        if look(handle)? == RequestState::Inactive {
            set_empty(status);
            return Ok(());
        }
        request::wait(handle)?;
        take_one(request, status)
    }
}

pub unsafe fn MPI_Test(
    request: *mut MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `request`, `flag` and `status` are valid as the C binding of MPI_Test requires of its caller.
    unsafe {
        let handle = read(request, "request")?;
        let natural = || request::state_after_progress(handle);
        let seen = decide(Asker::Test, &[handle], natural)?;
        out(flag, (seen != RequestState::Running).into(), "flag")?;
        match seen {
            RequestState::Running => Ok(()),
            RequestState::Inactive => {
                set_empty(status);
                Ok(())
            }
            RequestState::Complete => take_one(request, status),
        }
    }
}

pub unsafe fn MPI_Waitall(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the arrays have the given number of elements: the C binding of MPI_Waitall requires it of the caller.
    unsafe { Batch::new(count, array_of_requests, array_of_statuses)?.take_all() }
}

pub unsafe fn MPI_Testall(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    flag: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `flag` and `array_of_statuses` are valid as the C binding of MPI_Testall requires of its caller.
    unsafe {
        let batch = Batch::new(count, array_of_requests, array_of_statuses)?;
        let natural = || Ok(batch.survey_with_retry(|s| s.running == 0)?.running == 0);
        let done = decide(Asker::Testall, batch.requests, natural)?;
        out(flag, done.into(), "flag")?;
        // A replay may report all complete while requests are still running; `take_all` waits for those.
        if done { batch.take_all() } else { Ok(()) }
    }
}

/// Finishes a complete request of a batch, or reports that none is active.
///
/// # Safety
/// `indx` and `status` are output arguments of the caller.
unsafe fn take_any(
    batch: &mut Batch<'_>,
    complete: Option<usize>,
    indx: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `indx` and `status` are valid by the `# Safety` contract of this function.
    unsafe {
        match complete {
            Some(i) => {
                out(indx, i as c_int, "index")?;
                take_one(&mut batch.requests[i], status)
            }
            None => {
                set_empty(status);
                out(indx, MPI_UNDEFINED, "index")
            }
        }
    }
}

pub unsafe fn MPI_Waitany(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    indx: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `indx` and `status` are valid as the C binding of MPI_Waitany requires of its caller.
    unsafe {
        let mut batch = Batch::new(count, array_of_requests, MPI_STATUSES_IGNORE)?;
        let natural = || {
            batch.wait_any()?;
            Ok(batch.first_complete())
        };
        let complete = decide(Asker::Waitany, batch.requests, natural)?;
        take_any(&mut batch, complete, indx, status)
    }
}

pub unsafe fn MPI_Testany(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    indx: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `indx`, `flag` and `status` are valid as the C binding of MPI_Testany requires of its caller.
    unsafe {
        let mut batch = Batch::new(count, array_of_requests, MPI_STATUSES_IGNORE)?;
        let natural = || {
            let survey = batch.survey_with_retry(|s| s.complete > 0 || s.running == 0)?;
            let nothing = survey.complete == 0 && survey.running > 0;
            Ok((!nothing).then(|| batch.first_complete()))
        };
        let found = decide(Asker::Testany, batch.requests, natural)?;
        let Some(complete) = found else {
            out(indx, MPI_UNDEFINED, "index")?;
            return out(flag, 0, "flag");
        };
        out(flag, 1, "flag")?;
        take_any(&mut batch, complete, indx, status)
    }
}

pub unsafe fn MPI_Waitsome(
    incount: c_int,
    array_of_requests: *mut MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `outcount`, `array_of_indices` and `array_of_statuses` are valid as the C binding of MPI_Waitsome requires of its caller.
    unsafe {
        let batch = Batch::new(incount, array_of_requests, array_of_statuses)?;
        let natural = || {
            // As in MPI_Testsome: messages that have arrived are found in one call.
            batch.survey_with_retry(|s| s.running == 0)?;
            Ok(match batch.wait_any()? {
                true => SomeOutcome::Complete,
                false => SomeOutcome::Inactive,
            })
        };
        let found = decide(Asker::Waitsome, batch.requests, natural)?;
        batch.take_several(&found, outcount, array_of_indices)
    }
}

pub unsafe fn MPI_Testsome(
    incount: c_int,
    array_of_requests: *mut MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `outcount`, `array_of_indices` and `array_of_statuses` are valid as the C binding of MPI_Testsome requires of its caller.
    unsafe {
        let batch = Batch::new(incount, array_of_requests, array_of_statuses)?;
        let natural = || {
            // Polls even if some request is complete already: callers expect messages that have arrived to be found in one call.
            let survey = batch.survey_with_retry(|s| s.running == 0)?;
            Ok(match survey.running + survey.complete {
                0 => SomeOutcome::Inactive,
                _ => SomeOutcome::Complete,
            })
        };
        let found = decide(Asker::Testsome, batch.requests, natural)?;
        batch.take_several(&found, outcount, array_of_indices)
    }
}
