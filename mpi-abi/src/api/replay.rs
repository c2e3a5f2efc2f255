//! Which requests a call finds complete in a run that is recorded or replayed (`mpi_core::record`).

use crate::abi::*;
use crate::error::Failure;
use crate::object::request::{self, RequestState, look};
use crate::state;
use mpi_core::record::{Asker, Decision};

/// The places of `requests` that `asker` finds complete, `None` if it finds nothing yet; `natural` finds out where nothing prescribes it.
///
/// Only calls whose answer depends on which process was faster come here: at least one request is active.
#[cold]
pub(super) fn places(
    asker: Asker,
    requests: &[MPI_Request],
    natural: impl FnOnce() -> Result<Option<Vec<usize>>, Failure>,
) -> Result<Option<Vec<usize>>, Failure> {
    let engine = state::engine()?;
    let Some(script) = engine.script() else {
        return natural();
    };
    if !script.is_replay() {
        let found = natural()?;
        match &found {
            Some(places) => script.completed(asker, places)?,
            None => script.found_nothing(asker)?,
        }
        return Ok(found);
    }
    let recorded = script.places(asker)?;
    let Some(places) = &recorded else {
        engine.poll_once();
        return Ok(None);
    };
    for place in places {
        let handle = requests.get(*place).copied();
        let there = match handle {
            Some(handle) if look(handle)? != RequestState::Inactive => handle,
            _ => {
                let why = format!("none of the {} requests is active there", requests.len());
                let decision = Decision::Place(*place as u32);
                return Err(script.impossible(asker, decision, why).into());
            }
        };
        request::wait(there)?;
    }
    Ok(recorded)
}

/// Whether a call about one request finds it complete; the same for a request that is not active.
pub(super) fn state_replayed(asker: Asker, handle: MPI_Request) -> Result<RequestState, Failure> {
    let natural = || request::state_after_progress(handle);
    if !state::is_scripted() || look(handle)? == RequestState::Inactive {
        return natural();
    }
    let found = places(asker, &[handle], || {
        Ok((natural()? == RequestState::Complete).then(|| vec![0]))
    })?;
    Ok(match found {
        Some(_) => RequestState::Complete,
        None => RequestState::Running,
    })
}
