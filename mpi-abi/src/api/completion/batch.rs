//! An array of requests of the caller: what `MPI_Waitall` and its relatives do with it.
//!
//! Promise: statuses and error codes are stored as section 3.2.5 says, whichever request fails first;
//! a batch whose requests are done one after another is gone through once, and the engine looked up once for all of them.

use super::{Statuses, set_empty, set_status, take};
use crate::abi::*;
use crate::api::args::{length, out, slice_mut};
use crate::error::{Failure, Outcome};
use crate::object::request::{
    self, RequestState, c_status, finish_simple, finish_simple_ones, is_settled, look,
};
use crate::state;
use std::ffi::c_int;

/// Stores the status of one of several requests, which went well, with an error field if another has `failed` (section 3.2.5).
///
/// # Safety
/// As [`set_status`], but not `MPI_STATUS_IGNORE`.
#[inline]
unsafe fn store_well(to: *mut MPI_Status, status: &MPI_Status, failed: bool) {
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

/// How many requests of a batch are active, by what can be done with them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    pub(super) running: usize,
    pub(super) complete: usize,
}

/// Which requests a call about some of them finds.
pub(in crate::api) enum Several {
    /// None is active.
    Inactive,
    /// All that are complete now, if any.
    Complete,
    /// Those at these places.
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

    /// A survey, and another after the engine has progressed unless the first is enough.
    pub(super) fn survey_twice(&self, enough: fn(&Survey) -> bool) -> Result<Survey, Failure> {
        let survey = self.survey()?;
        if enough(&survey) {
            return Ok(survey);
        }
        state::engine()?.poll_once();
        self.survey()
    }

    /// Waits until an active request is complete; false if none is active.
    pub(super) fn wait_any(&self) -> Result<bool, Failure> {
        let survey = self.survey()?;
        if survey.complete == 0 && survey.running > 0 {
            let complete = |h: &MPI_Request| matches!(look(*h), Ok(RequestState::Complete));
            let engine = state::engine()?;
            engine.wait_publishing(
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
        state::engine()?.wait_publishing(|| is_settled(handle), || request::tell(handle, left()));
        Ok(())
    }

    /// Tells the state page what is waited for: the request, if only one is running.
    #[cold]
    fn tell_any(&self, engine: &mpi_core::Engine, running: usize) {
        let only = self.requests.iter().find(|handle| !is_settled(**handle));
        match (running, only) {
            (1, Some(only)) => request::tell(*only, 1),
            _ => engine.publish_wait_any(running as u32),
        }
    }

    /// The place of the first request that is complete.
    pub(super) fn first_complete(&self) -> Option<usize> {
        self.requests
            .iter()
            .position(|h| matches!(look(*h), Ok(RequestState::Complete)))
    }

    /// Finishes the requests from place `from` on that are of the commonest kinds and went well, up to the first that is not; answers how many.
    ///
    /// # Safety
    /// The statuses are an argument of the caller.
    unsafe fn take_simple_ones(&mut self, from: usize) -> usize {
        let (first, failed) = (self.statuses.place(from), self.statuses.has_failed());
        let requests = &mut self.requests[from..];
        let Some(first) = first else {
            return finish_simple_ones(requests, |_, _| {});
        };
        finish_simple_ones(requests, |at, well| {
            // SAFETY: passed on; the place is in the array.
            unsafe { store_well(first.add(at), &c_status(well), failed) };
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
            unsafe { self.statuses.store(at, &c_status(well), None) };
            return Ok(());
        }
        // SAFETY: a place of the array.
        let finished = unsafe { take(&mut self.requests[i])? };
        // SAFETY: passed on.
        unsafe { self.statuses.store(at, &finished.status, finished.failure) };
        Ok(())
    }

    /// Finishes every request, one after another; one that is running is waited for.
    ///
    /// The batch is gone through once, and what is complete is done with while the rest is on its way.
    ///
    /// # Safety
    /// The statuses are an argument of the caller.
    pub(super) unsafe fn take_all(mut self) -> Outcome {
        let mut i = 0;
        loop {
            // SAFETY: passed on.
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

    /// Finishes every request that is complete and stores its place; returns how many there were.
    ///
    /// # Safety
    /// `indices` and the statuses are arguments of the caller with room for all.
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

    /// Finishes what a call about some requests has found, and says how many and which they were.
    ///
    /// # Safety
    /// As [`Batch::take_some`]; `outcount` is an output argument of the caller.
    pub(super) unsafe fn take_several(
        mut self,
        found: &Several,
        outcount: *mut c_int,
        indices: *mut c_int,
    ) -> Outcome {
        // SAFETY: `outcount` and `indices` are valid by the `# Safety` contract of this function.
        unsafe {
            let taken = match found {
                Several::Inactive => return out(outcount, MPI_UNDEFINED, "outcount"),
                Several::Complete => self.take_some(indices)?,
                Several::These(places) => {
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

    /// Finishes the request at place `i`, which is the next after `taken` others.
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

    /// How the operations ended, as the call does.
    pub(super) fn report(self) -> Outcome {
        self.statuses.report()
    }
}
