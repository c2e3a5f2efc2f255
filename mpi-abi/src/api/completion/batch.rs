//! A caller's array of requests, as in `MPI_Waitall`, `MPI_Waitany` and `MPI_Testsome`.
//!
//! Statuses and error codes are stored as section 3.2.5 requires, also if some requests fail.
//! If the requests complete in order, the batch is traversed once, with one lookup of the engine.

use super::{Statuses, set_empty, set_status, take};
use crate::abi::*;
use crate::api::args::{InOutArray, Out, length};
use crate::error::{Failure, Outcome};
use crate::object::request::RequestState;
use crate::registry::request::{
    self, c_status, finish_simple, finish_simple_ones, is_settled, look,
};
use crate::state;
use std::ffi::c_int;

/// Stores the status of a successful request.
/// If another request of the batch has `failed`, `MPI_ERROR` is set to success (section 3.2.5).
#[inline]
fn store_status(to: Out<MPI_Status>, status: &MPI_Status, failed: bool) {
    set_status(to, status);
    if failed {
        to.set_error(MPI_SUCCESS);
    }
}

/// An array of requests of the caller, with its statuses.
pub(super) struct Batch<'a> {
    pub(super) requests: &'a mut [MPI_Request],
    statuses: Statuses<'a>,
}

/// The number of active requests in a batch, by state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Survey {
    pub(super) running: usize,
    pub(super) complete: usize,
}

/// The result of `MPI_Waitsome` or `MPI_Testsome`.
pub(in crate::api) enum SomeOutcome {
    /// No request is active.
    Inactive,
    /// Report all requests that are complete now, possibly none.
    Complete,
    /// Report the requests at these indices, as in the recorded run that is being replayed.
    These(Vec<usize>),
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        count: c_int,
        requests: InOutArray<'a, MPI_Request>,
        statuses: InOutArray<'a, MPI_Status>,
    ) -> Result<Batch<'a>, Failure> {
        length(count, "count")?;
        Ok(Batch {
            requests: requests.get("array_of_requests")?,
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

    /// Counts the active requests by state. Unless `enough` returns true for the counts,
    /// polls the engine once and counts again.
    pub(super) fn survey_with_retry(&self, enough: fn(&Survey) -> bool) -> Result<Survey, Failure> {
        let survey = self.survey()?;
        if enough(&survey) {
            return Ok(survey);
        }
        state::engine()?.poll_once();
        self.survey()
    }

    /// Waits until an active request is complete. Returns false if no request is active.
    pub(super) fn wait_any(&self) -> Result<bool, Failure> {
        let survey = self.survey()?;
        if survey.complete == 0 && survey.running > 0 {
            let complete = |h: &MPI_Request| matches!(look(*h), Ok(RequestState::Complete));
            let engine = state::engine()?;
            engine.wait_for_messages(
                || self.requests.iter().any(complete),
                || self.publish_wait_any(&engine, survey.running),
            );
        }
        Ok(survey.running + survey.complete > 0)
    }

    /// Waits until the request at index `at` is not running.
    fn wait_for(&self, at: usize) -> Outcome {
        let handle = self.requests[at];
        if request::spin_for(handle) {
            return Ok(());
        }
        let left = || {
            let rest = self.requests[at..].iter();
            rest.filter(|handle| !is_settled(**handle)).count()
        };
        state::engine()?.wait_for_messages(
            || is_settled(handle),
            || request::publish_wait(handle, left()),
        );
        Ok(())
    }

    /// Publishes on the state page that the rank waits, and the request if only one is active.
    #[cold]
    fn publish_wait_any(&self, engine: &mpi_core::Engine, running: usize) {
        let only = self.requests.iter().find(|handle| !is_settled(**handle));
        match (running, only) {
            (1, Some(only)) => request::publish_wait(*only, 1),
            _ => engine.published().waits_for_any(running as u32),
        }
    }

    /// Returns the index of the first complete request.
    pub(super) fn first_complete(&self) -> Option<usize> {
        self.requests
            .iter()
            .position(|h| matches!(look(*h), Ok(RequestState::Complete)))
    }

    /// Finishes consecutive requests from index `from` on, as far as [`finish_simple_ones`] can.
    /// Stops at the first request that it cannot finish. Returns the number of finished requests.
    fn take_simple_ones(&mut self, from: usize) -> usize {
        let (statuses, failed) = (self.statuses.rest(from), self.statuses.has_failed());
        let requests = &mut self.requests[from..];
        let Some(statuses) = statuses else {
            return finish_simple_ones(requests, |_, _| {});
        };
        finish_simple_ones(requests, |at, well| {
            if let Some(place) = statuses.at(at) {
                store_status(place, &c_status(well), failed);
            }
        })
    }

    /// Finishes the request at index `i` and stores its status at index `at`.
    fn take(&mut self, i: usize, at: usize) -> Outcome {
        if let Some(well) = finish_simple(self.requests[i]) {
            self.requests[i] = MPI_REQUEST_NULL;
            self.statuses.store(at, &c_status(well), None);
            return Ok(());
        }
        let finished = take(&mut self.requests[i])?;
        self.statuses.store(at, &finished.status, finished.failure);
        Ok(())
    }

    /// Finishes all requests in order, and waits for each active one.
    ///
    /// Traverses the batch once. Complete requests are processed while others are active.
    pub(super) fn take_all(mut self) -> Outcome {
        let mut i = 0;
        loop {
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
            i += 1;
        }
    }

    /// Finishes all complete requests and stores their indices. Returns their number.
    fn take_some(&mut self, indices: InOutArray<c_int>) -> Result<usize, Failure> {
        let mut taken = 0;
        for i in 0..self.requests.len() {
            if look(self.requests[i])? == RequestState::Complete {
                self.take_next(i, taken, indices)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Finishes the requests found by `MPI_Waitsome` or `MPI_Testsome`.
    /// Stores their number and indices.
    pub(super) fn take_several(
        mut self,
        found: &SomeOutcome,
        outcount: Out<c_int>,
        indices: InOutArray<c_int>,
    ) -> Outcome {
        let taken = match found {
            SomeOutcome::Inactive => return outcount.set(MPI_UNDEFINED, "outcount"),
            SomeOutcome::Complete => self.take_some(indices)?,
            SomeOutcome::These(places) => {
                for (taken, i) in places.iter().enumerate() {
                    self.take_next(*i, taken, indices)?;
                }
                places.len()
            }
        };
        outcount.set(taken as c_int, "outcount")?;
        self.report()
    }

    /// Finishes the request at index `i`. This call has finished `taken` requests before.
    fn take_next(&mut self, i: usize, taken: usize, indices: InOutArray<c_int>) -> Outcome {
        indices.set(taken, i as c_int, "array_of_indices")?;
        self.take(i, taken)
    }

    /// Returns the result of the MPI call.
    pub(super) fn report(self) -> Outcome {
        self.statuses.report()
    }
}
