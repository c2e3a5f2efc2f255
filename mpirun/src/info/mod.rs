//! `mpi-info`: listings of this installation, in the formats of `ompi_info`.

mod explain;
mod json;
mod pvars;

use crate::cli;
use crate::frameworks::{self, Component, Framework};
use clap::{CommandFactory as _, Parser};
use mpi_base::param::{About, Level, Params, Style, list};
use std::fmt::Write;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// List the frameworks, components, parameters and functions of this installation
#[derive(Debug, Default, Parser)]
#[command(name = "mpi-info", version)]
pub struct Options {
    /// One fact on a line, fields separated by colons
    #[arg(long, visible_alias = "parseable")]
    pub parsable: bool,

    /// List every function of the MPI standard and whether it works
    #[arg(long)]
    pub functions: bool,

    /// List the performance variables and the events of the tool interface (MPI_T)
    #[arg(long)]
    pub pvars: bool,

    /// List the parameters of a framework and a component ("all" for every one)
    #[arg(long, num_args = 1..=2, value_names = ["FRAMEWORK", "COMPONENT"])]
    pub param: Vec<String>,

    /// List the components of an operation with their algorithms: "coll barrier", or "btl tcp" for a component
    #[arg(long, num_args = 1..=2, value_names = ["FRAMEWORK", "WHAT"])]
    pub explain: Vec<String>,

    /// Everything as JSON
    #[arg(long, conflicts_with_all = ["parsable", "functions", "pvars", "param", "explain"])]
    pub json: bool,

    /// List all parameters
    #[arg(short, long)]
    pub all: bool,

    /// The manual page, for packagers
    #[arg(long, value_name = "WHAT", hide = true, value_parser = ["man"])]
    pub generate: Option<String>,

    /// Parameters up to this level, 1 (user) to 9 (developer) [default: 9]
    #[arg(long, value_parser = level, allow_hyphen_values = true)]
    pub level: Option<u8>,
}

/// Parses a value of `--level`.
fn level(text: &str) -> Result<u8, String> {
    let level = text.parse().ok();
    level
        .filter(|level| (1..=Level::ALL.0).contains(level))
        .ok_or_else(|| format!("a level from 1 (user) to {} (developer)", Level::ALL.0))
}

impl Options {
    fn style(&self) -> Style {
        match self.parsable {
            true => Style::Parsable,
            false => Style::Readable,
        }
    }
}

/// The reason why a listing failed.
#[derive(Debug, PartialEq, Eq)]
pub enum InfoError {
    /// `--param` or `--explain` names a framework that does not exist.
    NoFramework {
        /// The framework name as the user wrote it.
        name: String,
        /// The names of all frameworks.
        known: Vec<&'static str>,
    },
    /// `--param` names a component that the framework does not have.
    NoComponent {
        /// The framework that the user named.
        framework: String,
        /// The component name as the user wrote it.
        name: String,
        /// The components of the framework.
        known: Vec<String>,
    },
    /// `--explain` names neither an operation nor a component of its framework.
    NothingToExplain {
        /// The framework that the user named.
        framework: String,
        /// The name of the operation or component as the user wrote it.
        name: String,
        /// The operations and components of the framework that can be explained.
        known: Vec<String>,
    },
}

impl std::fmt::Display for InfoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InfoError::NoFramework { name, known } => {
                write!(
                    f,
                    "there is no framework \"{}\"; there are {}",
                    printable::name(name),
                    known.join(", ")
                )
            }
            InfoError::NoComponent {
                framework,
                name,
                known,
            } => {
                write!(
                    f,
                    "{framework} has no component \"{}\"; it has {}",
                    printable::name(name),
                    known.join(", ")
                )
            }
            InfoError::NothingToExplain {
                framework,
                name,
                known,
            } => {
                write!(
                    f,
                    "{framework} has no operation and no component \"{}\"; it has {}",
                    printable::name(name),
                    known.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for InfoError {}

/// Returns the complete output of `mpi-info`.
pub fn answer(options: &Options, params: &Params) -> Result<String, InfoError> {
    if options.generate.is_some() {
        return Ok(cli::help::manual(Options::command()));
    }
    if options.pvars {
        return Ok(pvars::list(options.style()));
    }
    if options.functions {
        return Ok(functions(options.style()));
    }
    if options.json {
        return Ok(json::whole(
            params,
            Level(options.level.unwrap_or(Level::ALL.0)),
        ));
    }
    if let Some(framework) = options.explain.first() {
        return explain::answer(framework, options.explain.get(1), params);
    }
    let mut out = String::new();
    for complaint in params.complaints() {
        line(&mut out, "Warning", &complaint.to_string());
    }
    if !options.param.is_empty() || options.all {
        out += &parameters(options, params)?;
    } else {
        out += &overview(options.style(), params);
    }
    Ok(out)
}

/// Appends a line with a label, right-aligned in 24 columns. Writing to a `String` cannot fail.
fn line(out: &mut String, label: &str, text: &str) {
    let _ = writeln!(out, "{label:>24}: {text}");
}

fn overview(style: Style, params: &Params) -> String {
    let functions = mpi_abi::functions();
    let done = functions
        .iter()
        .filter(|function| function.implemented)
        .count();
    let prefix = crate::prefix::prefix()
        .map_or_else(|| "unknown".into(), |prefix| prefix.display().to_string());
    let cores = mpi_base::cpu::Cores::of_this_process();
    let mut out = String::new();
    if style == Style::Parsable {
        let _ = writeln!(
            out,
            "package:Portcullis\nversion:{VERSION}\nmpi-api:5.0\nprefix:{prefix}"
        );
        let _ = writeln!(
            out,
            "functions:implemented:{done}\nfunctions:all:{}",
            functions.len()
        );
        let _ = writeln!(out, "cores:usable:{}", cores.usable);
        let (all, not_used) = frameworks::all_and_not_used(params);
        for framework in all {
            for component in &framework.components {
                let version = printable::name(&component.version);
                let name = format!("mca:{}:{}", framework.name, component.name);
                let _ = writeln!(out, "{name}:version:component:{version}");
                if let Some(file) = &component.file {
                    let _ = writeln!(out, "{name}:file:{}", printable::name(file));
                }
            }
        }
        for file in not_used {
            let _ = writeln!(out, "not-used:{}", printable::name(&file.to_string()));
        }
        return out;
    }
    line(&mut out, "Package", "Portcullis");
    line(&mut out, "Portcullis", VERSION);
    line(&mut out, "MPI API", "5.0 (standard ABI)");
    line(&mut out, "Prefix", &prefix);
    line(
        &mut out,
        "Functions",
        &format!("{done} of {} work (mpi-info --functions)", functions.len()),
    );
    let limit = match cores.limited_by_quota() {
        true => " (limited by the control group)",
        false => "",
    };
    line(&mut out, "Cores", &format!("{}{limit}", cores.usable));
    let (all, not_used) = frameworks::all_and_not_used(params);
    for framework in all {
        for component in &framework.components {
            let label = format!("MCA {}", framework.name);
            line(&mut out, &label, &described(component, framework.what));
        }
    }
    for file in not_used {
        let text = file.to_string();
        line(&mut out, "Not used", &printable::name(&text).to_string());
    }
    out
}

/// Returns a component's name and version, its plugin file, and its framework's purpose.
fn described(component: &Component, what: &str) -> String {
    let version = printable::name(&component.version);
    let file = component.file.as_ref();
    let origin = file.map_or_else(String::new, |file| {
        format!(" from {}", printable::name(file))
    });
    let name = &component.name;
    format!("{name} (Component v{version}{origin}; {what})")
}

fn parameters(options: &Options, params: &Params) -> Result<String, InfoError> {
    let wanted = |filter: Option<&String>, name: &str| {
        filter.is_none_or(|filter| filter == "all" || filter == name)
    };
    let (of_framework, of_component) = (options.param.first(), options.param.get(1));
    let all = frameworks::all(params);
    let chosen: Vec<&Framework> = all
        .iter()
        .filter(|framework| wanted(of_framework, framework.name))
        .collect();
    if let (true, Some(name)) = (chosen.is_empty(), of_framework) {
        let known = all.iter().map(|framework| framework.name).collect();
        return Err(InfoError::NoFramework {
            name: name.clone(),
            known,
        });
    }
    let level = Level(options.level.unwrap_or(Level::ALL.0));
    let mut out = String::new();
    for framework in chosen {
        check_component(framework, of_component)?;
        if wanted(of_component, "base") {
            list_all(&mut out, &framework.params, params, options.style(), level);
        }
        for component in framework
            .components
            .iter()
            .filter(|component| wanted(of_component, &component.name))
        {
            list_all(&mut out, &component.params, params, options.style(), level);
        }
    }
    Ok(out)
}

fn check_component(framework: &Framework, name: Option<&String>) -> Result<(), InfoError> {
    let Some(name) = name.filter(|name| *name != "all" && *name != "base") else {
        return Ok(());
    };
    let known = |component: &Component| component.name.clone();
    if framework
        .components
        .iter()
        .any(|component| component.name == *name)
    {
        return Ok(());
    }
    Err(InfoError::NoComponent {
        framework: framework.name.into(),
        name: name.clone(),
        known: framework.components.iter().map(known).collect(),
    })
}

fn list_all(
    out: &mut String,
    abouts: &[&'static About],
    params: &Params,
    style: Style,
    level: Level,
) {
    for about in abouts.iter().filter(|about| about.level <= level) {
        *out += &list(about, params, style);
    }
}

fn functions(style: Style) -> String {
    let mut out = String::new();
    for function in mpi_abi::functions() {
        let state = match function.implemented {
            true => "works",
            false => "not yet",
        };
        let _ = match style {
            Style::Parsable => writeln!(
                out,
                "function:{}:chapter:{}:since:{}:{}",
                function.name,
                function.chapter,
                function.since,
                if function.implemented {
                    "implemented"
                } else {
                    "unsupported"
                }
            ),
            Style::Readable => writeln!(out, "{:40} {state:8} {}", function.name, function.subject),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::param::Source;

    fn asked(args: &[&str], params: &Params) -> Result<String, InfoError> {
        let args = std::iter::once(&"mpi-info").chain(args);
        answer(&Options::try_parse_from(args).unwrap(), params)
    }

    #[test]
    fn every_parameter_has_a_name_of_its_own_that_begins_with_its_framework() {
        let mut names = Vec::new();
        for framework in frameworks::all(&Params::default()) {
            let of_components = framework
                .components
                .iter()
                .flat_map(|component| &component.params);
            for about in framework.params.iter().chain(of_components) {
                assert!(
                    about.full_name().starts_with(framework.name),
                    "{}",
                    about.full_name()
                );
                assert!(!about.help.is_empty());
                names.push(about.full_name());
            }
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_default_is_a_value_of_its_own_parameter() {
        let params = Params::default();
        assert_eq!(params.get(&crate::params::GRACE).unwrap().as_millis(), 200);
        let listing = asked(&["--all"], &params).unwrap();
        assert!(listing.contains("parameter \"btl\" (current value: \"\", data source: default"));
    }

    #[test]
    fn a_value_is_listed_with_its_source() {
        let mut params = Params::default();
        params.set("rte_pmi1_meet", "5s", Source::Environment);
        let listing = asked(&["--param", "rte", "pmi1", "--parsable"], &params).unwrap();
        assert!(
            listing.contains("mca:rte:pmi1:param:rte_pmi1_meet:value:5s\n"),
            "{listing}"
        );
        assert!(listing.contains("mca:rte:pmi1:param:rte_pmi1_meet:source:environment\n"));
        assert!(!listing.contains("mca:rte:base"));
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_known_ones() {
        let error = asked(&["--param", "btk"], &Params::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "there is no framework \"btk\"; there are accelerator, bml, btl, coll"
            ),
            "{error}"
        );
        let error = asked(&["--param", "rte", "pmi9"], &Params::default())
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "rte has no component \"pmi9\"; it has pmi1, pmix, singleton"
        );
    }

    #[test]
    fn an_operation_is_explained_by_components_and_algorithms() {
        let told = asked(&["--explain", "coll", "barrier"], &Params::default()).unwrap();
        insta::assert_snapshot!(told);
        let error = asked(&["--explain", "coll", "bariere"], &Params::default()).unwrap_err();
        let begin = "coll has no operation and no component \"bariere\"; it has ";
        assert!(error.to_string().starts_with(begin), "{error}");
    }

    #[test]
    fn programs_get_everything_as_json() {
        let mut params = Params::default();
        params.set("rte_pmi1_meet", "5s", Source::Environment);
        let json: serde_json::Value =
            serde_json::from_str(&asked(&["--json"], &params).unwrap()).unwrap();
        let named = |list: &serde_json::Value, name: &str| {
            let list = list.as_array().unwrap().iter();
            list.clone()
                .find(|each| each["name"] == name)
                .unwrap()
                .clone()
        };
        let pmi1 = named(&named(&json["frameworks"], "rte")["components"], "pmi1");
        let meet = named(&pmi1["parameters"], "rte_pmi1_meet");
        assert_eq!(
            (&meet["value"], &meet["source"]),
            (&"5s".into(), &"environment".into())
        );
        assert_eq!(
            named(&json["functions"], "MPI_Barrier")["implemented"],
            true
        );
    }

    #[test]
    fn all_functions_of_the_standard_are_listed() {
        let listing = asked(&["--functions"], &Params::default()).unwrap();
        assert_eq!(listing.lines().count(), mpi_abi::functions().len());
        assert!(listing.contains("MPI_Barrier "));
    }
}
