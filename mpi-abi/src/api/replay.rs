//! Record and replay of the requests that a completion call finds (`mpi_core::record`).
//!
//! Every call whose result depends on timing passes [`decide`] a closure that computes the result.
//! Without record or replay, [`decide`] costs one branch on a relaxed load.

use super::completion::SomeOutcome;
use crate::abi::*;
use crate::error::Failure;
use crate::object::request::RequestState;
use crate::registry::request::{self, look};
use crate::state;
use mpi_core::record::{Asker, Decision};

/// The result of a completion call.
pub(super) trait Found: Sized {
    /// Returns the indices of the complete requests, or `None` if no request is complete yet.
    fn places(&self, requests: &[MPI_Request]) -> Option<Vec<usize>>;

    /// Builds the result of the call from the indices of the complete requests.
    fn of(places: Option<Vec<usize>>, requests: &[MPI_Request]) -> Result<Self, Failure>;
}

/// Returns the recorded result in a replay, otherwise the result of the closure `natural`.
#[inline(always)]
pub(super) fn decide<F: Found>(
    asker: Asker,
    requests: &[MPI_Request],
    natural: impl FnOnce() -> Result<F, Failure>,
) -> Result<F, Failure> {
    match state::is_scripted() {
        false => natural(),
        true => decided(asker, requests, natural),
    }
}

#[cold]
fn decided<F: Found>(
    asker: Asker,
    requests: &[MPI_Request],
    natural: impl FnOnce() -> Result<F, Failure>,
) -> Result<F, Failure> {
    let states = all_states(requests)?;
    let engine = state::engine()?;
    let script = match engine.script() {
        Some(script) if states.iter().any(|look| *look != RequestState::Inactive) => script,
        // If no request is active, only one result is possible, so nothing is recorded.
        _ => return natural(),
    };
    if !script.is_replay() {
        let places = natural()?.places(requests);
        match &places {
            Some(places) => script.completed(asker, places)?,
            None => script.found_nothing(asker)?,
        }
        return F::of(places, requests);
    }
    let recorded = script.places(asker)?;
    if recorded.is_none() {
        engine.poll_once();
    }
    for place in recorded.iter().flatten() {
        match requests.get(*place) {
            Some(handle) if look(*handle)? != RequestState::Inactive => request::wait(*handle)?,
            _ => {
                let why = format!("none of the {} requests is active there", requests.len());
                let decision = Decision::Place(*place as u32);
                return Err(script.impossible(asker, decision, why).into());
            }
        }
    }
    F::of(recorded, requests)
}

fn all_states(requests: &[MPI_Request]) -> Result<Vec<RequestState>, Failure> {
    requests.iter().map(|handle| look(*handle)).collect()
}

fn complete_ones(states: &[RequestState]) -> Option<Vec<usize>> {
    let complete = (0..states.len()).filter(|at| states[*at] == RequestState::Complete);
    let places: Vec<usize> = complete.collect();
    (!places.is_empty()).then_some(places)
}

/// `MPI_Test`: the state of one request.
impl Found for RequestState {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        (*self == RequestState::Complete).then(|| vec![0])
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(match places {
            Some(_) => RequestState::Complete,
            None => RequestState::Running,
        })
    }
}

/// `MPI_Request_get_status_all` and its variants: the state of each request of an array.
impl Found for Vec<RequestState> {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        complete_ones(self)
    }

    fn of(places: Option<Vec<usize>>, requests: &[MPI_Request]) -> Result<Self, Failure> {
        let places = places.unwrap_or_default();
        let mut states = all_states(requests)?;
        for (at, look) in states.iter_mut().enumerate() {
            if *look != RequestState::Inactive {
                *look = match places.contains(&at) {
                    true => RequestState::Complete,
                    false => RequestState::Running,
                };
            }
        }
        Ok(states)
    }
}

/// `MPI_Testall`: true if all requests are complete. An index is not needed.
impl Found for bool {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        self.then(Vec::new)
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(places.is_some())
    }
}

/// `MPI_Waitany`: the index of the complete request, or `None` if no request is active.
impl Found for Option<usize> {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        self.map(|place| vec![place])
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(places.and_then(|places| places.first().copied()))
    }
}

/// `MPI_Testany`: `None` if no request is complete.
/// Otherwise the index of the complete request, or `Some(None)` if no request is active.
impl Found for Option<Option<usize>> {
    fn places(&self, requests: &[MPI_Request]) -> Option<Vec<usize>> {
        self.flatten().places(requests)
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(places.map(|places| places.first().copied()))
    }
}

impl Found for SomeOutcome {
    fn places(&self, requests: &[MPI_Request]) -> Option<Vec<usize>> {
        complete_ones(&all_states(requests).ok()?)
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(SomeOutcome::These(places.unwrap_or_default()))
    }
}
