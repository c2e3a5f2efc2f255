//! Request calls other than completion (sections 3.7 to 3.9), and generalized requests (13.2).
//!
//! The calls read the status of requests, start persistent requests, and free or cancel requests.

use super::args::{InArray, InOut, InOutArray, Out, length};
use super::completion::{Statuses, set_empty, set_status};
use super::replay::decide;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::request::{General, RequestObject, RequestState};
use crate::object::status::EMPTY;
use crate::registry::request::{self, look, peek};
use crate::state;
use mpi_core::record::Asker;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// Reads the status of a complete request without releasing the request.
fn peek_one(handle: MPI_Request, status: Out<MPI_Status>) -> Outcome {
    if look(handle)? == RequestState::Inactive {
        set_empty(status);
        return Ok(());
    }
    let (seen, failure) = peek(handle)?;
    set_status(status, &seen);
    failure.map_or(Ok(()), Err)
}

/// Reads the status of a request that is not running, and stores it at index `at` of the array.
fn peek_next(handle: MPI_Request, at: usize, statuses: &mut Statuses) -> Outcome {
    let inactive = look(handle)? == RequestState::Inactive;
    let (seen, failure) = match inactive {
        true => (EMPTY, None),
        false => peek(handle)?,
    };
    statuses.store(at, &seen, failure);
    if let (true, Some(place)) = (inactive, statuses.place(at)) {
        set_empty(place);
    }
    Ok(())
}

pub fn MPI_Request_get_status(
    request: MPI_Request,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    let natural = || request::state_after_progress(request);
    let done = decide(Asker::GetStatus, &[request], natural)? != RequestState::Running;
    flag.set(done.into(), "flag")?;
    if done {
        peek_one(request, status)
    } else {
        Ok(())
    }
}

/// Polls once, and returns the states of an array of requests.
fn polled_states<'a>(
    count: c_int,
    requests: InArray<'a, MPI_Request>,
) -> Result<(&'a [MPI_Request], Vec<RequestState>), Failure> {
    length(count, "count")?;
    let requests = requests.get("array_of_requests")?;
    let natural = || {
        state::engine()?.poll_once();
        requests.iter().map(|handle| look(*handle)).collect()
    };
    let states = decide(Asker::GetStatus, requests, natural)?;
    Ok((requests, states))
}

pub fn MPI_Request_get_status_all(
    count: c_int,
    array_of_requests: InArray<MPI_Request>,
    flag: Out<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Outcome {
    let (requests, states) = polled_states(count, array_of_requests)?;
    let done = !states.contains(&RequestState::Running);
    flag.set(done.into(), "flag")?;
    let mut statuses = Statuses::at(array_of_statuses);
    if done {
        for (i, handle) in requests.iter().enumerate() {
            peek_next(*handle, i, &mut statuses)?;
        }
    }
    statuses.report()
}

pub fn MPI_Request_get_status_any(
    count: c_int,
    array_of_requests: InArray<MPI_Request>,
    indx: Out<c_int>,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Outcome {
    let (requests, states) = polled_states(count, array_of_requests)?;
    if let Some(i) = states.iter().position(|l| *l == RequestState::Complete) {
        indx.set(i as c_int, "index")?;
        flag.set(1, "flag")?;
        return peek_one(requests[i], status);
    }
    let none_active = !states.contains(&RequestState::Running);
    if none_active {
        set_empty(status);
    }
    indx.set(MPI_UNDEFINED, "index")?;
    flag.set(none_active.into(), "flag")
}

pub fn MPI_Request_get_status_some(
    incount: c_int,
    array_of_requests: InArray<MPI_Request>,
    outcount: Out<c_int>,
    array_of_indices: InOutArray<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Outcome {
    let (requests, states) = polled_states(incount, array_of_requests)?;
    if states.iter().all(|l| *l == RequestState::Inactive) {
        return outcount.set(MPI_UNDEFINED, "outcount");
    }
    let mut statuses = Statuses::at(array_of_statuses);
    let complete = (0..states.len()).filter(|i| states[*i] == RequestState::Complete);
    let mut found = 0;
    for i in complete {
        array_of_indices.set(found, i as c_int, "array_of_indices")?;
        peek_next(requests[i], found, &mut statuses)?;
        found += 1;
    }
    outcount.set(found as c_int, "outcount")?;
    statuses.report()
}

pub fn MPI_Start(request: InOut<MPI_Request>) -> Outcome {
    request::start(request.get("request")?)
}

pub fn MPI_Startall(count: c_int, array_of_requests: InOutArray<MPI_Request>) -> Outcome {
    length(count, "count")?;
    let requests = array_of_requests.input().get("array_of_requests")?;
    requests
        .iter()
        .try_for_each(|handle| request::start(*handle))
}

pub fn MPI_Request_free(request: InOut<MPI_Request>) -> Outcome {
    request::free(request.get("request")?)?;
    request.set(MPI_REQUEST_NULL, "request")
}

pub fn MPI_Cancel(request: InOut<MPI_Request>) -> Outcome {
    request::cancel(request.get("request")?)
}

pub fn MPI_Grequest_start(
    query_fn: Option<MPI_Grequest_query_function>,
    free_fn: Option<MPI_Grequest_free_function>,
    cancel_fn: Option<MPI_Grequest_cancel_function>,
    extra_state: *mut c_void,
    request: Out<MPI_Request>,
) -> Outcome {
    let (Some(query), Some(free), Some(cancel)) = (query_fn, free_fn, cancel_fn) else {
        return Err(Failure::new(
            MPI_ERR_ARG,
            "a function of the generalized request is a null pointer",
        ));
    };
    let general = General {
        query,
        free,
        cancel,
        extra_state,
        complete: false.into(),
    };
    let handle = request::register(RequestObject::General(Rc::new(general)))?;
    request.set(handle, "request")
}

pub fn MPI_Grequest_complete(request: MPI_Request) -> Outcome {
    request::complete_general(request)
}
