//! Opening of transports: the built-in components, what each is opened with, and why a component is not available.
//!
//! A component that is not available is reported with its reason, and the job continues without it. A component that the user named must exist.

use super::decorate::Decorator;
use crate::universe::Universe;

use super::component::{Component, OpenContext, OpenError, SELECTION, Transport};
use super::{checksum, fault, ofi, self_, sm, tcp, trace, ucx};
use mpi_base::param::{ParamError, Params, Selection, SelectionError};
use std::fmt;
use std::sync::Arc;

/// The built-in decorators.
pub static DECORATORS: &[Decorator] = &[fault::DECORATOR, trace::DECORATOR, checksum::DECORATOR];

/// Wraps a transport in every enabled decorator.
pub(super) fn decorate(
    context: &OpenContext<'_>,
    number: u32,
    transport: Transport,
) -> Result<Transport, OpenError> {
    DECORATORS.iter().try_fold(transport, |inner, decorator| {
        (decorator.wrap)(context, number, inner)
    })
}

/// The built-in components; a new one is a folder and a line here.
pub static BUILT_IN: &[Component] = &[
    self_::COMPONENT,
    sm::COMPONENT,
    ucx::COMPONENT,
    ofi::COMPONENT,
    tcp::COMPONENT,
];

/// The opened transports of one process, and why the other components are not available.
pub struct Opened {
    pub btls: Vec<Transport>,
    /// True if all processes of the job must pass a fence before the first message, because a component has published an address in the modex.
    pub fence: bool,
    pub refused: Vec<(&'static str, OpenError)>,
    /// Sentences about components that the user has named and whose library cannot be used.
    pub warnings: Vec<String>,
}

/// Opens all selected components.
///
/// The error names a component that was asked for and does not exist.
pub fn open_all(context: &OpenContext<'_>) -> Result<Opened, SelectError> {
    let selection = context.params.get(&SELECTION).map_err(SelectError::Param)?;
    let known: Vec<&str> = BUILT_IN.iter().map(|component| component.name).collect();
    selection
        .check("btl", &known)
        .map_err(SelectError::Selection)?;
    let mut opened = Opened {
        btls: Vec::new(),
        fence: false,
        refused: Vec::new(),
        warnings: Vec::new(),
    };
    for component in BUILT_IN {
        let result = if selection.allows(component.name) {
            // All processes get the same result here, even if one cannot open its own transport.
            opened.fence |= (component.posts)(context);
            (component.open)(context)
        } else {
            Err(OpenError::Deselected)
        };
        match result {
            Ok(btls) => {
                for btl in btls {
                    let number = opened.btls.len() as u32;
                    opened
                        .btls
                        .push(decorate(context, number, btl).map_err(SelectError::Decorator)?);
                }
            }
            Err(error) => {
                opened
                    .warnings
                    .extend(warning(&selection, component.name, &error));
                opened.refused.push((component.name, error));
            }
        }
    }
    Ok(opened)
}

/// Returns the sentence about a component that the user has named and whose library cannot be used: another transport may replace it unnoticed.
fn warning(selection: &Selection, name: &str, error: &OpenError) -> Option<String> {
    let is_named = matches!(selection, Selection::Only(_));
    let is_library = matches!(error, OpenError::Library(_));
    (is_named && is_library)
        .then(|| format!("the parameter btl names {name}, which is not used: {error}"))
}

/// Opens the transports to processes of other jobs, which `universe` knows, the best first; each publishes its address on this process's card.
///
/// Fails with the error of the last one if none is available.
pub fn open_to_other_jobs(
    params: &Params,
    universe: &Arc<Universe>,
) -> Result<Vec<Transport>, OpenError> {
    let selection = params.get(&SELECTION).map_err(OpenError::Param)?;
    let components = [
        ("sm", sm::open_to_other_jobs as OpenAbroad),
        ("tcp", tcp::open_to_other_jobs),
    ];
    let mut opened = Vec::new();
    let mut refused = OpenError::Deselected;
    for (name, open) in components {
        match selection.allows(name).then(|| open(params, universe)) {
            Some(Ok(transport)) => opened.push(transport),
            Some(Err(error)) => refused = error,
            None => {}
        }
    }
    match opened.is_empty() {
        true => Err(refused),
        false => Ok(opened),
    }
}

type OpenAbroad = fn(&Params, &Arc<Universe>) -> Result<Transport, OpenError>;

/// Why the selection of transports is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// An enabled decorator is not available; running without it would contradict the parameters.
    Decorator(OpenError),
    Param(ParamError),
    Selection(SelectionError),
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Decorator(error) => error.fmt(f),
            SelectError::Param(error) => error.fmt(f),
            SelectError::Selection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SelectError {}
