//! Arrays of requests of several lanes, including lane 0.
//!
//! The lanes are visited one after another in ascending order, and no two locks are held at once.
//! Handles that belong to no lane (null, and sends that have completed within their call) need no lock.

use crate::abi::*;
use crate::api::args::{InOutArray, Out};
use crate::api::completion::{Statuses, set_empty, set_status};
use crate::error::{Failure, Outcome};
use crate::lanes::{self, Contents, Landing, Peeked, Taken};
use crate::object::request::RequestState;
use crate::registry::request::{self, DONE, c_status};
use crate::state;
use crate::thread_waits::{self, SEVERAL, Wait};
use mpi_base::state::{About, Waits};
use mpi_core::request::Status;
use std::ffi::c_int;
use std::time::Duration;

/// A lane in which the caller is.
#[derive(Clone, Copy)]
pub(super) enum Domain {
    /// Lane 0, under the global lock.
    Base,
    Lane(&'static Contents),
}

/// Returns the lane of a request, or `None` if the call belongs to lane 0.
#[inline]
pub(super) fn lane_of(handle: MPI_Request) -> Option<usize> {
    Some(lanes::of_request(handle)).filter(|lane| *lane != 0)
}

/// Runs `f` in a lane.
#[inline]
pub(super) fn inside<R>(lane: usize, f: impl FnOnce(Domain) -> R) -> R {
    match lane {
        0 => state::locked(|| f(Domain::Base)),
        lane => lanes::within(lane, |contents| f(Domain::Lane(contents))),
    }
}

impl Domain {
    pub fn look(self, handle: MPI_Request) -> Result<RequestState, Failure> {
        match self {
            Domain::Base => request::look(handle),
            Domain::Lane(contents) => lanes::look(contents, handle),
        }
    }

    /// Waits for a request in a call of the function `call`, which waits for `requests` requests.
    pub fn wait_for(
        self,
        call: &'static str,
        handle: MPI_Request,
        requests: impl Fn() -> usize,
    ) -> Outcome {
        match self {
            Domain::Base => thread_waits::in_base(call, || request::wait(handle)),
            Domain::Lane(contents) => lanes::wait_for(contents, call, handle, requests),
        }
    }

    /// Takes the outcome of a short receive; `None` for all other requests.
    #[inline]
    pub fn take_light(self, handle: MPI_Request) -> Option<Status> {
        match self {
            Domain::Base => request::finish_simple(handle),
            Domain::Lane(contents) => lanes::take_light(contents, handle),
        }
    }

    /// Takes the outcome of a complete operation.
    pub fn take(self, handle: MPI_Request) -> Result<Taken, Failure> {
        match self {
            Domain::Base => {
                let finished = request::finish(handle)?;
                Ok(Taken {
                    status: finished.status,
                    // The caller raises the failure under lock 0, and drops it there.
                    failure: finished.failure,
                    gone: finished.gone,
                    landing: None,
                })
            }
            Domain::Lane(contents) => lanes::take(contents, handle),
        }
    }

    pub fn peek(self, handle: MPI_Request) -> Result<Peeked, Failure> {
        match self {
            Domain::Base => {
                let (status, failure) = request::peek(handle)?;
                Ok((status, failure.map(Failure::without_object), None))
            }
            Domain::Lane(contents) => lanes::peek(contents, handle),
        }
    }

    pub fn poll(self) -> Outcome {
        let (lane, busy) = match self {
            Domain::Base => (0, state::engine()?.poll_once()),
            Domain::Lane(contents) => {
                let busy = contents.engine().is_some_and(|engine| engine.poll_once());
                (contents.number(), busy)
            }
        };
        if busy {
            thread_waits::found(lane);
        }
        Ok(())
    }

    /// Waits until `done` returns true, in a call of the function `call` that waits for one of `requests` requests.
    fn wait_until(
        self,
        call: &'static str,
        requests: usize,
        done: impl FnMut() -> bool,
    ) -> Outcome {
        match self {
            Domain::Base => {
                let engine = state::engine()?;
                let publish = || engine.published().waits_for_any(requests as u32);
                thread_waits::in_base(call, || {
                    engine.wait_publishing(done, publish);
                    Ok(())
                })
            }
            Domain::Lane(contents) => {
                if let Some(engine) = contents.engine() {
                    let lane = (contents.number(), engine);
                    lanes::wait_until(lane, call, done, || any_of(requests));
                }
                Ok(())
            }
        }
    }
}

/// Describes a wait for one of several requests.
fn any_of(requests: usize) -> About {
    About {
        waits: Waits::Any,
        requests: requests as u32,
        ..About::default()
    }
}

/// The set of lanes to which the requests of an array belong.
#[derive(Clone, Copy)]
pub(super) struct Lanes(u32);

impl Lanes {
    /// Returns the lanes of an array, or `None` if the call belongs to lane 0.
    pub fn of(handles: &[MPI_Request]) -> Option<Lanes> {
        let lane = |handle: &MPI_Request| match lanes::is_free(*handle) {
            true => 0,
            false => 1 << lanes::of_request(*handle),
        };
        let all = handles.iter().map(lane).fold(0, |all, lane| all | lane);
        (!handles.is_empty() && all != 1).then_some(Lanes(all))
    }

    pub fn each(self) -> impl Iterator<Item = usize> {
        (0..lanes::MOST).filter(move |lane| self.0 >> lane & 1 != 0)
    }

    fn only(self) -> Option<usize> {
        (self.0.count_ones() == 1).then(|| self.0.trailing_zeros() as usize)
    }
}

/// Returns true if a request belongs to a lane; false for the handles of no lane.
#[inline]
pub(super) fn is_in(handle: MPI_Request, lane: usize) -> bool {
    !lanes::is_free(handle) && lanes::of_request(handle) == lane
}

/// The requests of an array in one state.
#[derive(Clone, Copy, Default)]
struct Survey {
    running: usize,
    complete: usize,
}

fn survey(domain: Domain, lane: usize, handles: &[MPI_Request]) -> Result<Survey, Failure> {
    let mut found = Survey::default();
    for handle in handles.iter().filter(|handle| is_in(**handle, lane)) {
        match domain.look(*handle)? {
            RequestState::Inactive => {}
            RequestState::Running => found.running += 1,
            RequestState::Complete => found.complete += 1,
        }
    }
    Ok(found)
}

/// The array of requests of a call, with its statuses.
pub(super) struct Batch<'a> {
    /// The name of the MPI function.
    call: &'static str,
    pub handles: &'a mut [MPI_Request],
    lanes: Lanes,
    statuses: Statuses<'a>,
    /// The error codes of failed requests, by the index of their statuses.
    codes: Vec<(usize, c_int)>,
    /// True if the call takes one request, whose failure is that of the call.
    is_single: bool,
    /// The failure of the request of such a call.
    failure: Option<Failure>,
    /// The number of statuses that the call has stored.
    stored: usize,
    /// Received messages to be unpacked after the call has left their lanes, and their lengths.
    landings: Vec<(Landing, usize)>,
}

/// The result of testing all requests of an array.
pub(super) struct Seen {
    pub running: bool,
    pub complete: bool,
}

impl<'a> Batch<'a> {
    /// Returns `None` if the call belongs to lane 0, also for wrong arguments.
    pub fn new(
        call: &'static str,
        handles: InOutArray<'a, MPI_Request>,
        statuses: InOutArray<'a, MPI_Status>,
    ) -> Option<Batch<'a>> {
        let handles = handles.get("array_of_requests").ok()?;
        Some(Batch {
            call,
            lanes: Lanes::of(handles)?,
            handles,
            statuses: Statuses::at(statuses),
            codes: Vec::new(),
            is_single: false,
            failure: None,
            stored: 0,
            landings: Vec::new(),
        })
    }

    /// Makes the batch of a call that takes one request and has one status.
    pub fn with_one_status(
        call: &'static str,
        handles: InOutArray<'a, MPI_Request>,
        status: Out<'a, MPI_Status>,
    ) -> Option<Batch<'a>> {
        let statuses = match status.is_ignored() {
            true => InOutArray::none(),
            false => InOutArray::of_one(status),
        };
        Some(Batch {
            is_single: true,
            ..Batch::new(call, handles, statuses)?
        })
    }

    /// Polls each lane that has running requests once, and returns the states.
    pub fn look(&self) -> Result<Seen, Failure> {
        let mut seen = Seen {
            running: false,
            complete: self.handles.contains(&DONE),
        };
        for lane in self.lanes.each() {
            let found = inside(lane, |domain| {
                let found = survey(domain, lane, self.handles)?;
                if found.running == 0 {
                    return Ok(found);
                }
                domain.poll()?;
                survey(domain, lane, self.handles)
            })?;
            seen.running |= found.running > 0;
            seen.complete |= found.complete > 0;
        }
        Ok(seen)
    }

    /// Waits until a request is complete. Returns false if none is active.
    pub fn wait_any(&self) -> Result<bool, Failure> {
        /// Polls of all lanes before the thread yields, and before it sleeps.
        const POLLS: u32 = 64;
        const YIELDS: u32 = 128;
        const NAP: Duration = Duration::from_micros(50);
        /// Polls of which one calls [`Wait::note_false`], which needs a complete poll between two calls.
        const COMPLETE: u32 = 32;
        let wait = Wait::new(SEVERAL, self.call);
        let mut polls = 0_u32;
        loop {
            let seen = self.look()?;
            if seen.complete || !seen.running {
                return Ok(seen.complete);
            }
            if let Some(lane) = self.lanes.only() {
                let complete = |domain: Domain| {
                    let found = survey(domain, lane, self.handles);
                    found.is_ok_and(|found| found.complete > 0)
                };
                let active = self.open_from(0);
                inside(lane, |domain| {
                    domain.wait_until(self.call, active, || complete(domain))
                })?;
                continue;
            }
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(COMPLETE) {
                wait.note_false(|| any_of(self.open_from(0)));
            }
            match polls {
                0..POLLS => std::hint::spin_loop(),
                POLLS..YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
        }
    }

    /// Returns the number of handles from an index on that are not null and belong to operations that may be active.
    fn open_from(&self, from: usize) -> usize {
        let rest = self.handles.iter().skip(from);
        rest.filter(|handle| !lanes::is_free(**handle)).count()
    }

    fn store_light(&mut self, i: usize, at: usize, status: Status) {
        self.handles[i] = MPI_REQUEST_NULL;
        self.stored += 1;
        self.statuses.store(at, &c_status(status), None);
    }

    fn store(&mut self, i: usize, at: usize, taken: Taken) {
        if taken.gone {
            self.handles[i] = MPI_REQUEST_NULL;
        }
        let bytes = usize::try_from(taken.status.bytes()).unwrap_or(0);
        self.landings
            .extend(taken.landing.map(|landing| (landing, bytes)));
        self.stored += 1;
        if self.is_single {
            // The status of such a call has no error code (section 3.2.5).
            self.statuses.store(at, &taken.status, None);
            self.failure = taken.failure;
            return;
        }
        let code = taken.failure.as_ref().map(Failure::code);
        self.codes.extend(code.map(|code| (at, code)));
        self.statuses.store(at, &taken.status, taken.failure);
    }

    /// Waits for all requests, and takes their outcomes.
    pub fn take_all(mut self) -> Outcome {
        for i in 0..self.handles.len() {
            match self.handles[i] {
                DONE => self.store_light(i, i, Status::EMPTY),
                MPI_REQUEST_NULL => {
                    if let Some(place) = self.statuses.place(i) {
                        set_empty(place);
                    }
                }
                _ => {}
            }
        }
        for lane in self.lanes.each() {
            if let Err(failure) = inside(lane, |domain| self.take_all_in(domain, lane)) {
                return self.end_early(failure);
            }
        }
        self.stored = self.handles.len();
        self.finish()
    }

    fn take_all_in(&mut self, domain: Domain, lane: usize) -> Outcome {
        for i in 0..self.handles.len() {
            let handle = self.handles[i];
            if !is_in(handle, lane) {
                continue;
            }
            let mut light = domain.take_light(handle);
            if light.is_none() {
                domain.wait_for(self.call, handle, || self.open_from(0))?;
                light = domain.take_light(handle);
            }
            if let Some(status) = light {
                self.store_light(i, i, status);
                continue;
            }
            match domain.look(handle)? {
                RequestState::Inactive => {
                    if let Some(place) = self.statuses.place(i) {
                        set_empty(place);
                    }
                }
                _ => {
                    let taken = domain.take(handle)?;
                    self.store(i, i, taken);
                }
            }
        }
        Ok(())
    }

    /// Takes the outcomes of the complete requests, at most `most`. Calls `note` with the index of each.
    pub fn take_some(
        &mut self,
        most: usize,
        mut note: impl FnMut(usize, usize) -> Outcome,
    ) -> Outcome {
        let mut count = 0;
        for i in 0..self.handles.len() {
            if count < most && self.handles[i] == DONE {
                self.store_light(i, count, Status::EMPTY);
                note(count, i)?;
                count += 1;
            }
        }
        for lane in self.lanes.each() {
            inside(lane, |domain| {
                for i in 0..self.handles.len() {
                    let handle = self.handles[i];
                    let is_next = count < most && is_in(handle, lane);
                    if is_next && domain.look(handle)? == RequestState::Complete {
                        let taken = domain.take(handle)?;
                        self.store(i, count, taken);
                        note(count, i)?;
                        count += 1;
                    }
                }
                Ok::<(), Failure>(())
            })?;
        }
        Ok(())
    }

    /// Ends a call that has failed before it has taken all outcomes.
    #[cold]
    pub fn end_early(mut self, failure: Failure) -> Outcome {
        let landings = std::mem::take(&mut self.landings);
        unpack(landings);
        // The failure of a request of lane 0 holds an object of lane 0.
        state::locked(|| drop(self));
        Err(failure)
    }

    /// Unpacks the received messages, and returns the result of the call.
    pub fn finish(self) -> Outcome {
        unpack(self.landings);
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if !self.codes.is_empty() {
            // Statuses that were stored before the first failure have no error code yet.
            (0..self.stored)
                .filter_map(|at| self.statuses.place(at))
                .for_each(|place| place.set_error(MPI_SUCCESS));
            for (at, code) in self.codes {
                if let Some(place) = self.statuses.place(at) {
                    place.set_error(code);
                }
            }
        }
        self.statuses.report()
    }
}

/// Unpacks received messages. The caller is in no lane.
fn unpack(landings: Vec<(Landing, usize)>) {
    for (landing, bytes) in landings {
        landing.unpack(bytes);
    }
}

/// Stores the outcome of a request of a call with one status. The caller is in no lane.
pub(super) fn finish_one(taken: Taken, status: Out<MPI_Status>) -> Outcome {
    let bytes = usize::try_from(taken.status.bytes()).unwrap_or(0);
    if let Some(landing) = taken.landing {
        landing.unpack(bytes);
    }
    set_status(status, &taken.status);
    taken.failure.map_or(Ok(()), Err)
}
