//! Command-line options for checkpoints: folder, interval, and the checkpoint to restart from.
//!
//! The store of checkpoints and the protocol with the ranks are in [`mpi_core::crs`].
//! The supervisor's code for checkpoints is in `launch/supervisor/checkpoints.rs`.

mod images;

pub use images::{Unasked, restart_of_images};

use crate::launch::images::FANOUT;
use crate::launch::program::{App, Checkpointing, Plan};
use crate::launch::sys::Signal;
use crate::rank_environment::set_env;
use mpi_base::param::{PREFIX, ParamError, Params};
use mpi_core::crs::criu::CriuError;
use mpi_core::crs::description::{Description, Program, fingerprint};
use mpi_core::crs::self_::{DIR, JOB, KEEP, RESTART};
use mpi_core::crs::store::{Found, Store, StoreError};
use printable::name;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The values of the `--checkpoint-*` and `--restart` options.
#[derive(Debug, Default)]
pub struct Wanted {
    pub dir: Option<PathBuf>,
    pub every: Option<Duration>,
    pub signal: Option<Signal>,
    pub keep: Option<usize>,
    /// The number of restarts after deaths of ranks (`--restart-on-death`).
    pub restarts: u32,
    /// The checkpoint that the job restarts from (`--restart`).
    pub origin: Option<Found>,
}

/// The reason why a job cannot take checkpoints, or cannot restart from one.
#[derive(Debug)]
pub enum CheckpointError {
    Store(StoreError),
    /// The file of a program cannot be read.
    Program {
        program: String,
        error: io::Error,
    },
    /// An option that requires `--checkpoint-dir` was given without a folder.
    NoFolder {
        option: &'static str,
    },
    /// `option` cannot be combined with checkpoints; `why` is the reason.
    Excluded {
        option: &'static str,
        why: &'static str,
    },
    /// A parameter cannot be read.
    Parameter(ParamError),
    /// Checkpoints of processes cannot be taken.
    Images(CriuError),
    /// The parameter `crs` excludes all components.
    NoComponent,
    /// An option was given with the restart of process images, which contain the job's options.
    Contained {
        set: String,
        option: &'static str,
    },
    /// The description of the programs exceeds `LONGEST` bytes, the limit of one variable.
    TooLong {
        bytes: usize,
    },
    /// `-n` differs from the number of ranks in the checkpoint.
    Ranks {
        set: String,
        then: u32,
        now: u32,
    },
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Store(error) => error.fmt(f),
            CheckpointError::Program { program, error } => write!(
                f,
                "the file of the program {} cannot be read, which checkpoints need to recognise it: {error}",
                name(program)
            ),
            CheckpointError::NoFolder { option } => write!(
                f,
                "{option} needs the folder that checkpoints are written to: --checkpoint-dir DIR"
            ),
            CheckpointError::Excluded { option, why } => {
                write!(f, "{option} and checkpoints exclude each other: {why}")
            }
            CheckpointError::Parameter(error) => error.fmt(f),
            CheckpointError::Images(error) => error.fmt(f),
            CheckpointError::NoComponent => f.write_str(
                "--mca crs excludes both self and criu, and checkpoints need one of them",
            ),
            CheckpointError::Contained { set, option } => write!(
                f,
                "the checkpoint {} contains the processes of the job with all options, so its restart takes no {option}",
                name(set)
            ),
            CheckpointError::TooLong { bytes } => write!(
                f,
                "the arguments of the programs are {bytes} bytes long, and checkpoints keep at most {LONGEST}; pass them in a file"
            ),
            CheckpointError::Ranks { set, then, now } => write!(
                f,
                "the checkpoint {} is of {then} ranks, and -n asks for {now}; leave -n away, and choose any number of hosts",
                name(set)
            ),
        }
    }
}

impl std::error::Error for CheckpointError {}

/// The maximum length of the description in bytes, which must fit into one environment variable.
const LONGEST: usize = 100_000;

/// Finds the checkpoint that `--restart` names.
/// `DIR` means the newest complete checkpoint in DIR, and `DIR@N` means checkpoint N.
pub fn origin(restart: &Path) -> Result<Found, CheckpointError> {
    let found = match numbered(restart) {
        Some((dir, number)) => Store::new(&absolute(&dir)).numbered(number),
        None => Store::new(&absolute(restart)).newest(),
    };
    found.map_err(CheckpointError::Store)
}

/// Returns the folder of checkpoints that `--restart` names.
pub fn folder_of(restart: &Path) -> PathBuf {
    numbered(restart).map_or_else(|| restart.to_owned(), |(dir, _)| dir)
}

/// Reads `DIR@N`.
fn numbered(restart: &Path) -> Option<(PathBuf, u64)> {
    let bytes = restart.as_os_str().as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'@')?;
    let number = std::str::from_utf8(&bytes[at + 1..]).ok()?.parse().ok()?;
    let dir = std::ffi::OsStr::from_bytes(&bytes[..at]);
    (!restart.is_dir()).then(|| (PathBuf::from(dir), number))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Adds checkpointing to a plan; `ranks[i]` is the number of ranks of program `i`.
pub fn plan(plan: &mut Plan, wanted: Wanted, ranks: &[usize]) -> Result<(), CheckpointError> {
    let given = wanted
        .origin
        .as_ref()
        .and_then(|found| found.folder.parent());
    let Some(dir) = wanted.dir.or_else(|| given.map(Path::to_owned)) else {
        let options = [
            (wanted.every.is_some(), "--checkpoint-every"),
            (wanted.signal.is_some(), "--checkpoint-signal"),
            (wanted.keep.is_some(), "--checkpoint-keep"),
            (wanted.restarts > 0, "--restart-on-death"),
        ];
        return match options.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(CheckpointError::NoFolder { option }),
            None => Ok(()),
        };
    };
    if crate::recording::is_asked_for(&plan.env) {
        let why = "a recording has no place for a restart; run the job without one of them";
        let option = "--record or --replay";
        return Err(CheckpointError::Excluded { option, why });
    }
    if plan
        .env
        .iter()
        .any(|(variable, _)| variable == crate::foreign::on::ON)
    {
        let why = "the other MPI library does not know them";
        let option = "--on";
        return Err(CheckpointError::Excluded { option, why });
    }
    let job = describe(plan, ranks)?;
    let params = Params::load(plan.env.iter().cloned(), &crate::prefix::parameter_files());
    let images = match images::is_chosen(&params)? {
        true => Some(images::settings(plan, &params, (wanted.keep, &job))?),
        false => None,
    };
    if images.is_some() {
        // The guard of a daemon serves the front end, so mpirun reaches each host itself.
        plan.remote.fanout = FANOUT;
    }
    if images.is_some() && wanted.origin.is_some() {
        return Err(CheckpointError::Excluded {
            option: "--mca crs criu",
            why: "the checkpoint of --restart was written by the ranks themselves (crs self)",
        });
    }
    let mut notes = Vec::new();
    let mut set = |name: String, value: std::ffi::OsString| {
        set_env(&mut plan.env, format!("{PREFIX}{name}"), value);
    };
    if let Some(found) = &wanted.origin {
        found.fits(&job).map_err(CheckpointError::Store)?;
        notes = notes_of(found);
        set(RESTART.about().full_name(), found.folder.clone().into());
    }
    Store::new(&dir)
        .admit(&job)
        .map_err(CheckpointError::Store)?;
    if images.is_some() {
        plan.checkpoints = Some(Checkpointing {
            dir,
            every: wanted.every,
            signal: wanted.signal,
            restarts: wanted.restarts,
            has_origin: wanted.origin.is_some(),
            notes,
            images,
        });
        return Ok(());
    }
    let text = job.write();
    if text.len() > LONGEST {
        return Err(CheckpointError::TooLong { bytes: text.len() });
    }
    set(JOB.about().full_name(), text.into());
    set(DIR.about().full_name(), dir.clone().into());
    if let Some(keep) = wanted.keep {
        set(KEEP.about().full_name(), keep.to_string().into());
    }
    plan.checkpoints = Some(Checkpointing {
        dir,
        every: wanted.every,
        signal: wanted.signal,
        restarts: wanted.restarts,
        has_origin: wanted.origin.is_some(),
        notes,
        images: None,
    });
    Ok(())
}

/// Returns messages that name the restart checkpoint and each damaged, skipped checkpoint.
fn notes_of(found: &Found) -> Vec<String> {
    let skipped = found.skipped.iter();
    let skipped =
        skipped.map(|(set, damage)| format!("the checkpoint {set} is passed over: {damage}"));
    let manifest = &found.manifest;
    let begins = format!(
        "the job begins from the checkpoint {} of {} ranks at point {}",
        name(&found.folder),
        manifest.ranks(),
        manifest.point
    );
    skipped.chain([begins]).collect()
}

/// Describes the programs of a plan, for the manifest of the job's checkpoints.
fn describe(plan: &Plan, ranks: &[usize]) -> Result<Description, CheckpointError> {
    let programs = plan.apps.iter().zip(ranks).map(|(app, ranks)| {
        Ok(Program {
            procs: u32::try_from(*ranks).unwrap_or(u32::MAX),
            fingerprint: print_of(plan, app)?,
            dir: app.dir.clone(),
            program: app.program.clone(),
            args: app.args.clone(),
        })
    });
    let programs = programs.collect::<Result<Vec<_>, CheckpointError>>()?;
    Ok(Description { programs })
}

/// Returns the fingerprint of a program's file, working directory and arguments.
/// A program that is not on this host has the fingerprint "elsewhere"; only its name is compared.
fn print_of(plan: &Plan, app: &App) -> Result<String, CheckpointError> {
    let Ok(file) = app.resolve(&plan.env, None) else {
        return Ok("elsewhere".into());
    };
    let here = app.dir_from(None).unwrap_or_else(|| ".".into());
    fingerprint(&file, &here, &app.args).map_err(|error| CheckpointError::Program {
        program: file.display().to_string(),
        error,
    })
}

/// Parses a signal name, with or without `SIG`.
pub fn signal(text: &str) -> Result<Signal, String> {
    match text.strip_prefix("SIG").unwrap_or(text) {
        "USR1" => Ok(libc::SIGUSR1),
        "USR2" => Ok(libc::SIGUSR2),
        "HUP" => Ok(libc::SIGHUP),
        _ => Err("USR1, USR2 or HUP".into()),
    }
}
