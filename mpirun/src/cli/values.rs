//! Values of single options: output, remote launch, fault tolerance, time limits and paths.

use super::CliError;
use super::choices::{FaultTolerance, Shown, TimeLimit};
use super::options::Options;
use crate::launch::limits::Limits;
use crate::launch::program::{Io, RemoteLaunch};
use crate::params::{FANOUT, GREETING, RSH_AGENT, SILENCE};
use mpi_base::param::Params;
use mpi_base::{environment, text};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Combines `--output` with the options that each set one property of the output.
pub fn io(options: &Options) -> Io {
    let mut io = Io {
        tag: options.tag_output,
        timestamp: options.timestamp_output,
        label: options.label,
        merge: options.merge_stderr_to_stdout,
        echo: true,
        unbuffered: options.stream_buffering == Some(0),
        stdin: options.stdin.unwrap_or_default(),
        folder: None,
    };
    if let Some(folder) = &options.output_filename {
        folder.apply(&mut io);
    }
    if let Some(output) = &options.output {
        output.apply(&mut io);
    }
    io
}

/// Combines `--display` with the options that each show one table.
pub fn shown(options: &Options) -> Shown {
    let shown = options.display.unwrap_or_default();
    Shown {
        map: shown.map || options.display_map,
        bindings: shown.bindings || options.report_bindings,
        allocation: shown.allocation || options.display_allocation,
    }
}

/// Returns the words of the command that reaches other hosts.
pub fn words(agent: &OsString) -> Vec<OsString> {
    words_of(&text::from_os(agent))
}

fn words_of(agent: &str) -> Vec<OsString> {
    agent.split_whitespace().map(text::to_os).collect()
}

pub fn remote(options: &Options, params: &Params) -> Result<RemoteLaunch, CliError> {
    let agent = match &options.launch_agent {
        Some(agent) => text::from_os(agent),
        None => params.get(&RSH_AGENT).map_err(CliError::Parameter)?,
    };
    let me = std::env::current_exe().unwrap_or_else(|_| "mpirun".into());
    Ok(RemoteLaunch {
        agent: words_of(&agent),
        mpirun: match &options.prefix {
            Some(prefix) => prefix.join("bin/mpirun"),
            None => me,
        },
        fanout: params.get(&FANOUT).map_err(CliError::Parameter)?.max(1),
        limits: Limits {
            greeting: params.get(&GREETING).map_err(CliError::Parameter)?,
            silence: params.get(&SILENCE).map_err(CliError::Parameter)?,
        },
    })
}

/// Returns whether the job survives the death of ranks; `None` if no option specifies it.
pub fn survival(options: &Options) -> Option<bool> {
    let survives = options.with_ft.map(|how| how != FaultTolerance::No);
    survives.or(options.enable_recovery.then_some(true))
}

/// Returns the time limit of the job, from the command line or the environment.
pub fn timeout(options: &Options) -> Result<Option<Duration>, CliError> {
    if let Some(TimeLimit(limit)) = options.timeout {
        return Ok(limit);
    }
    let Some(text) = environment::text("MPIEXEC_TIMEOUT") else {
        return Ok(None);
    };
    match TimeLimit::parse(&text) {
        Ok(TimeLimit(limit)) => Ok(limit),
        Err(_) => Err(CliError::Value {
            option: "--timeout",
            value: text,
            wanted: "a time such as 30, 90s or 5min",
        }),
    }
}

/// Checks that the folder of a report file exists; returns the file's absolute path.
/// The check precedes the job, since the file is written only at the job's end.
pub fn output(option: &'static str, file: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let Some(file) = file.map(absolute) else {
        return Ok(None);
    };
    match file.parent().is_none_or(Path::is_dir) {
        true => Ok(Some(file)),
        false => Err(CliError::NoFolder { option, file }),
    }
}

/// Makes a path absolute, since the supervisor's working directory may differ from the user's.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
