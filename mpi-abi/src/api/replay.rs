//! Which requests a call finds complete: the one place where a run that is recorded or replayed (`mpi_core::record`) is asked.
//!
//! Every call whose answer depends on which process was faster goes through [`decide`], with a closure that finds the answer out.
//! In any other run that is this closure and one branch on a plain load.

use super::completion::Several;
use crate::abi::*;
use crate::error::Failure;
use crate::object::request::{self, RequestState, look};
use crate::state;
use mpi_core::record::{Asker, Decision};

/// An answer about requests.
pub(super) trait Found: Sized {
    /// The places of the requests that are complete by this answer, `None` if it says that nothing is yet.
    fn places(&self, requests: &[MPI_Request]) -> Option<Vec<usize>>;

    /// The answer that says so.
    fn of(places: Option<Vec<usize>>, requests: &[MPI_Request]) -> Result<Self, Failure>;
}

/// What a call finds: what `natural` finds out, or in a replay what was recorded.
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
    let looks = all_looks(requests)?;
    let engine = state::engine()?;
    let script = match engine.script() {
        Some(script) if looks.iter().any(|look| *look != RequestState::Inactive) => script,
        // Where no request is active there is one answer only.
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

fn all_looks(requests: &[MPI_Request]) -> Result<Vec<RequestState>, Failure> {
    requests.iter().map(|handle| look(*handle)).collect()
}

fn complete_ones(looks: &[RequestState]) -> Option<Vec<usize>> {
    let complete = (0..looks.len()).filter(|at| looks[*at] == RequestState::Complete);
    let places: Vec<usize> = complete.collect();
    (!places.is_empty()).then_some(places)
}

/// Of one request.
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

/// Of each request.
impl Found for Vec<RequestState> {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        complete_ones(self)
    }

    fn of(places: Option<Vec<usize>>, requests: &[MPI_Request]) -> Result<Self, Failure> {
        let places = places.unwrap_or_default();
        let mut looks = all_looks(requests)?;
        for (at, look) in looks.iter_mut().enumerate() {
            if *look != RequestState::Inactive {
                *look = match places.contains(&at) {
                    true => RequestState::Complete,
                    false => RequestState::Running,
                };
            }
        }
        Ok(looks)
    }
}

/// Whether all are complete, so that no place need be named.
impl Found for bool {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        self.then(Vec::new)
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(places.is_some())
    }
}

/// Which is complete.
impl Found for Option<usize> {
    fn places(&self, _: &[MPI_Request]) -> Option<Vec<usize>> {
        self.map(|place| vec![place])
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(places.and_then(|places| places.first().copied()))
    }
}

/// Whether one is complete or none is active, and which it is.
impl Found for Option<Option<usize>> {
    fn places(&self, requests: &[MPI_Request]) -> Option<Vec<usize>> {
        self.flatten().places(requests)
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(places.map(|places| places.first().copied()))
    }
}

impl Found for Several {
    fn places(&self, requests: &[MPI_Request]) -> Option<Vec<usize>> {
        complete_ones(&all_looks(requests).ok()?)
    }

    fn of(places: Option<Vec<usize>>, _: &[MPI_Request]) -> Result<Self, Failure> {
        Ok(Several::These(places.unwrap_or_default()))
    }
}
