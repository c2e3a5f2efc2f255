//! Options that are a value each: input and output, how other hosts are reached, what is survived, times and paths.

use super::CliError;
use super::options::Options;
use crate::launch::limits::Limits;
use crate::launch::program::{Far, Io, StdinTo};
use crate::params::{FANOUT, GREETING, RSH_AGENT, SILENCE};
use mpi_base::param::{Params, Value};
use mpi_base::{environment, text};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn io(options: &Options) -> Result<Io, CliError> {
    let (folder, echo) = match &options.output {
        None => (None, true),
        Some(text) => {
            let text = text.strip_prefix("dir=").unwrap_or(text);
            match text.strip_suffix(":nocopy") {
                Some(folder) => (Some(text::to_path(folder)), false),
                None => (Some(text::to_path(text)), true),
            }
        }
    };
    let stdin = match options.stdin.as_deref() {
        None => StdinTo::Rank(0),
        Some("all") => StdinTo::All,
        Some("none") => StdinTo::NoRank,
        Some(text) => StdinTo::Rank(text.parse().map_err(|_| CliError::Value {
            option: "--stdin",
            value: text.into(),
            wanted: "a rank's number, all or none",
        })?),
    };
    Ok(Io {
        tag: options.tag_output,
        timestamp: options.timestamp_output,
        label: options.label,
        merge: options.merge_stderr_to_stdout,
        folder: folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder)),
        echo,
        unbuffered: options.stream_buffering == Some(0),
        stdin,
    })
}

pub fn far(options: &Options, params: &Params) -> Result<Far, CliError> {
    let agent = match &options.launch_agent {
        Some(agent) => text::from_os(agent),
        None => params.get(&RSH_AGENT).map_err(CliError::Parameter)?,
    };
    let me = std::env::current_exe().unwrap_or_else(|_| "mpirun".into());
    Ok(Far {
        agent: agent.split_whitespace().map(text::to_os).collect(),
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

/// Whether the job is to survive deaths; `None` if the command line does not say it by an option of its own.
pub fn survival(options: &Options) -> Option<bool> {
    let word = options.with_ft.as_deref();
    word.map(|word| word != "no")
        .or(options.enable_recovery.then_some(true))
}

pub fn timeout(options: &Options) -> Result<Option<Duration>, CliError> {
    let from_env = environment::text("MPIEXEC_TIMEOUT");
    time(
        "--timeout",
        options.timeout.as_deref().or(from_env.as_deref()),
    )
}

pub fn time(option: &'static str, value: Option<&str>) -> Result<Option<Duration>, CliError> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    match Duration::parse(value) {
        // As elsewhere, 0 is no limit.
        Ok(limit) => Ok(Some(limit).filter(|limit| !limit.is_zero())),
        Err(_) => Err(CliError::Value {
            option,
            value: value.into(),
            wanted: "a time such as 30, 90s or 5min",
        }),
    }
}

/// A file that is written when the job has ended. Whether its folder is there is asked now: a job that has run for hours is no time to find out.
pub fn output(option: &'static str, file: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let Some(file) = file.map(absolute) else {
        return Ok(None);
    };
    match file.parent().is_none_or(Path::is_dir) {
        true => Ok(Some(file)),
        false => Err(CliError::NoFolder { option, file }),
    }
}

/// Seen from where the user is, also when the supervisor is elsewhere.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
