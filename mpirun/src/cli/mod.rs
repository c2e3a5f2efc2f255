//! The command line of `mpirun` and `mpiexec`: the forms that the MPI standard gives and the options that users' fingers know.
//!
//! `mpirun [options] program [args] [: [options] program [args]]...`
//!
//! Long options are taken with one dash or two (`-np`, `--np`, `-wdir`), as both peers do.
//! Spellings of the peers are taken as well (`translated`).
//! What is known and not there yet is refused in a sentence (`not_yet`) and never silently ignored.
//!
//! `options` is the definition; `dashes` reads it for one dash, `usage` says in a sentence what clap refuses, `help` makes screens and manual page of it, `completion` what shells complete,
//! `configfile` reads parts from a file, this module puts the parts together, and `assemble` makes a [`Plan`] of them
//! with what `placement`, `values` and `witness` read from single options.
//! `settings` says what is wrong with what is set.

mod assemble;
mod completion;
mod configfile;
mod dashes;
mod environment;
mod error;
mod help;
mod not_yet;
mod numbers;
mod options;
mod placement;
mod settings;
mod soft;
mod topics;
mod translated;
pub mod usage;
mod values;
mod witness;

pub use assemble::{explain_variable, spawned_app};
pub use error::CliError;
pub use settings::{check_values, unknown_params};

use crate::launch::program::Plan;
use assemble::assemble;
use clap::Parser;
use dashes::Place;
use options::{Options, Section};
use std::ffi::OsString;
use std::path::Path;

/// What a command line asks for.
#[derive(Debug)]
pub enum Request {
    /// To run these programs; the plan is complete, its hosts found and its options checked against each other.
    Job(Box<Plan>),
    /// To serve a process that runs already, as rank 0 of a job of this name; the plan is for what it spawns.
    Adoption {
        /// How what it spawns is run.
        plan: Box<Plan>,
        /// What it calls its job.
        job: String,
    },
    /// To serve a launcher elsewhere.
    Daemon,
}

/// Reads a whole command line, the program's own name first.
pub fn request(args: impl IntoIterator<Item = OsString>) -> Result<Request, CliError> {
    let mut args = args.into_iter();
    let me = args.next().unwrap_or_else(|| "mpirun".into());
    let args: Vec<OsString> = args.collect();
    let mut parts: Vec<Vec<OsString>> = args.split(|arg| arg == ":").map(<[_]>::to_vec).collect();
    let first = parts.remove(0);
    let (mut options, mut sections) = (parse::<Options>(&me, &first, Place::First)?, Vec::new());
    if let Some(text) = answered(&me, &options)? {
        return Err(CliError::Answer(text));
    }
    if options.daemon {
        return Ok(Request::Daemon);
    }
    let files = std::mem::take(&mut options.configfile);
    for file in &files {
        parts.extend(configfile::read(file).map_err(CliError::Config)?);
    }
    let only_files = options.section.command.is_empty() && !files.is_empty();
    if only_files && options.section.app.procs.is_none() {
        // Only options of the whole job stand before a file; its lines are the programs.
        let job = options.section.app.clone();
        for part in parts {
            let mut section = parse::<Section>(&me, &part, Place::Later)?;
            section.app.inherit(&job);
            sections.push(section);
        }
    } else {
        sections.push(options.section.clone());
        for part in parts {
            sections.push(parse::<Section>(&me, &part, Place::Later)?);
        }
    }
    let plan = Box::new(assemble(&options, sections)?);
    Ok(match options.adopt {
        Some(job) => Request::Adoption { plan, job },
        None => Request::Job(plan),
    })
}

fn parse<T: Parser>(me: &OsString, part: &[OsString], place: Place) -> Result<T, CliError> {
    let line = std::iter::once(me.clone()).chain(dashes::normalised(part, place)?);
    T::try_parse_from(line).map_err(CliError::Usage)
}

/// Help and generated files, which are asked for instead of a job.
fn answered(me: &OsString, options: &Options) -> Result<Option<String>, CliError> {
    if let Some(topic) = &options.help {
        // `--help hosts`, where the word has been taken for the program.
        let word = options.section.command.first();
        let word = word.map(|word| word.to_string_lossy().into_owned());
        let name = Some(topic.clone())
            .filter(|topic| !topic.is_empty())
            .or(word);
        return match name {
            None => Ok(Some(help::screen())),
            Some(name) => help::about(&name).map(Some).ok_or(CliError::Topic { name }),
        };
    }
    if options.version {
        return Ok(Some(format!(
            "mpirun (Portcullis) {}\n",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let Some(what) = &options.generate else {
        return Ok(None);
    };
    // mpirun, or mpiexec under its other name.
    let name = Path::new(me).file_name().unwrap_or(me).to_string_lossy();
    help::generate(what, &name, help::whole())
        .map(|bytes| Some(String::from_utf8_lossy(&bytes).into_owned()))
        .ok_or_else(|| CliError::Value {
            option: "--generate",
            value: what.clone(),
            wanted: "man, bash, zsh, fish, elvish or powershell",
        })
}

#[cfg(test)]
mod tests;
