//! Calls for requests of lanes other than completion.

use super::mixed::{Lanes, inside, lane_of};
use crate::abi::*;
use crate::api::args::{InArray, InOut, InOutArray, Out};
use crate::api::completion::{Statuses, set_empty, set_status};
use crate::error::{Failure, Outcome, Target};
use crate::functions::id_of;
use crate::lanes::{self, Transfer, ready_place};
use crate::object::request::RequestState;
use crate::object::status::EMPTY;
use crate::raise;
use crate::registry::request;
use crate::state;
use mpi_core::datatype::RecvBytes;
use std::borrow::Cow;
use std::ffi::c_int;

/// Starts a persistent request of a lane.
fn start_in(lane: usize, handle: MPI_Request) -> Outcome {
    let persistent = lanes::within(lane, |contents| lanes::to_start(contents, handle))?;
    let nothing = (RecvBytes::empty(), None);
    let (data, place) = match &persistent.transfer {
        Transfer::Send { data, .. } | Transfer::Buffered { data } => (data.data(), nothing),
        Transfer::Receive(place) => (Cow::Borrowed(&[][..]), ready_place(place)),
    };
    lanes::within(lane, move |contents| {
        let started = lanes::start_persistent(contents, &persistent, data, place);
        // The reference count of the operation changes only in its lane.
        drop(persistent);
        started
    })
}

pub fn lane_Start(request: InOut<MPI_Request>) -> Option<Outcome> {
    let handle = request.peek()?;
    lane_of(handle).map(|lane| start_in(lane, handle))
}

pub fn lane_Startall(_count: c_int, array_of_requests: InOutArray<MPI_Request>) -> Option<Outcome> {
    let handles = array_of_requests.input().get("array_of_requests").ok()?;
    Lanes::of(handles)?;
    let start = |handle: &MPI_Request| match lanes::of_request(*handle) {
        0 => state::locked(|| request::start(*handle).map_err(Failure::without_object)),
        lane => start_in(lane, *handle),
    };
    Some(handles.iter().try_for_each(start))
}

pub fn lane_Request_free(request: InOut<MPI_Request>) -> Option<Outcome> {
    let handle = request.peek()?;
    lane_of(handle).map(|lane| {
        let remains = lanes::within(lane, |contents| lanes::free(contents, handle))?;
        if let Some(failure) = remains.failure {
            // No call remains that can return the failure of a freed operation (section 3.7.3).
            let target = failure.target().unwrap_or(Target::None);
            state::locked(|| raise::fatal(id_of("MPI_Request_free"), target, &failure));
        }
        if let Some(arrived) = remains.arrived {
            arrived.unpack();
        }
        match remains.transfer {
            Some(Transfer::Send { data, .. } | Transfer::Buffered { data }) => data.release(),
            Some(Transfer::Receive(place)) => place.release(),
            None => {}
        }
        request.set(MPI_REQUEST_NULL, "request")
    })
}

pub fn lane_Cancel(request: InOut<MPI_Request>) -> Option<Outcome> {
    let handle = request.peek()?;
    lane_of(handle).map(|lane| lanes::within(lane, |contents| lanes::cancel(contents, handle)))
}

/// A request's state after a poll, and its outcome if it is complete.
type Peeked = (RequestState, MPI_Status, Option<Failure>);

fn peek_in(lane: usize, handle: MPI_Request) -> Result<Peeked, Failure> {
    let (peeked, arrived) = inside(lane, |domain| {
        let mut state = domain.look(handle)?;
        if state == RequestState::Running {
            domain.poll()?;
            state = domain.look(handle)?;
        }
        match state {
            RequestState::Complete => {
                let (status, failure, arrived) = domain.peek(handle)?;
                Ok::<_, Failure>(((state, status, failure), arrived))
            }
            _ => Ok(((state, EMPTY, None), None)),
        }
    })?;
    // The program may read its buffer once it knows that the operation is complete.
    if let Some(arrived) = arrived {
        arrived.unpack();
    }
    Ok(peeked)
}

/// Stores an outcome that was read, for a call with one status.
fn store((state, seen, failure): Peeked, status: Out<MPI_Status>) -> Outcome {
    match state {
        RequestState::Running => Ok(()),
        RequestState::Inactive => {
            set_empty(status);
            Ok(())
        }
        RequestState::Complete => {
            set_status(status, &seen);
            failure.map_or(Ok(()), Err)
        }
    }
}

pub fn lane_Request_get_status(
    request: MPI_Request,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    lane_of(request).map(|lane| {
        let peeked = peek_in(lane, request)?;
        flag.set((peeked.0 != RequestState::Running).into(), "flag")?;
        store(peeked, status)
    })
}

/// Reads the outcomes of an array of requests; `None` if the call belongs to lane 0.
fn peek_all(requests: InArray<MPI_Request>) -> Option<Result<Vec<Peeked>, Failure>> {
    let handles = requests.get("array_of_requests").ok()?;
    Lanes::of(handles)?;
    let peek = |handle: &MPI_Request| peek_in(lanes::of_request(*handle), *handle);
    Some(handles.iter().map(peek).collect())
}

/// Stores an outcome of an array in the array of statuses.
fn store_at(peeked: Peeked, at: usize, statuses: &mut Statuses) {
    let (state, seen, failure) = peeked;
    statuses.store(at, &seen, failure);
    if let (RequestState::Inactive, Some(place)) = (state, statuses.place(at)) {
        set_empty(place);
    }
}

pub fn lane_Request_get_status_all(
    _count: c_int,
    array_of_requests: InArray<MPI_Request>,
    flag: Out<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Option<Outcome> {
    let peeked = peek_all(array_of_requests)?;
    let run = || {
        let peeked = peeked?;
        let done = peeked.iter().all(|p| p.0 != RequestState::Running);
        flag.set(done.into(), "flag")?;
        let mut statuses = Statuses::at(array_of_statuses);
        if done {
            for (at, peeked) in peeked.into_iter().enumerate() {
                store_at(peeked, at, &mut statuses);
            }
        }
        statuses.report()
    };
    Some(run())
}

pub fn lane_Request_get_status_any(
    _count: c_int,
    array_of_requests: InArray<MPI_Request>,
    indx: Out<c_int>,
    flag: Out<c_int>,
    status: Out<MPI_Status>,
) -> Option<Outcome> {
    let peeked = peek_all(array_of_requests)?;
    let run = || {
        let mut peeked = peeked?;
        if let Some(i) = peeked.iter().position(|p| p.0 == RequestState::Complete) {
            indx.set(i as c_int, "index")?;
            flag.set(1, "flag")?;
            return store(peeked.swap_remove(i), status);
        }
        let none_active = peeked.iter().all(|p| p.0 == RequestState::Inactive);
        if none_active {
            set_empty(status);
        }
        indx.set(MPI_UNDEFINED, "index")?;
        flag.set(none_active.into(), "flag")
    };
    Some(run())
}

pub fn lane_Request_get_status_some(
    _incount: c_int,
    array_of_requests: InArray<MPI_Request>,
    outcount: Out<c_int>,
    array_of_indices: InOutArray<c_int>,
    array_of_statuses: InOutArray<MPI_Status>,
) -> Option<Outcome> {
    let peeked = peek_all(array_of_requests)?;
    let run = || {
        let peeked = peeked?;
        if peeked.iter().all(|p| p.0 == RequestState::Inactive) {
            return outcount.set(MPI_UNDEFINED, "outcount");
        }
        let mut statuses = Statuses::at(array_of_statuses);
        let mut count = 0;
        for (i, peeked) in peeked.into_iter().enumerate() {
            if peeked.0 == RequestState::Complete {
                array_of_indices.set(count, i as c_int, "array_of_indices")?;
                store_at(peeked, count, &mut statuses);
                count += 1;
            }
        }
        outcount.set(count as c_int, "outcount")?;
        statuses.report()
    };
    Some(run())
}
