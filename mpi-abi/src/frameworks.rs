//! The list of all frameworks with their components and parameters.

use crate::crash::BACKTRACE;
use crate::error::unread_errors::WARN_UNREAD_ERRORS;
use crate::initial_handler::INITIAL_HANDLER;
use crate::leak_report::REPORT_LEAKS;
use crate::memory_rights::PTRACER;
use crate::params::{LANES, TELL_MISSPELT};
use crate::stdio::STREAM_BUFFERING;
use crate::unreceived::TELL_UNRECEIVED;
use crate::{components, device, helper};
use mpi_base::accelerator;
use mpi_base::param::{About, ParamError, Params, SelectionError, Source};
use mpi_core::engine::EXPLAIN;
use mpi_core::io::hints::HINTS;
use mpi_core::io::report::REPORT;
use mpi_core::matrix::MATRIX;
use mpi_core::plugin::{self, Catalogue, Origin};
use mpi_core::record::{RECORD, REPLAY};
use mpi_core::trace::TRACE;
use mpi_core::{bml, btl, coll, crs, osc, pml, rte};
use std::path::PathBuf;

/// A framework and its components.
#[derive(Debug)]
pub struct Framework {
    pub name: &'static str,
    pub what: &'static str,
    /// The parameters of the framework itself. The first one selects the components.
    pub params: Vec<&'static About>,
    pub components: Vec<Component>,
}

#[derive(Debug)]
pub struct Component {
    pub name: String,
    /// The version of the library or of the plugin.
    pub version: String,
    /// The plugin's file, or `None` for a component of the library.
    pub file: Option<PathBuf>,
    pub params: Vec<&'static About>,
}

impl Framework {
    /// Returns the parameters of the framework and of its components.
    pub fn abouts(&self) -> impl Iterator<Item = &'static About> {
        let of_components = self.components.iter().flat_map(|c| &c.params);
        self.params.iter().chain(of_components).copied()
    }
}

/// Returns an error for the first setting whose value cannot be parsed as its parameter's type.
///
/// Without this check, a component that cannot parse its value would be unavailable,
/// and the reason would not be reported.
pub fn malformed(params: &Params, known: &[Framework]) -> Result<(), ParamError> {
    let is_set = |about: &&About| params.source(about) != Source::Default;
    let mut abouts = known.iter().flat_map(Framework::abouts).filter(is_set);
    abouts.try_for_each(|about| params.check(about))
}

/// Returns an error for the first selection that allows a component that does not exist.
///
/// Only for frameworks that choose their components after the start, or only in some programs:
/// the others check their selections themselves.
pub fn unknown_component(params: &Params, known: &[Framework]) -> Result<(), SelectionError> {
    let late = [
        ("accelerator", &device::SELECTION),
        ("crs", &crs::SELECTION),
        ("osc", &osc::SELECTION),
    ];
    late.iter().try_for_each(|(name, selection)| {
        let framework = known.iter().find(|framework| framework.name == *name);
        let components = framework.iter().flat_map(|framework| &framework.components);
        let names: Vec<&str> = components.map(|component| &*component.name).collect();
        // `malformed` reports a value that cannot be parsed.
        params
            .get(selection)
            .map_or(Ok(()), |selection| selection.check(name, &names))
    })
}

impl Component {
    pub fn new(name: &str, params: &[&'static About]) -> Component {
        Component {
            name: name.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            file: None,
            params: params.to_vec(),
        }
    }

    /// Copies version and file of a plugin from the catalogue.
    fn of_catalogue(mut self, catalogue: &Catalogue) -> Component {
        let taken = &catalogue.taken;
        if let Some(found) = taken.iter().find(|taken| taken.plugin.name == self.name) {
            self.version = found.plugin.version.to_string();
            self.file = match &found.origin {
                Origin::BuiltIn => None,
                Origin::File(file) => Some(file.clone()),
            };
        }
        self
    }
}

/// Returns all frameworks of the library, sorted by name.
pub fn all(params: &Params) -> Vec<Framework> {
    with(&components::catalogue(params))
}

/// Returns all frameworks, with the plugins of an existing catalogue.
pub fn with(catalogue: &Catalogue) -> Vec<Framework> {
    vec![
        Framework {
            name: "accelerator",
            what: "buffers in the memory of devices",
            params: vec![
                device::SELECTION.about(),
                device::MAX_PINNED.about(),
                device::PIPELINE_MIN.about(),
            ],
            components: accelerator::BUILT_IN
                .iter()
                .map(|component| Component::new(component.name, &[]))
                .collect(),
        },
        Framework {
            name: "bml",
            what: "chooses the transports to each process",
            params: vec![bml::SHARE.about()],
            components: Vec::new(),
        },
        Framework {
            name: "btl",
            what: "moves bytes between two processes",
            params: vec![btl::SELECTION.about()],
            components: btl::BUILT_IN
                .iter()
                .map(|component| Component::new(component.name, component.params))
                .chain(
                    btl::DECORATORS
                        .iter()
                        .map(|decorator| Component::new(decorator.name, decorator.params)),
                )
                .collect(),
        },
        Framework {
            name: "coll",
            what: "collective operations",
            params: vec![coll::select::SELECTION.about()],
            components: components::coll(catalogue)
                .iter()
                .map(|component| Component::new(component.name(), &component.params()))
                .map(|component| component.of_catalogue(catalogue))
                .collect(),
        },
        Framework {
            name: "crs",
            what: "checkpoint and restart of a job",
            params: vec![crs::SELECTION.about()],
            components: crs::COMPONENTS
                .iter()
                .map(|component| Component::new(component.name, component.params))
                .collect(),
        },
        Framework {
            name: "io",
            what: "files",
            params: vec![HINTS.about(), REPORT.about(), WARN_UNREAD_ERRORS.about()],
            components: Vec::new(),
        },
        Framework {
            name: "mca",
            what: "parameters and components themselves",
            params: [TELL_MISSPELT.about()]
                .into_iter()
                .chain(plugin::params())
                .collect(),
            components: Vec::new(),
        },
        Framework {
            name: "mpi",
            what: "the library as a whole",
            params: vec![
                EXPLAIN.about(),
                TELL_UNRECEIVED.about(),
                REPORT_LEAKS.about(),
                BACKTRACE.about(),
                mpi_core::fault::ENABLE.about(),
                INITIAL_HANDLER.about(),
                STREAM_BUFFERING.about(),
                PTRACER.about(),
                TRACE.about(),
                MATRIX.about(),
                RECORD.about(),
                REPLAY.about(),
                device::KINDS.about(),
            ],
            components: Vec::new(),
        },
        Framework {
            name: "osc",
            what: "one-sided communication",
            params: vec![osc::SELECTION.about(), osc::CHECK.about()],
            components: vec![
                Component::new("am", &[helper::PROGRESS_THREAD.about()]),
                Component::new("direct", &[osc::XPMEM.about()]),
                Component::new("network", &[]),
            ],
        },
        Framework {
            name: "pml",
            what: "matching, eager and rendezvous protocols",
            params: vec![pml::select::SELECTION.about()],
            components: pml::select::BUILT_IN
                .iter()
                .map(|component| Component::new(component.name, component.params))
                .collect(),
        },
        Framework {
            name: "rte",
            what: "which rank this process is and how ranks find each other",
            params: vec![rte::SELECT.about()],
            components: rte::BUILT_IN
                .iter()
                .map(|component| Component::new(component.name, component.params))
                .collect(),
        },
        Framework {
            name: "threads",
            what: "threads that call MPI at the same time",
            params: vec![LANES.about()],
            components: Vec::new(),
        },
    ]
}
