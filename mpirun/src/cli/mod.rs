//! Command line of `mpirun` and `mpiexec`: MPI's standard forms, and options of Open MPI and MPICH.
//!
//! `mpirun [options] program [args] [: [options] program [args]]...`
//!
//! Long options take one or two dashes (`-np`, `--np`, `-wdir`), as in Open MPI and MPICH.
//! Spellings of both launchers are accepted as well (`translated`).
//! Known but unsupported options are errors with a message (`refused`); none is silently ignored.
//!
//! `options` defines the options, `choices` and `numbers` the types of their values.
//! `dashes` normalises single dashes, and `usage` formulates clap's errors.
//! `help` generates screens and the manual page, `completion` the shell completions.
//! `configfile` reads the sections of a command line from a file.
//! `assemble` builds a [`Plan`] from the sections. `placement`, `values` and `observation` derive
//! values from single options. `settings` reports errors in parameters.

mod assemble;
mod bind_to;
mod choices;
mod completion;
pub(crate) mod configfile;
mod dashes;
mod environment;
mod error;
pub(crate) mod help;
mod map_by;
mod numbers;
mod observation;
mod options;
mod output_to;
mod placement;
mod refused;
mod settings;
mod soft;
mod topics;
mod translated;
pub mod usage;
mod value_error;
mod values;

pub use error::CliError;
pub use settings::{check_values, unknown_params};

use crate::checkpoint::{self, CheckpointError};
use crate::launch::again;
use crate::launch::images::restored::Restart;
use crate::launch::program::Plan;
use crate::rank_environment::{clean_env, set_env};
use assemble::assemble;
use clap::Parser;
use dashes::OptionPosition;
use mpi_base::param::PREFIX;
use mpi_core::crs::criu;
use mpi_core::crs::description::Program;
use mpi_core::crs::store::Found;
use options::{Options, Section};
use std::ffi::OsString;
use std::path::Path;

/// The action that a command line requests.
#[derive(Debug)]
pub enum Request {
    /// Run the programs of this plan, which is complete: hosts are known and options are validated.
    Job(Box<Plan>),
    /// Restart a job from images of its processes.
    Restart(Box<Restart>),
    /// Serve a running process, a singleton that started this launcher, as rank 0 of a job.
    Adoption {
        /// The plan for the jobs that the process spawns.
        plan: Box<Plan>,
        /// The job's name, which the process has chosen.
        job: String,
    },
    /// Serve the supervisor of a launcher on another host.
    Daemon,
    /// The same, for a launcher that takes images of processes.
    DaemonWithImages,
}

/// Parses a whole command line; the first argument is the name of this program.
pub fn request(args: impl IntoIterator<Item = OsString>) -> Result<Request, CliError> {
    let mut args = args.into_iter();
    let me = args.next().unwrap_or_else(|| "mpirun".into());
    let args: Vec<OsString> = args.collect();
    let mut parts: Vec<Vec<OsString>> = args.split(|arg| arg == ":").map(<[_]>::to_vec).collect();
    let first = parts.remove(0);
    let (mut options, mut sections) = (
        parse::<Options>(&me, &first, OptionPosition::First)?,
        Vec::new(),
    );
    if let Some(text) = answered(&me, &options)? {
        return Err(CliError::Answer(text));
    }
    if options.daemon {
        return Ok(Request::Daemon);
    }
    if options.daemon_with_images {
        return Ok(Request::DaemonWithImages);
    }
    let files = std::mem::take(&mut options.configfile);
    for file in &files {
        parts.extend(configfile::read(file).map_err(CliError::Config)?);
    }
    let only_files = options.section.command.is_empty() && !files.is_empty();
    if only_files && options.section.app.procs.is_none() {
        // Only options of the whole job precede a configuration file, whose lines are programs.
        let job = options.section.app.clone();
        for part in parts {
            let mut section = parse::<Section>(&me, &part, OptionPosition::Later)?;
            section.app.inherit(&job);
            sections.push(section);
        }
    } else {
        sections.push(options.section.clone());
        for part in parts {
            sections.push(parse::<Section>(&me, &part, OptionPosition::Later)?);
        }
    }
    if let Some(restarted) = options.restarted {
        let given = options.restart.as_deref().map(checkpoint::folder_of);
        let dir = options.checkpoint_dir.clone().or(given);
        // The newest checkpoint of this job; without one, that from which the user has restarted the job.
        if let Some(dir) = dir.filter(|dir| again::newest(dir) > restarted.before) {
            options.restart = Some(dir);
        }
    }
    let origin = options.restart.as_deref().map(checkpoint::origin);
    let origin = origin.transpose().map_err(CliError::Checkpoint)?;
    let origin = match origin {
        Some(found) if found.manifest.component == criu::NAME => {
            return restart(&options, &sections, found);
        }
        origin => origin,
    };
    if let Some(found) = &origin {
        sections = programs_of(found, sections)?;
    }
    let plan = Box::new(assemble(&options, sections, origin)?);
    Ok(match options.adopt {
        Some(job) => Request::Adoption { plan, job },
        None => Request::Job(plan),
    })
}

/// Returns the number of times that mpirun may still restart the job.
fn restarts_left(options: &Options) -> u32 {
    let (all, done) = (options.restart_on_death, options.restarted);
    let done = done.map_or(0, |restarted| restarted.count);
    all.unwrap_or(0).saturating_sub(done)
}

/// Returns the request to restart a job from images of its processes.
fn restart(options: &Options, sections: &[Section], found: Found) -> Result<Request, CliError> {
    let app = sections.first().map(|section| &section.app);
    let given = [
        (
            sections.iter().any(|section| !section.command.is_empty()),
            "program",
        ),
        (app.is_some_and(|app| app.procs.is_some()), "-n"),
        (app.is_some_and(|app| !app.host.is_empty()), "--host"),
        (
            app.is_some_and(|app| !app.hostfile.is_empty()),
            "--hostfile",
        ),
        (options.checkpoint_dir.is_some(), "--checkpoint-dir"),
        (options.checkpoint_every.is_some(), "--checkpoint-every"),
        (options.checkpoint_signal.is_some(), "--checkpoint-signal"),
    ];
    let mut env = clean_env();
    for pair in app.iter().flat_map(|app| app.mca.chunks_exact(2)) {
        let name = format!("{PREFIX}{}", pair[0].to_string_lossy());
        set_env(&mut env, name, &pair[1]);
    }
    let unasked = checkpoint::Unasked {
        env,
        keep: options.checkpoint_keep,
        agent: options
            .launch_agent
            .iter()
            .flat_map(values::words)
            .collect(),
        is_quiet: options.quiet,
        truncates: options.checkpoint_truncate || options.restarted.is_some(),
        restarts: restarts_left(options),
    };
    let option = given
        .into_iter()
        .find_map(|(is, option)| is.then_some(option));
    // The options of a job that mpirun itself restarts are those of the first start.
    let option = option.filter(|_| options.restarted.is_none());
    let restart = checkpoint::restart_of_images(found, option, unasked);
    let restart = restart.map_err(CliError::Checkpoint)?;
    Ok(Request::Restart(Box::new(restart)))
}

/// Returns the programs to run on a restart from a checkpoint.
/// If the command line names no program, its options apply to the checkpoint's programs.
/// A single program without `-n` gets the checkpoint's number of ranks.
fn programs_of(found: &Found, mut sections: Vec<Section>) -> Result<Vec<Section>, CliError> {
    let (then, programs) = (found.manifest.ranks(), &found.manifest.job.programs);
    let [Section { app, command }] = sections.as_mut_slice() else {
        return Ok(sections);
    };
    if !command.is_empty() {
        app.procs = app.procs.or(Some(then));
        return Ok(sections);
    }
    if let Some(now) = app.procs.filter(|now| *now != then) {
        let set = found.folder.display().to_string();
        let error = CheckpointError::Ranks { set, then, now };
        return Err(CliError::Checkpoint(error));
    }
    let section = |program: &Program| {
        let mut app = app.clone();
        app.procs = Some(program.procs);
        app.wdir = app.wdir.or_else(|| program.dir.clone());
        let command = std::iter::once(program.program.clone());
        let command = command.chain(program.args.iter().cloned()).collect();
        Section { app, command }
    };
    Ok(programs.iter().map(section).collect())
}

fn parse<T: Parser>(
    me: &OsString,
    part: &[OsString],
    position: OptionPosition,
) -> Result<T, CliError> {
    let line = std::iter::once(me.clone()).chain(dashes::normalised(part, position)?);
    T::try_parse_from(line).map_err(CliError::Usage)
}

/// Returns help or a generated file, which is printed instead of running a job.
fn answered(me: &OsString, options: &Options) -> Result<Option<String>, CliError> {
    if let Some(topic) = &options.help {
        // In `--help hosts`, clap parses the topic as the program.
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
    let Some(what) = options.generate else {
        return Ok(None);
    };
    // The generated file is for `mpirun` or for its other name, `mpiexec`.
    let name = Path::new(me).file_name().unwrap_or(me).to_string_lossy();
    Ok(Some(help::generate(what, &name, help::whole())))
}

#[cfg(test)]
mod tests;
