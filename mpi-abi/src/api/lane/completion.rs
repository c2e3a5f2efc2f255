//! Wait and test calls for requests of lanes.

use super::mixed::{Batch, finish_one, inside, lane_of};
use crate::abi::*;
use crate::api::args::{InOut, InOutArray, Out};
use crate::api::completion::{set_empty, set_status};
use crate::error::{Failure, Outcome};
use crate::object::request::RequestState;
use crate::registry::request::{DONE, c_status};
use mpi_core::request::Status;
use std::ffi::c_int;

/// Completes a handle that belongs to no lane. Returns false for all other handles.
fn is_done(request: InOut<MPI_Request>, handle: MPI_Request, status: Out<MPI_Status>) -> bool {
    match handle {
        DONE => {
            request.out().put(MPI_REQUEST_NULL);
            set_status(status, &c_status(Status::EMPTY));
            true
        }
        MPI_REQUEST_NULL => {
            set_empty(status);
            true
        }
        _ => false,
    }
}

/// Takes the outcome of a request of a lane that is complete or inactive.
fn take_one(
    lane: usize,
    request: InOut<MPI_Request>,
    (handle, state): (MPI_Request, RequestState),
    status: Out<MPI_Status>,
) -> Outcome {
    if state == RequestState::Inactive {
        set_empty(status);
        return Ok(());
    }
    let taken = inside(lane, |domain| domain.take(handle))?;
    if taken.gone {
        request.out().put(MPI_REQUEST_NULL);
    }
    finish_one(taken, status)
}

pub fn lane_Wait(request: InOut<MPI_Request>, status: Out<MPI_Status>) -> Option<Outcome> {
    let handle = request.peek()?;
    if is_done(request, handle, status) {
        return Some(Ok(()));
    }
    lane_of(handle).map(|lane| {
        let light = inside(lane, |domain| {
            domain.wait_for("MPI_Wait", handle, || 1)?;
            Ok::<_, Failure>(match domain.take_light(handle) {
                Some(well) => Ok(well),
                None => Err(domain.look(handle)?),
            })
        })?;
        match light {
            Ok(well) => {
                request.out().put(MPI_REQUEST_NULL);
                set_status(status, &c_status(well));
                Ok(())
            }
            Err(state) => take_one(lane, request, (handle, state), status),
        }
    })
}

pub fn lane_Test(
    request: InOut<MPI_Request>,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let handle = request.peek()?;
    if is_done(request, handle, status) {
        return Some(flag.set(1, "flag"));
    }
    lane_of(handle).map(|lane| {
        let state = inside(lane, |domain| match domain.look(handle)? {
            RequestState::Running => {
                domain.poll()?;
                domain.look(handle)
            }
            state @ (RequestState::Inactive | RequestState::Complete) => Ok(state),
        })?;
        flag.set((state != RequestState::Running).into(), "flag")?;
        match state {
            RequestState::Running => Ok(()),
            RequestState::Inactive | RequestState::Complete => {
                take_one(lane, request, (handle, state), status)
            }
        }
    })
}

pub fn lane_Waitall(
    _count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Option<Outcome> {
    Some(Batch::new("MPI_Waitall", array_of_requests, array_of_statuses)?.take_all())
}

pub fn lane_Testall(
    _count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    flag: Out<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Option<Outcome> {
    let batch = Batch::new("MPI_Testall", array_of_requests, array_of_statuses)?;
    let run = || {
        let done = !batch.look()?.running;
        flag.set(done.into(), "flag")?;
        if done { batch.take_all() } else { Ok(()) }
    };
    Some(run())
}

/// Takes the outcome of one complete request of a batch, or reports that none is active.
fn take_any(
    mut batch: Batch<'_>,
    complete: bool,
    indx: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    if !complete {
        set_empty(status);
        return indx.set(MPI_UNDEFINED, "index");
    }
    match batch.take_some(1, |_, i| indx.set(i as c_int, "index")) {
        Ok(()) => batch.finish(),
        Err(failure) => batch.end_early(failure),
    }
}

pub fn lane_Waitany(
    _count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    indx: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let batch = Batch::with_one_status("MPI_Waitany", array_of_requests, status)?;
    let run = || {
        let complete = batch.wait_any()?;
        take_any(batch, complete, indx, status)
    };
    Some(run())
}

pub fn lane_Testany(
    _count: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    indx: Out<c_int>,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let batch = Batch::with_one_status("MPI_Testany", array_of_requests, status)?;
    let run = || {
        let seen = batch.look()?;
        if seen.running && !seen.complete {
            indx.set(MPI_UNDEFINED, "index")?;
            return flag.set(0, "flag");
        }
        flag.set(1, "flag")?;
        take_any(batch, seen.complete, indx, status)
    };
    Some(run())
}

/// Takes the outcomes of all complete requests of a batch.
fn take_several(
    mut batch: Batch<'_>,
    is_active: bool,
    outcount: Out<c_int>,
    indices: InOutArray<c_int>,
) -> Outcome {
    if !is_active {
        return outcount.set(MPI_UNDEFINED, "outcount");
    }
    let mut count = 0;
    let taken = batch.take_some(usize::MAX, |at, i| {
        count = at + 1;
        indices.set(at, i as c_int, "array_of_indices")
    });
    match taken.and_then(|()| outcount.set(count as c_int, "outcount")) {
        Ok(()) => batch.finish(),
        Err(failure) => batch.end_early(failure),
    }
}

pub fn lane_Waitsome(
    _incount: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    outcount: Out<c_int>,
    array_of_indices: InOutArray<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Option<Outcome> {
    let batch = Batch::new("MPI_Waitsome", array_of_requests, array_of_statuses)?;
    let run = || {
        let complete = batch.wait_any()?;
        take_several(batch, complete, outcount, array_of_indices)
    };
    Some(run())
}

pub fn lane_Testsome(
    _incount: c_int,
    array_of_requests: InOutArray<MPI_Request>,
    outcount: Out<c_int>,
    array_of_indices: InOutArray<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Option<Outcome> {
    let batch = Batch::new("MPI_Testsome", array_of_requests, array_of_statuses)?;
    let run = || {
        let seen = batch.look()?;
        let is_active = seen.running || seen.complete;
        take_several(batch, is_active, outcount, array_of_indices)
    };
    Some(run())
}
