//! The settings of checkpoints that are images of all processes, and what excludes them.

use super::CheckpointError;
use crate::launch::images::restored::Restart;
use crate::launch::images::{HOSTS, version};
use crate::launch::limits::Limits;
use crate::launch::program::{Images, Plan};
use crate::params::{GRACE, GREETING, SILENCE};
use mpi_base::param::{PREFIX, Params};
use mpi_core::crs::criu::{self, CriuError};
use mpi_core::crs::description::Description;
use mpi_core::crs::store::Found;
use mpi_core::crs::{SELECTION, self_};
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The number of checkpoints that are kept by default.
const KEEP: usize = 2;

/// Returns true if the parameter `crs` chooses images of processes: it allows `criu` and not `self`.
pub(super) fn is_chosen(params: &Params) -> Result<bool, CheckpointError> {
    let selection = params.get(&SELECTION).map_err(CheckpointError::Parameter)?;
    match (selection.allows(self_::NAME), selection.allows(criu::NAME)) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => Err(CheckpointError::NoComponent),
    }
}

/// Returns the settings. Fails if images of this job cannot be taken; then nothing was written.
pub(super) fn settings(
    plan: &Plan,
    params: &Params,
    (keep, job): (Option<usize>, &Description),
) -> Result<Images, CheckpointError> {
    let others = plan.hosts.len().saturating_sub(1);
    if others > HOSTS {
        let what = format!("{others} other hosts (at most {HOSTS})");
        return Err(CheckpointError::Images(CriuError::Unserved { what }));
    }
    if let Some(what) = unserved(plan) {
        return Err(CheckpointError::Images(CriuError::Unserved { what }));
    }
    images(params, keep, job)
}

/// Returns the settings for a program of CRIU that works, in a process that may use it.
fn images(
    params: &Params,
    keep: Option<usize>,
    job: &Description,
) -> Result<Images, CheckpointError> {
    let program = params.get(&criu::PROGRAM);
    let program: PathBuf = program.map_err(CheckpointError::Parameter)?;
    let version = version(&program).map_err(CheckpointError::Images)?;
    let mine = capabilities(None).map(|mine| mine.effective);
    if !mine.is_ok_and(|mine| mine.contains(CapabilitySet::SYS_ADMIN)) {
        return Err(CheckpointError::Images(CriuError::NoPrivilege));
    }
    Ok(Images {
        program,
        version,
        keep: keep.unwrap_or(KEEP),
        job: job.clone(),
        limit: params
            .get(&criu::LIMIT)
            .map_err(CheckpointError::Parameter)?,
    })
}

/// Returns what the job uses that images cannot contain.
fn unserved(plan: &Plan) -> Option<String> {
    if plan.under.is_some() {
        return Some("a debugger (--gdb or --rr)".into());
    }
    let is_valgrind = |program: &OsStr| Path::new(program).file_name() == Some("valgrind".as_ref());
    if plan.apps.iter().any(|app| is_valgrind(&app.program)) {
        return Some("valgrind".into());
    }
    let port = format!("{PREFIX}coll_hwbarr_port");
    let port = plan
        .env
        .iter()
        .find(|(name, _)| name.as_os_str() == port.as_str());
    let outside = port.filter(|(_, port)| !port.is_empty() && port != "sim");
    outside.map(|(_, port)| format!("the hardware barrier's port {}", printable::name(port)))
}

/// What a restart of images takes from the command line.
pub struct Unasked {
    /// The environment, with the parameters of the command line.
    pub env: Vec<(OsString, OsString)>,
    pub keep: Option<usize>,
    /// The command that reaches other hosts, if it is not that of the job.
    pub agent: Vec<OsString>,
    pub is_quiet: bool,
    pub truncates: bool,
    /// The number of restarts after deaths of ranks.
    pub restarts: u32,
}

/// Returns the restart from images; `option` is one that was given and that the images contain.
pub fn restart_of_images(
    found: Found,
    option: Option<&'static str>,
    unasked: Unasked,
) -> Result<Restart, CheckpointError> {
    if let Some(option) = option {
        let set = found.folder.display().to_string();
        return Err(CheckpointError::Contained { set, option });
    }
    let params = Params::load(unasked.env, &crate::prefix::parameter_files());
    let images = images(&params, unasked.keep, &found.manifest.job)?;
    let limits = Limits {
        greeting: params.get(&GREETING).map_err(CheckpointError::Parameter)?,
        silence: params.get(&SILENCE).map_err(CheckpointError::Parameter)?,
    };
    let dir = found
        .folder
        .parent()
        .map_or_else(PathBuf::new, Path::to_owned);
    Ok(Restart {
        found,
        images,
        dir,
        agent: unasked.agent,
        limits,
        grace: params.get(&GRACE).map_err(CheckpointError::Parameter)?,
        is_quiet: unasked.is_quiet,
        truncates: unasked.truncates,
        restarts: unasked.restarts,
    })
}
