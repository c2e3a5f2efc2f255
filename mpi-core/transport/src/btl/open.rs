//! Opening of transports: the built-in components, and the reasons why components are unusable.
//!
//! An unusable component is reported with its reason, and the job continues without it.
//! A component that the user has named must exist.

use super::decorate::Decorator;
use crate::universe::Universe;

use super::component::{Component, OpenContext, OpenError, SELECTION, Transport};
use super::{checksum, fault, ofi, plugin, self_, sm, tcp, trace, ucx};
use mpi_base::param::{ParamError, Params, Selection, SelectionError};
use std::fmt;
use std::sync::Arc;

/// The built-in decorators; the first one wraps the transport directly.
pub static DECORATORS: &[Decorator] = &[fault::DECORATOR, trace::DECORATOR, checksum::DECORATOR];

/// Wraps a transport in all enabled decorators; `number` is the transport's index in this process.
pub(super) fn decorate(
    context: &OpenContext<'_>,
    number: u32,
    transport: Transport,
) -> Result<Transport, OpenError> {
    DECORATORS.iter().try_fold(transport, |inner, decorator| {
        (decorator.wrap)(context, number, inner)
    })
}

/// The built-in components. A new component needs a folder and a line in this list.
pub static BUILT_IN: &[Component] = &[
    self_::COMPONENT,
    sm::COMPONENT,
    ucx::COMPONENT,
    ofi::COMPONENT,
    tcp::COMPONENT,
];

/// The opened transports of one process, and the reasons why the other components are unusable.
pub struct Opened {
    pub btls: Vec<Transport>,
    /// True if all processes of the job must pass a fence before the first message, because a component publishes an address in the modex.
    pub fence: bool,
    pub refused: Vec<(&'static str, OpenError)>,
    /// Warnings about components that the user has named and whose library is unusable.
    pub warnings: Vec<String>,
}

/// Opens all selected components.
///
/// Returns an error if the selection contains a component that does not exist.
pub fn open_all(context: &OpenContext<'_>) -> Result<Opened, SelectError> {
    let selection = context.params.get(&SELECTION).map_err(SelectError::Param)?;
    let mut known: Vec<&str> = BUILT_IN.iter().map(|component| component.name).collect();
    let plugins = load_plugins(&selection, &known, context)?;
    known.extend(plugins.iter().map(plugin::Component::name));
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
            // All processes compute the same value, including those that cannot open their transport.
            opened.fence |= (component.posts)(context);
            (component.open)(context)
        } else {
            Err(OpenError::Deselected)
        };
        opened.add(context, &selection, component.name, result)?;
    }
    for component in &plugins {
        // All processes have the same selection, so all of them set `fence` here.
        opened.fence = true;
        let result = component.open(context);
        opened.add(context, &selection, component.name(), result)?;
    }
    Ok(opened)
}

impl Opened {
    /// Returns the selected components that this process cannot use, and the reasons.
    pub fn unopened(&self) -> Vec<(&'static str, String)> {
        let refused = self.refused.iter();
        refused
            .filter(|(_, error)| !matches!(error, OpenError::Deselected))
            .map(|(name, error)| (*name, error.to_string()))
            .collect()
    }

    /// Adds the transports of a component, or the reason why it is unusable.
    fn add(
        &mut self,
        context: &OpenContext<'_>,
        selection: &Selection,
        name: &'static str,
        result: Result<Vec<Transport>, OpenError>,
    ) -> Result<(), SelectError> {
        match result {
            Ok(btls) => {
                for btl in btls {
                    let number = self.btls.len() as u32;
                    let decorated = decorate(context, number, btl);
                    self.btls.push(decorated.map_err(SelectError::Decorator)?);
                }
            }
            Err(error) => {
                self.warnings.extend(warning(selection, name, &error));
                self.refused.push((name, error));
            }
        }
        Ok(())
    }
}

/// Loads the plugin files of transports that the user has named and that are not built in.
fn load_plugins(
    selection: &Selection,
    known: &[&str],
    context: &OpenContext<'_>,
) -> Result<Vec<plugin::Component>, SelectError> {
    let Selection::Only(names) = selection else {
        return Ok(Vec::new());
    };
    let others = names.iter().filter(|name| !known.contains(&name.as_str()));
    let mut plugins = Vec::new();
    for name in others {
        match plugin::Component::load(name, context) {
            Ok(component) => plugins.push(component),
            // The check of the selection in `open_all` reports the missing component.
            Err(plugin::FileError::Missing) => {}
            Err(reason) => {
                return Err(SelectError::Plugin {
                    name: name.clone(),
                    reason,
                });
            }
        }
    }
    Ok(plugins)
}

/// Returns a warning if the user has named a component whose library is unusable,
/// because otherwise another transport could replace the component without notice.
fn warning(selection: &Selection, name: &str, error: &OpenError) -> Option<String> {
    let is_named = matches!(selection, Selection::Only(_));
    let is_library = matches!(error, OpenError::Library(_) | OpenError::Plugin { .. });
    (is_named && is_library)
        .then(|| format!("the parameter btl names {name}, which is not used: {error}"))
}

/// Opens the transports to processes of other jobs, in descending order of preference. `universe` contains these processes.
/// Each transport publishes its address on this process's card in the universe.
///
/// Returns the error of the last transport if none can be opened.
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

/// The reason why the selection of transports is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// An enabled decorator is unusable. Running without it would contradict the parameters.
    Decorator(OpenError),
    /// The user has named a transport whose plugin file is unusable.
    Plugin {
        name: String,
        reason: plugin::FileError,
    },
    Param(ParamError),
    Selection(SelectionError),
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Decorator(error) => error.fmt(f),
            SelectError::Plugin { name, reason } => write!(
                f,
                "the parameter btl names {name}, whose file is not used: {reason}"
            ),
            SelectError::Param(error) => error.fmt(f),
            SelectError::Selection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SelectError {}
