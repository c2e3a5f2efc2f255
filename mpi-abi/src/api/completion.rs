//! Waiting for requests and testing them (section 3.7).
//!
//! All forms are made of three steps of [`crate::object::request`]: `look` at a handle, `finish` one that is complete, and wait
//! with the engine in between.

use super::args::{length, out, read, slice_mut};
use super::scripted::{self, look_one};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::request::{
    self, EMPTY, Finished, Look, c_status, finish, finish_simple, finish_simple_ones, is_settled,
    look,
};
use crate::state;
use mpi_core::record::Asker;
use std::ffi::c_int;

/// Stores a status in the fields that calls returning one status set; the error field stays (section 3.2.5).
///
/// # Safety
/// `to` is an output argument of the caller or `MPI_STATUS_IGNORE`.
#[inline]
pub(crate) unsafe fn set_status(to: *mut MPI_Status, status: &MPI_Status) {
    if to.addr() == MPI_STATUS_IGNORE.addr() {
        return;
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    unsafe {
        (&raw mut (*to).MPI_SOURCE).write(status.MPI_SOURCE);
        (&raw mut (*to).MPI_TAG).write(status.MPI_TAG);
        (&raw mut (*to).MPI_internal).write(status.MPI_internal);
    }
}

/// Stores the status of one of several requests, which went well, with an error field if another has `failed` (section 3.2.5).
///
/// # Safety
/// As [`set_status`], but not `MPI_STATUS_IGNORE`.
#[inline]
unsafe fn store_well(to: *mut MPI_Status, status: &MPI_Status, failed: bool) {
    // SAFETY: passed on.
    unsafe {
        set_status(to, status);
        if failed {
            (&raw mut (*to).MPI_ERROR).write(MPI_SUCCESS);
        }
    }
}

/// Stores the empty status, whose error field is part of it (section 3.7.3).
///
/// # Safety
/// As [`set_status`].
pub(super) unsafe fn set_empty(to: *mut MPI_Status) {
    if to.addr() != MPI_STATUS_IGNORE.addr() {
        // SAFETY: not null, and otherwise valid by the caller's promise.
        unsafe { to.write(EMPTY) };
    }
}

/// Finishes the request at a place of the caller, which becomes null unless it is persistent.
///
/// # Safety
/// `place` may be read and written.
unsafe fn take(place: *mut MPI_Request) -> Result<Finished, Failure> {
    // SAFETY: passed on.
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
    // SAFETY: passed on.
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

/// Looks at a request, and once more after the engine has progressed if it is not complete.
pub(super) fn look_twice(handle: MPI_Request) -> Result<Look, Failure> {
    match look(handle)? {
        Look::Running => {
            state::engine()?.look();
            look(handle)
        }
        settled => Ok(settled),
    }
}

pub unsafe fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        let handle = read(request, "request")?;
        if look(handle)? == Look::Inactive {
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
    // SAFETY: arguments of the caller.
    unsafe {
        let seen = look_one(Asker::Test, read(request, "request")?)?;
        out(flag, (seen != Look::Running).into(), "flag")?;
        match seen {
            Look::Running => Ok(()),
            Look::Inactive => {
                set_empty(status);
                Ok(())
            }
            Look::Complete => take_one(request, status),
        }
    }
}

/// An array of requests of the caller, with its statuses.
struct Batch<'a> {
    requests: &'a mut [MPI_Request],
    /// The first status, or `MPI_STATUSES_IGNORE`.
    statuses: *mut MPI_Status,
    /// The first failure of an operation.
    failure: Option<Failure>,
}

/// How many requests of a batch are active, by what can be done with them.
#[derive(Clone, Copy, Debug, Default)]
struct Survey {
    running: usize,
    complete: usize,
}

impl<'a> Batch<'a> {
    /// # Safety
    /// The arrays are arguments of the caller with `count` elements.
    unsafe fn new(
        count: c_int,
        requests: *mut MPI_Request,
        statuses: *mut MPI_Status,
    ) -> Result<Batch<'a>, Failure> {
        // SAFETY: passed on.
        let requests =
            unsafe { slice_mut(requests, length(count, "count")?, "array_of_requests")? };
        Ok(Batch {
            requests,
            statuses,
            failure: None,
        })
    }

    fn survey(&self) -> Result<Survey, Failure> {
        let mut survey = Survey::default();
        for handle in self.requests.iter() {
            match look(*handle)? {
                Look::Inactive => {}
                Look::Running => survey.running += 1,
                Look::Complete => survey.complete += 1,
            }
        }
        Ok(survey)
    }

    /// A survey, and another after the engine has progressed unless the first is enough.
    fn survey_twice(&self, enough: fn(&Survey) -> bool) -> Result<Survey, Failure> {
        let survey = self.survey()?;
        if enough(&survey) {
            return Ok(survey);
        }
        state::engine()?.look();
        self.survey()
    }

    /// Waits until an active request is complete; false if none is active.
    fn wait_any(&self) -> Result<bool, Failure> {
        let survey = self.survey()?;
        if survey.complete == 0 && survey.running > 0 {
            let complete = |h: &MPI_Request| matches!(look(*h), Ok(Look::Complete));
            let engine = state::engine()?;
            engine.wait_telling(
                || self.requests.iter().any(complete),
                || self.tell_any(&engine, survey.running),
            );
        }
        Ok(survey.running + survey.complete > 0)
    }

    /// Waits until the request at place `at` is not running.
    fn wait_for(&self, at: usize) -> Outcome {
        let handle = self.requests[at];
        let left = || {
            let rest = self.requests[at..].iter();
            rest.filter(|handle| !is_settled(**handle)).count()
        };
        state::engine()?.wait_telling(|| is_settled(handle), || request::tell(handle, left()));
        Ok(())
    }

    /// Tells the state page what is waited for: the request, if only one is running.
    #[cold]
    fn tell_any(&self, engine: &mpi_core::Engine, running: usize) {
        let only = self.requests.iter().find(|handle| !is_settled(**handle));
        match (running, only) {
            (1, Some(only)) => request::tell(*only, 1),
            _ => engine.tell_any(running as u32),
        }
    }

    /// The place of the first request that is complete.
    fn first_complete(&self) -> Option<usize> {
        self.requests
            .iter()
            .position(|h| matches!(look(*h), Ok(Look::Complete)))
    }

    /// Finishes the requests from place `from` on that are of the commonest kinds and went well, up to the first that is not; answers how many.
    ///
    /// # Safety
    /// The statuses are an argument of the caller.
    unsafe fn take_simple_ones(&mut self, from: usize) -> usize {
        let (statuses, failed) = (self.statuses, self.failure.is_some());
        let requests = &mut self.requests[from..];
        if statuses.addr() == MPI_STATUSES_IGNORE.addr() {
            return finish_simple_ones(requests, |_, _| {});
        }
        finish_simple_ones(requests, |at, well| {
            // SAFETY: passed on; the place is in the array.
            unsafe { store_well(statuses.add(from + at), &c_status(well), failed) };
        })
    }

    /// Finishes the request at place `i` and stores its status at place `at`.
    ///
    /// # Safety
    /// The statuses are an argument of the caller.
    unsafe fn take(&mut self, i: usize, at: usize) -> Outcome {
        if let Some(well) = finish_simple(self.requests[i]) {
            self.requests[i] = MPI_REQUEST_NULL;
            // SAFETY: passed on.
            unsafe { self.store(at, &c_status(well), None) };
            return Ok(());
        }
        // SAFETY: a place of the array.
        let finished = unsafe { take(&mut self.requests[i])? };
        // SAFETY: passed on.
        unsafe { self.store(at, &finished.status, finished.failure) };
        Ok(())
    }

    /// Stores a status; from the first failure on, and for those before it, with the error code (section 3.2.5).
    ///
    /// # Safety
    /// The statuses are an argument of the caller.
    unsafe fn store(&mut self, at: usize, status: &MPI_Status, failure: Option<Failure>) {
        let ignored = self.statuses.addr() == MPI_STATUSES_IGNORE.addr();
        if !ignored {
            // SAFETY: passed on; places up to `at` are in the array.
            unsafe {
                set_status(self.statuses.add(at), status);
                let set_error =
                    |at, code| (&raw mut (*self.statuses.add(at)).MPI_ERROR).write(code);
                if self.failure.is_none() && failure.is_some() {
                    (0..at).for_each(|before| set_error(before, MPI_SUCCESS));
                }
                if self.failure.is_some() || failure.is_some() {
                    set_error(at, failure.as_ref().map_or(MPI_SUCCESS, Failure::code));
                }
            }
        }
        self.failure = self.failure.take().or(failure);
    }

    /// Finishes every request, one after another; one that is running is waited for.
    ///
    /// The batch is gone through once, and what is complete is done with while the rest is on its way.
    ///
    /// # Safety
    /// The statuses are an argument of the caller.
    unsafe fn take_all(mut self) -> Outcome {
        let mut i = 0;
        loop {
            // SAFETY: passed on.
            unsafe {
                i += self.take_simple_ones(i);
                let Some(next) = self.requests.get(i) else {
                    return self.report();
                };
                match look(*next)? {
                    Look::Running => {
                        self.wait_for(i)?;
                        continue;
                    }
                    Look::Inactive if self.statuses.is_null() => {}
                    Look::Inactive => set_empty(self.statuses.add(i)),
                    Look::Complete => self.take(i, i)?,
                }
            }
            i += 1;
        }
    }

    /// The places of all requests that are complete.
    fn complete(&self) -> Option<Vec<usize>> {
        let complete = |at: &usize| matches!(look(self.requests[*at]), Ok(Look::Complete));
        let places: Vec<usize> = (0..self.requests.len()).filter(complete).collect();
        (!places.is_empty()).then_some(places)
    }

    /// The same for what a recording prescribes, or `natural` finds.
    fn scripted(
        &self,
        asker: Asker,
        natural: impl FnOnce() -> Result<Option<Vec<usize>>, Failure>,
    ) -> Result<Option<Vec<usize>>, Failure> {
        scripted::places(asker, self.requests, natural)
    }

    /// Whether a run is recorded or replayed and this call has something to decide.
    fn is_scripted(&self) -> Result<bool, Failure> {
        if !state::is_scripted() {
            return Ok(false);
        }
        let survey = self.survey()?;
        Ok(survey.running + survey.complete > 0)
    }

    /// Finishes every request that is complete and stores its place; returns how many there were.
    ///
    /// # Safety
    /// `indices` and the statuses are arguments of the caller with room for all.
    unsafe fn take_some(&mut self, indices: *mut c_int) -> Result<usize, Failure> {
        let mut taken = 0;
        for i in 0..self.requests.len() {
            if look(self.requests[i])? == Look::Complete {
                // SAFETY: passed on.
                unsafe { self.take_next(i, taken, indices)? };
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// The same for the requests at these places, if any.
    ///
    /// # Safety
    /// As [`Batch::take_some`].
    unsafe fn take_these(
        mut self,
        places: Option<Vec<usize>>,
        outcount: *mut c_int,
        indices: *mut c_int,
    ) -> Outcome {
        let places = places.unwrap_or_default();
        for (taken, i) in places.iter().enumerate() {
            // SAFETY: passed on.
            unsafe { self.take_next(*i, taken, indices)? };
        }
        // SAFETY: passed on.
        unsafe { out(outcount, places.len() as c_int, "outcount")? };
        self.report()
    }

    /// Finishes the request at place `i`, which is the next after `taken` others.
    ///
    /// # Safety
    /// As [`Batch::take_some`].
    unsafe fn take_next(&mut self, i: usize, taken: usize, indices: *mut c_int) -> Outcome {
        // SAFETY: passed on.
        unsafe {
            out(indices.wrapping_add(taken), i as c_int, "array_of_indices")?;
            self.take(i, taken)
        }
    }

    /// `MPI_ERR_IN_STATUS` where an operation failed.
    fn report(self) -> Outcome {
        let Some(first) = self.failure else {
            return Ok(());
        };
        let failure = Failure::new(MPI_ERR_IN_STATUS, first.message());
        Err(match first.target() {
            Some(target) => failure.on(target),
            None => failure,
        })
    }
}

pub unsafe fn MPI_Waitall(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: arrays of the caller.
    unsafe { Batch::new(count, array_of_requests, array_of_statuses)?.take_all() }
}

pub unsafe fn MPI_Testall(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    flag: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        let batch = Batch::new(count, array_of_requests, array_of_statuses)?;
        let natural = || -> Result<bool, Failure> {
            Ok(batch.survey_twice(|s| s.running == 0)?.running == 0)
        };
        let done = match batch.is_scripted()? {
            // All of them: no place need be named.
            true => {
                let all = || Ok(natural()?.then(Vec::new));
                batch.scripted(Asker::Testall, all)?.is_some()
            }
            false => natural()?,
        };
        out(flag, done.into(), "flag")?;
        // A replay says so of requests that are yet to end.
        if done { batch.take_all() } else { Ok(()) }
    }
}

/// Finishes a complete request of a batch, or says that none is active.
///
/// # Safety
/// `indx` and `status` are output arguments of the caller.
unsafe fn take_any(
    batch: &mut Batch<'_>,
    complete: Option<usize>,
    indx: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: passed on.
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
    // SAFETY: arguments of the caller.
    unsafe {
        let mut batch = Batch::new(count, array_of_requests, MPI_STATUSES_IGNORE)?;
        let complete = match batch.is_scripted()? {
            true => {
                let natural = || {
                    batch.wait_any()?;
                    Ok(batch.first_complete().map(|place| vec![place]))
                };
                batch.scripted(Asker::Waitany, natural)?.and_then(only)
            }
            false => {
                batch.wait_any()?;
                batch.first_complete()
            }
        };
        take_any(&mut batch, complete, indx, status)
    }
}

/// The one place of an answer about one request.
fn only(places: Vec<usize>) -> Option<usize> {
    places.first().copied()
}

pub unsafe fn MPI_Testany(
    count: c_int,
    array_of_requests: *mut MPI_Request,
    indx: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        let mut batch = Batch::new(count, array_of_requests, MPI_STATUSES_IGNORE)?;
        let natural = || -> Result<Option<Option<usize>>, Failure> {
            let survey = batch.survey_twice(|s| s.complete > 0 || s.running == 0)?;
            let nothing = survey.complete == 0 && survey.running > 0;
            Ok((!nothing).then(|| batch.first_complete()))
        };
        let found = match batch.is_scripted()? {
            true => {
                let places = || Ok(natural()?.flatten().map(|place| vec![place]));
                batch.scripted(Asker::Testany, places)?.map(only)
            }
            false => natural()?,
        };
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
    // SAFETY: arguments of the caller.
    unsafe {
        let mut batch = Batch::new(incount, array_of_requests, array_of_statuses)?;
        if batch.is_scripted()? {
            let natural = || {
                batch.survey_twice(|s| s.running == 0)?;
                batch.wait_any()?;
                Ok(batch.complete())
            };
            let places = batch.scripted(Asker::Waitsome, natural)?;
            return batch.take_these(places, outcount, array_of_indices);
        }
        // As in MPI_Testsome, what has arrived is seen at once.
        batch.survey_twice(|s| s.running == 0)?;
        if !batch.wait_any()? {
            return out(outcount, MPI_UNDEFINED, "outcount");
        }
        let taken = batch.take_some(array_of_indices)?;
        out(outcount, taken as c_int, "outcount")?;
        batch.report()
    }
}

pub unsafe fn MPI_Testsome(
    incount: c_int,
    array_of_requests: *mut MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Outcome {
    // SAFETY: arguments of the caller.
    unsafe {
        let mut batch = Batch::new(incount, array_of_requests, array_of_statuses)?;
        if batch.is_scripted()? {
            let natural = || {
                batch.survey_twice(|s| s.running == 0)?;
                Ok(batch.complete())
            };
            let places = batch.scripted(Asker::Testsome, natural)?;
            return batch.take_these(places, outcount, array_of_indices);
        }
        // All that can be complete by now, also when some is already: callers expect what has arrived to be seen at once.
        let survey = batch.survey_twice(|s| s.running == 0)?;
        if survey.running + survey.complete == 0 {
            return out(outcount, MPI_UNDEFINED, "outcount");
        }
        let taken = batch.take_some(array_of_indices)?;
        out(outcount, taken as c_int, "outcount")?;
        batch.report()
    }
}
