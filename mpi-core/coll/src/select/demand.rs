//! Check that the components that the user demands by name are used: a warning or error
//! if `MPI_COMM_WORLD` cannot use one of them.
//!
//! If a component that a parameter requests is missing, or if other components precede it in all calls that it serves,
//! rank 0 prints a warning; for a component with `coll_<component>_required` the job ends.
//! On other communicators a missing component is not reported,
//! because the user may want it on a few communicators only.

use super::{Refused, Table, reason_for};
use crate::{CallId, CollError, Component};
use mpi_base::param::{ParamError, Params, Value};
use mpi_engine::comm::Comm;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    Asked,
    Required,
}

/// The user's demands on this process's components, by name.
#[derive(Clone, Default)]
pub(super) struct Demands(Rc<[(Rc<str>, Demand)]>);

impl Demands {
    /// Reads the demands from the parameters; `may_serve` returns true for components that the user has not excluded.
    pub fn read(
        components: &[Box<dyn Component>],
        params: &Params,
        may_serve: impl Fn(&str) -> bool,
    ) -> Result<Demands, CollError> {
        let mut demands: Vec<(Rc<str>, Demand)> = Vec::new();
        for component in components {
            let name = component.name();
            if demands.iter().any(|(known, _)| **known == *name) {
                continue;
            }
            let is_required = is_required(name, params).map_err(CollError::Parameter)?;
            if is_required {
                demands.push((name.into(), Demand::Required));
            } else if may_serve(name) && component.is_asked_for(params) {
                demands.push((name.into(), Demand::Asked));
            }
        }
        Ok(Demands(demands.into()))
    }

    /// Compares the demands with the components that the members of `comm` have agreed on. Every member calls this function.
    /// Returns an error if a required component is missing.
    pub fn compare(&self, comm: &Comm, table: &Table) -> Result<(), CollError> {
        if !comm.is_world() {
            return Ok(());
        }
        for (name, demand) in self.0.iter() {
            let unused = match table.has(name) {
                true => table.preceded(name),
                false => Some(reason(name, table.refused(), comm.rank())),
            };
            let Some(reason) = unused else { continue };
            match demand {
                Demand::Required => {
                    return Err(CollError::Unusable {
                        component: name.to_string(),
                        reason: format!("{reason} (coll_{name}_required is true)"),
                    });
                }
                Demand::Asked if comm.rank() == 0 => warn(comm, name, &reason, table),
                Demand::Asked => {}
            }
        }
        Ok(())
    }
}

/// Returns the value of `coll_<component>_required`; false by default.
fn is_required(component: &str, params: &Params) -> Result<bool, ParamError> {
    // Plugins' parameters are unknown when this library is built, so the parameter is searched by name.
    let wanted = format!("coll_{component}_required");
    let Some((name, value, source)) = params.settings().find(|(name, ..)| *name == wanted) else {
        return Ok(false);
    };
    bool::parse(value).map_err(|expected| ParamError::Malformed {
        name: name.into(),
        value: value.into(),
        source: source.clone(),
        expected,
    })
}

/// Returns the reason why a component is not used, for an output line that already begins with rank `me`.
fn reason(name: &str, refused: &Refused, me: u32) -> String {
    let reason = reason_for(name, refused).0;
    // The output line already contains the rank, so the rank is removed from the reason.
    match reason.strip_prefix(&format!("rank {me}: ")) {
        Some(own) => own.to_owned(),
        None => reason,
    }
}

fn warn(comm: &Comm, component: &str, reason: &str, table: &Table) {
    let next = match table.performer(CallId::Barrier) {
        Some(next) => format!("barriers go in software (component {next})"),
        None => "no other component may serve barriers".to_owned(),
    };
    printable::eprintln!(
        "[rank {} of {}] coll {component}: warning: {reason}; {next}",
        comm.rank(),
        comm.name(),
    );
}
