//! Request calls other than completion: reading outcomes, starting, freeing and cancelling (sections 3.7 to 3.9),
//! and generalized requests (13.2).

use super::args::{length, out, read, slice};
use super::completion::{Statuses, set_empty, set_status};
use super::replay::decide;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::request::{self, EMPTY, General, RequestObject, RequestState, look, peek};
use crate::state;
use mpi_core::record::Asker;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// Reads the outcome of a complete request without taking it.
///
/// # Safety
/// `status` is an output argument of the caller.
unsafe fn peek_one(handle: MPI_Request, status: *mut MPI_Status) -> Outcome {
    if look(handle)? == RequestState::Inactive {
        // SAFETY: `status` is valid by the `# Safety` contract of this function.
        unsafe { set_empty(status) };
        return Ok(());
    }
    let (seen, failure) = peek(handle)?;
    // SAFETY: `status` is valid by the `# Safety` contract of this function.
    unsafe { set_status(status, &seen) };
    failure.map_or(Ok(()), Err)
}

/// Reads the outcome of a request that is not running, one of several, and stores its status at index `at`.
///
/// # Safety
/// As [`Statuses::store`].
unsafe fn peek_next(handle: MPI_Request, at: usize, statuses: &mut Statuses) -> Outcome {
    let inactive = look(handle)? == RequestState::Inactive;
    let (seen, failure) = match inactive {
        true => (EMPTY, None),
        false => peek(handle)?,
    };
    // SAFETY: `statuses` has an element `at` by the `# Safety` contract of this function, which is that of `store`.
    unsafe { statuses.store(at, &seen, failure) };
    if let (true, Some(place)) = (inactive, statuses.place(at)) {
        // SAFETY: `place` is the address of element `at`; an empty status includes its error field (section 3.7.3).
        unsafe { set_empty(place) };
    }
    Ok(())
}

pub unsafe fn MPI_Request_get_status(
    request: MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    let natural = || request::state_after_progress(request);
    let done = decide(Asker::GetStatus, &[request], natural)? != RequestState::Running;
    // SAFETY: `flag` and `status` are valid as the C binding of MPI_Request_get_status requires of its caller.
    unsafe {
        out(flag, done.into(), "flag")?;
        if done {
            peek_one(request, status)
        } else {
            Ok(())
        }
    }
}

/// Returns the states of an array of requests, after one poll.
///
/// # Safety
/// The array is an argument of the caller with `count` elements.
unsafe fn polled_states<'a>(
    count: c_int,
    requests: *const MPI_Request,
) -> Result<(&'a [MPI_Request], Vec<RequestState>), Failure> {
    // SAFETY: `requests` is valid by the `# Safety` contract of this function.
    let requests = unsafe { slice(requests, length(count, "count")?, "array_of_requests")? };
    let natural = || {
        state::engine()?.poll_once();
        requests.iter().map(|handle| look(*handle)).collect()
    };
    let states = decide(Asker::GetStatus, requests, natural)?;
    Ok((requests, states))
}

pub unsafe fn MPI_Request_get_status_all(
    count: c_int,
    array_of_requests: *const MPI_Request,
    flag: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `flag` and `array_of_statuses` are valid as the C binding of MPI_Request_get_status_all requires of its caller.
    unsafe {
        let (requests, states) = polled_states(count, array_of_requests)?;
        let done = !states.contains(&RequestState::Running);
        out(flag, done.into(), "flag")?;
        let mut statuses = Statuses::at(array_of_statuses);
        if done {
            for (i, handle) in requests.iter().enumerate() {
                peek_next(*handle, i, &mut statuses)?;
            }
        }
        statuses.report()
    }
}

pub unsafe fn MPI_Request_get_status_any(
    count: c_int,
    array_of_requests: *const MPI_Request,
    indx: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `indx`, `flag` and `status` are valid as the C binding of MPI_Request_get_status_any requires of its caller.
    unsafe {
        let (requests, states) = polled_states(count, array_of_requests)?;
        if let Some(i) = states.iter().position(|l| *l == RequestState::Complete) {
            out(indx, i as c_int, "index")?;
            out(flag, 1, "flag")?;
            return peek_one(requests[i], status);
        }
        let none_active = !states.contains(&RequestState::Running);
        if none_active {
            set_empty(status);
        }
        out(indx, MPI_UNDEFINED, "index")?;
        out(flag, none_active.into(), "flag")
    }
}

pub unsafe fn MPI_Request_get_status_some(
    incount: c_int,
    array_of_requests: *const MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `array_of_requests`, `outcount`, `array_of_indices` and `array_of_statuses` are valid as the C binding of MPI_Request_get_status_some requires of its caller.
    unsafe {
        let (requests, states) = polled_states(incount, array_of_requests)?;
        if states.iter().all(|l| *l == RequestState::Inactive) {
            return out(outcount, MPI_UNDEFINED, "outcount");
        }
        let mut statuses = Statuses::at(array_of_statuses);
        let complete = (0..states.len()).filter(|i| states[*i] == RequestState::Complete);
        let mut found = 0;
        for i in complete {
            out(
                array_of_indices.wrapping_add(found),
                i as c_int,
                "array_of_indices",
            )?;
            peek_next(requests[i], found, &mut statuses)?;
            found += 1;
        }
        out(outcount, found as c_int, "outcount")?;
        statuses.report()
    }
}

pub unsafe fn MPI_Start(request: *mut MPI_Request) -> Outcome {
    // SAFETY: `request` is null or readable: the C binding of MPI_Start requires it of the caller.
    request::start(unsafe { read(request, "request")? })
}

pub unsafe fn MPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) -> Outcome {
    // SAFETY: `array_of_requests` is valid as the C binding of MPI_Startall requires of its caller.
    let requests = unsafe {
        slice(
            array_of_requests,
            length(count, "count")?,
            "array_of_requests",
        )?
    };
    requests
        .iter()
        .try_for_each(|handle| request::start(*handle))
}

pub unsafe fn MPI_Request_free(request: *mut MPI_Request) -> Outcome {
    // SAFETY: `request` is valid as the C binding of MPI_Request_free requires of its caller.
    unsafe {
        request::free(read(request, "request")?)?;
        out(request, MPI_REQUEST_NULL, "request")
    }
}

pub unsafe fn MPI_Cancel(request: *mut MPI_Request) -> Outcome {
    // SAFETY: `request` is null or readable: the C binding of MPI_Cancel requires it of the caller.
    request::cancel(unsafe { read(request, "request")? })
}

pub unsafe fn MPI_Grequest_start(
    query_fn: Option<MPI_Grequest_query_function>,
    free_fn: Option<MPI_Grequest_free_function>,
    cancel_fn: Option<MPI_Grequest_cancel_function>,
    extra_state: *mut c_void,
    request: *mut MPI_Request,
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
    // SAFETY: `request` is null or writable: the C binding of MPI_Grequest_start requires it of the caller.
    unsafe { out(request, handle, "request") }
}

pub unsafe fn MPI_Grequest_complete(request: MPI_Request) -> Outcome {
    request::complete_general(request)
}
