//! An array of requests, for `MPI_Waitall` and its relatives.
//!
//! Invariants: statuses and error codes are stored as section 3.2.5 requires, whichever request fails first;
//! if the requests complete in order, the batch is traversed once, with one lookup of the engine.

use super::{Statuses, set_empty, set_status, take};
use crate::abi::*;
use crate::api::args::{length, out, slice_mut};
use crate::error::{Failure, Outcome};
use crate::object::request::{
    self, RequestState, c_status, finish_simple, finish_simple_ones, is_settled, look,
};
use crate::state;
use std::ffi::c_int;

/// Stores the status of a successful request, one of several, with an error field if another has `failed` (section 3.2.5).
///
/// # Safety
/// As [`set_status`], but not `MPI_STATUS_IGNORE`.
#[inline]
unsafe fn store_status(to: *mut MPI_Status, status: &MPI_Status, failed: bool) {
    // SAFETY: `to` is valid by the `# Safety` contract of this function.
    unsafe {
        set_status(to, status);
        if failed {
            (&raw mut (*to).MPI_ERROR).write(MPI_SUCCESS);
        }
    }
}

/// An array of requests of the caller, with its statuses.
pub(super) struct Batch<'a> {
    pub(super) requests: &'a mut [MPI_Request],
    statuses: Statuses,
}

/// The number of active requests in a batch, by state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    pub(super) running: usize,
    pub(super) complete: usize,
}

/// The requests that a some-call finds.
pub(in crate::api) enum SomeOutcome {
    /// No request is active.
    Inactive,
    /// All that are complete now, possibly none.
    Complete,
    /// The requests at these indices.
    These(Vec<usize>),
}

impl<'a> Batch<'a> {
    /// # Safety
    /// The arrays are arguments of the caller with `count` elements.
    pub(super) unsafe fn new(
        count: c_int,
        requests: *mut MPI_Request,
        statuses: *mut MPI_Status,
    ) -> Result<Batch<'a>, Failure> {
        // SAFETY: `requests` is valid by the `# Safety` contract of this function.
        let requests =
            unsafe { slice_mut(requests, length(count, "count")?, "array_of_requests")? };
        Ok(Batch {
            requests,
            statuses: Statuses::at(statuses),
        })
    }

    fn survey(&self) -> Result<Survey, Failure> {
        let mut survey = Survey::default();
        for handle in self.requests.iter() {
            match look(*handle)? {
                RequestState::Inactive => {}
                RequestState::Running => survey.running += 1,
                RequestState::Complete => survey.complete += 1,
            }
        }
        Ok(survey)
    }

    /// Returns a survey; unless that is `enough`, polls the engine and returns another.
    pub(super) fn survey_with_retry(&self, enough: fn(&Survey) -> bool) -> Result<Survey, Failure> {
        let survey = self.survey()?;
        if enough(&survey) {
            return Ok(survey);
        }
        state::engine()?.poll_once();
        self.survey()
    }

    /// Waits until an active request is complete; returns false if none is active.
    pub(super) fn wait_any(&self) -> Result<bool, Failure> {
        let survey = self.survey()?;
        if survey.complete == 0 && survey.running > 0 {
            let complete = |h: &MPI_Request| matches!(look(*h), Ok(RequestState::Complete));
            let engine = state::engine()?;
            engine.wait_publishing(
                || self.requests.iter().any(complete),
                || self.publish_wait_any(&engine, survey.running),
            );
        }
        Ok(survey.running + survey.complete > 0)
    }

    /// Waits until the request at index `at` is not running.
    fn wait_for(&self, at: usize) -> Outcome {
        let handle = self.requests[at];
        let left = || {
            let rest = self.requests[at..].iter();
            rest.filter(|handle| !is_settled(**handle)).count()
        };
        state::engine()?.wait_publishing(
            || is_settled(handle),
            || request::publish_wait(handle, left()),
        );
        Ok(())
    }

    /// Publishes the wait on the state page, with the request if only one is running.
    #[cold]
    fn publish_wait_any(&self, engine: &mpi_core::Engine, running: usize) {
        let only = self.requests.iter().find(|handle| !is_settled(**handle));
        match (running, only) {
            (1, Some(only)) => request::publish_wait(*only, 1),
            _ => engine.publish_wait_any(running as u32),
        }
    }

    /// Returns the index of the first complete request.
    pub(super) fn first_complete(&self) -> Option<usize> {
        self.requests
            .iter()
            .position(|h| matches!(look(*h), Ok(RequestState::Complete)))
    }

    /// Finishes the requests from index `from` on that are of the most frequent kinds and succeeded, up to the first that is not; returns their number.
    ///
    /// # Safety
    /// The statuses are an array of the caller with an element for each request.
    unsafe fn take_simple_ones(&mut self, from: usize) -> usize {
        let (first, failed) = (self.statuses.place(from), self.statuses.has_failed());
        let requests = &mut self.requests[from..];
        let Some(first) = first else {
            return finish_simple_ones(requests, |_, _| {});
        };
        finish_simple_ones(requests, |at, well| {
            // SAFETY: the statuses are valid by the `# Safety` contract of this function, and `at` is an index of the array.
            unsafe { store_status(first.add(at), &c_status(well), failed) };
        })
    }

    /// Finishes the request at index `i` and stores its status at index `at`.
    ///
    /// # Safety
    /// The statuses are an array of the caller with an element `at`.
    unsafe fn take(&mut self, i: usize, at: usize) -> Outcome {
        if let Some(well) = finish_simple(self.requests[i]) {
            self.requests[i] = MPI_REQUEST_NULL;
            // SAFETY: the statuses are valid at `at` by the `# Safety` contract of this function.
            unsafe { self.statuses.store(at, &c_status(well), None) };
            return Ok(());
        }
        // SAFETY: an element of the array, which is exclusively borrowed.
        let finished = unsafe { take(&mut self.requests[i])? };
        // SAFETY: the statuses are valid at `at` by the `# Safety` contract of this function.
        unsafe { self.statuses.store(at, &finished.status, finished.failure) };
        Ok(())
    }

    /// Finishes every request in order; waits for each one that is running.
    ///
    /// The batch is traversed once, and complete requests are processed while the others are still running.
    ///
    /// # Safety
    /// The statuses are an array of the caller with an element for each request.
    pub(super) unsafe fn take_all(mut self) -> Outcome {
        let mut i = 0;
        loop {
            // SAFETY: the statuses are valid for all requests by the `# Safety` contract of this function.
            unsafe {
                i += self.take_simple_ones(i);
                let Some(next) = self.requests.get(i) else {
                    return self.report();
                };
                match look(*next)? {
                    RequestState::Running => {
                        self.wait_for(i)?;
                        continue;
                    }
                    RequestState::Inactive => {
                        if let Some(place) = self.statuses.place(i) {
                            set_empty(place);
                        }
                    }
                    RequestState::Complete => self.take(i, i)?,
                }
            }
            i += 1;
        }
    }

    /// Finishes every complete request and stores its index; returns their number.
    ///
    /// # Safety
    /// `indices` and the statuses are arrays of the caller with an element for each request.
    unsafe fn take_some(&mut self, indices: *mut c_int) -> Result<usize, Failure> {
        let mut taken = 0;
        for i in 0..self.requests.len() {
            if look(self.requests[i])? == RequestState::Complete {
                // SAFETY: `indices` is valid by the `# Safety` contract of this function.
                unsafe { self.take_next(i, taken, indices)? };
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Finishes the requests found by a some-call, and stores their number and indices.
    ///
    /// # Safety
    /// As [`Batch::take_some`]; `outcount` is an output argument of the caller.
    pub(super) unsafe fn take_several(
        mut self,
        found: &SomeOutcome,
        outcount: *mut c_int,
        indices: *mut c_int,
    ) -> Outcome {
        // SAFETY: `outcount` and `indices` are valid by the `# Safety` contract of this function.
        unsafe {
            let taken = match found {
                SomeOutcome::Inactive => return out(outcount, MPI_UNDEFINED, "outcount"),
                SomeOutcome::Complete => self.take_some(indices)?,
                SomeOutcome::These(places) => {
                    for (taken, i) in places.iter().enumerate() {
                        self.take_next(*i, taken, indices)?;
                    }
                    places.len()
                }
            };
            out(outcount, taken as c_int, "outcount")?;
        }
        self.report()
    }

    /// Finishes the request at index `i`, after `taken` others.
    ///
    /// # Safety
    /// As [`Batch::take_some`].
    unsafe fn take_next(&mut self, i: usize, taken: usize, indices: *mut c_int) -> Outcome {
        // SAFETY: `indices` is null or writable: `# Safety` of this function.
        unsafe {
            out(indices.wrapping_add(taken), i as c_int, "array_of_indices")?;
            self.take(i, taken)
        }
    }

    /// Returns the result of the call.
    pub(super) fn report(self) -> Outcome {
        self.statuses.report()
    }
}
