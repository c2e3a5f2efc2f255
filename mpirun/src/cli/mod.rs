//! The command line of `mpirun` and `mpiexec`: the forms that the MPI standard gives and the options that users' fingers know.
//!
//! `mpirun [options] program [args] [: [options] program [args]]...`
//!
//! Long options are taken with one dash or two (`-np`, `--np`, `-wdir`), as both peers do.
//! What is known and not there yet is refused in a sentence ([`not_yet`]) and never silently ignored.

mod dashes;
mod not_yet;
mod options;

use crate::launch::program::{App, Plan, clean_env, set_env};
use crate::pmi;
use clap::Parser;
use mpi_base::param::{Level, MARKER, PREFIX, Param, Params, Value};
use options::{AppOptions, Options, Section};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Between the polite signal and SIGKILL when a job is ended.
pub static GRACE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "grace",
    "200ms",
    Level::USER,
    "When a job is ended, its processes get a signal they can handle and this long after it SIGKILL.",
);

/// Name of the parameter that makes the library print what was selected and why; set by --explain.
const EXPLAIN: &str = "mpi_base_explain";

/// Why a command line was not understood.
#[derive(Debug)]
pub enum CliError {
    /// clap's own message, help and version included.
    Usage(clap::Error),
    NotYet {
        option: String,
        what: &'static str,
    },
    Host {
        host: String,
    },
    NoProgram {
        section: usize,
    },
    Parameter(mpi_base::param::ParamError),
    Timeout {
        value: String,
    },
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(error) => error.fmt(f),
            CliError::NotYet { option, what } => {
                write!(
                    f,
                    "{option} ({what}) is not there yet in this version of mpirun"
                )
            }
            CliError::Host { host } => write!(
                f,
                "ranks cannot be started on {host}: other hosts are not there yet in this version of mpirun, only localhost"
            ),
            CliError::NoProgram { section: 0 } => {
                write!(f, "no program was given; try: mpirun -n 4 ./program")
            }
            CliError::NoProgram { section } => {
                write!(
                    f,
                    "no program was given in part {} of the command line (parts are separated by \":\")",
                    section + 1
                )
            }
            CliError::Parameter(error) => error.fmt(f),
            CliError::Timeout { value } => {
                write!(
                    f,
                    "the time limit \"{value}\" is not a time such as 30, 90s or 5min"
                )
            }
        }
    }
}

impl std::error::Error for CliError {}

/// Reads a whole command line, the program's own name first.
pub fn plan(args: impl IntoIterator<Item = OsString>) -> Result<Plan, CliError> {
    let mut args = args.into_iter();
    let me = args.next().unwrap_or_else(|| "mpirun".into());
    let args: Vec<OsString> = args.collect();
    let mut options = Options::default();
    let mut apps = Vec::new();
    for (number, part) in args.split(|arg| arg == ":").enumerate() {
        let part = dashes::normalised(part)?;
        let line = std::iter::once(me.clone()).chain(part);
        let section = if number == 0 {
            let whole = Options::try_parse_from(line).map_err(CliError::Usage)?;
            options = whole;
            options.section.clone()
        } else {
            Section::try_parse_from(line).map_err(CliError::Usage)?
        };
        apps.push((number, section));
    }
    assemble(options, apps)
}

fn assemble(options: Options, sections: Vec<(usize, Section)>) -> Result<Plan, CliError> {
    let mut env = clean_env();
    let mut from_command_line = Vec::new();
    let mut apps = Vec::new();
    for (number, section) in sections {
        let Section { app, command } = section;
        check_hosts(&app)?;
        for pair in app.mca.chunks_exact(2) {
            let name = pair[0].to_string_lossy().into_owned();
            set_env(&mut env, format!("{PREFIX}{name}"), &pair[1]);
            from_command_line.push(name);
        }
        for export in &app.export {
            // `-x NAME` alone says that the rank gets it, which on one host it does anyway.
            if let Some((name, value)) = split_at_sign(export) {
                set_env(&mut env, name, value);
            }
        }
        for pair in app.genv.chunks_exact(2) {
            set_env(&mut env, &pair[0], &pair[1]);
        }
        let mut command = command.into_iter();
        let program = command
            .next()
            .ok_or(CliError::NoProgram { section: number })?;
        apps.push(App {
            procs: app.procs.unwrap_or(1) as usize,
            program,
            args: command.collect(),
            dir: app.wdir.clone(),
            env: app
                .env
                .chunks_exact(2)
                .map(|pair| (pair[0].clone(), pair[1].clone()))
                .collect(),
        });
    }
    if options.explain {
        set_env(&mut env, format!("{PREFIX}{EXPLAIN}"), "true");
        from_command_line.push(EXPLAIN.into());
    }
    if !from_command_line.is_empty() {
        set_env(&mut env, MARKER, from_command_line.join(","));
    }
    let params = Params::load(env.iter().cloned(), &crate::prefix::parameter_files());
    Ok(Plan {
        apps,
        tag_output: options.tag_output,
        timeout: timeout(&options)?,
        grace: params.get(&GRACE).map_err(CliError::Parameter)?,
        quiet: options.quiet,
        verbose: options.verbose,
        env,
    })
}

fn timeout(options: &Options) -> Result<Option<Duration>, CliError> {
    let value = match &options.timeout {
        Some(value) => value.clone(),
        None => match std::env::var("MPIEXEC_TIMEOUT") {
            Ok(value) if !value.is_empty() => value,
            _ => return Ok(None),
        },
    };
    match Duration::parse(&value) {
        // As elsewhere, 0 is no limit.
        Ok(limit) if limit.is_zero() => Ok(None),
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err(CliError::Timeout { value }),
    }
}

fn check_hosts(app: &AppOptions) -> Result<(), CliError> {
    let here = rustix::system::uname();
    let here = here.nodename().to_string_lossy();
    for host in app.host.iter().flat_map(|hosts| hosts.split(',')) {
        let name = host.split(':').next().unwrap_or(host);
        if !["localhost", "127.0.0.1", "::1", &here].contains(&name) {
            return Err(CliError::Host { host: host.into() });
        }
    }
    Ok(())
}

fn split_at_sign(pair: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((
        OsStr::from_bytes(&bytes[..at]),
        OsStr::from_bytes(&bytes[at + 1..]),
    ))
}

/// A program of an `MPI_Comm_spawn`, with the infos that the standard reserves for it.
pub fn spawned_app(app: pmi::App) -> App {
    let info = |key: &str| {
        app.info
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.clone())
    };
    let program = match info("path") {
        // The standard's "path" is where to look for the program.
        Some(places) if !app.program.as_bytes().contains(&b'/') => std::env::split_paths(&places)
            .map(|place| place.join(&app.program))
            .find(|path| path.is_file())
            .map_or(app.program.clone(), PathBuf::into_os_string),
        _ => app.program.clone(),
    };
    App {
        procs: app.procs,
        program,
        dir: info("wdir").map(PathBuf::from),
        args: app.args,
        env: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
