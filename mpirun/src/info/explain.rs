//! `mpi-info --explain coll barrier`: an operation's possible components and their algorithms.
//!
//! The components are listed in order of priority.
//! The members of a communicator agree on one component at run time.
//! So only `mpirun --explain` reports the final choice.

use crate::components;

use super::{InfoError, line, list_all};
use crate::frameworks;
use mpi_base::param::{Level, Params, Style};
use mpi_core::coll::select::priority;
use mpi_core::coll::{CallId, Component};
use std::cmp::Reverse;

pub(super) fn answer(
    framework: &str,
    what: Option<&String>,
    params: &Params,
) -> Result<String, InfoError> {
    let all = frameworks::all(params);
    let found = all.iter().find(|found| found.name == framework);
    let found = found.ok_or_else(|| InfoError::NoFramework {
        name: framework.into(),
        known: all.iter().map(|framework| framework.name).collect(),
    })?;
    let mut out = String::new();
    line(&mut out, framework, found.what);
    let Some(what) = what else {
        for component in &found.components {
            line(&mut out, "component", &component.name);
        }
        return Ok(out);
    };
    let call = CallId::ALL.into_iter().find(|call| call.name() == what);
    if let Some(call) = call.filter(|_| framework == "coll") {
        return Ok(out + &operation(call, params));
    }
    let component = found
        .components
        .iter()
        .find(|component| component.name == *what);
    let component = component.ok_or_else(|| {
        let mut known: Vec<String> = found.components.iter().map(|c| c.name.clone()).collect();
        if framework == "coll" {
            known.extend(CallId::ALL.map(|call| call.name().to_string()));
        }
        InfoError::NothingToExplain {
            framework: framework.into(),
            name: what.clone(),
            known,
        }
    })?;
    list_all(
        &mut out,
        &component.params,
        params,
        Style::Readable,
        Level::ALL,
    );
    Ok(out)
}

fn operation(call: CallId, params: &Params) -> String {
    let mut components = mpi_abi::components::coll(&components::catalogue(params));
    let weight = |component: &dyn Component| {
        // The parameter check reports an invalid priority; the listing uses the default.
        priority(component, params).unwrap_or(component.priority())
    };
    components.sort_by_key(|component| Reverse(weight(&**component)));
    let mut out = String::new();
    let text = format!(
        "MPI_{}: of the components that all members of a communicator can use and that serve it, the first",
        capitalised(call.name())
    );
    line(&mut out, "operation", &text);
    for component in &components {
        let text = format!("{} (priority {})", component.name(), weight(&**component));
        line(&mut out, "component", &text);
        for how in component.explain(params, call) {
            line(&mut out, "", &how);
        }
        if let Err(why) = component.verify(params) {
            line(&mut out, "", &why);
        }
    }
    line(
        &mut out,
        "",
        "mpirun --explain tells which of them serve a job, and why the others do not",
    );
    out
}

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}
