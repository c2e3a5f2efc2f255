//! Delegation of a job to Slurm: inside an allocation `mpirun` replaces itself by `srun`.
//!
//! mpirun does so if a rank must run on another host and all hosts belong to the allocation.
//! mpirun places the ranks and passes each rank's host to Slurm (`--distribution=arbitrary`).
//! Slurm serves PMI to the ranks, ends the job when a rank fails, and forwards signals.
//! The exit status of `srun` is that of `mpirun`.
//!
//! If `srun` is missing or lacks a requested option, mpirun reports it and starts daemons.

use super::link::quoted;
use super::program::{App, Plan, StdinTo};
use crate::foreign::{self, Libraries};
use crate::hosts::allocation;
use crate::hosts::map::MapError;
use crate::launch::binding::Unit;
use mpi_base::param::{Level, Param, ParamError, Params, Selection, SelectionError};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The parameter that selects the methods of reaching other hosts.
pub static SELECT: Param<Selection> = Param::selection(
    "plm",
    "",
    "How other hosts are reached: srun inside a Slurm allocation, else rsh, which is ssh or what takes its place.",
);

/// The parameter for the PMI version that Slurm serves to the ranks.
pub static MPI: Param<String> = Param::new(
    "plm",
    "srun",
    "mpi",
    "pmi2",
    Level::USER,
    "The --mpi of srun by which ranks find each other: pmi2, or pmix where Slurm has it.",
);

/// The reason why mpirun cannot decide which launcher starts the job.
#[derive(Debug)]
pub enum SrunError {
    /// A parameter that this decision depends on has an invalid value.
    Param(ParamError),
    /// The selection `plm` names a component other than `srun` and `rsh`.
    Selection(SelectionError),
    /// The ranks do not fit on the hosts.
    Map(MapError),
}

impl fmt::Display for SrunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SrunError::Param(error) => error.fmt(f),
            SrunError::Selection(error) => error.fmt(f),
            SrunError::Map(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SrunError {}

/// The launcher that starts the ranks.
#[derive(Debug)]
pub enum Launcher {
    /// This program starts the ranks.
    Ourselves,
    /// This program starts the ranks although the job is in an allocation; the text is the reason.
    OurselvesBecause(String),
    /// Slurm starts the ranks: this process must execute the command, see [`become_command`].
    Srun(Box<Command>),
}

/// Decides which launcher starts the ranks of a plan; `var` reads environment variables.
pub fn launcher(plan: &Plan, var: impl Fn(&str) -> Option<String>) -> Result<Launcher, SrunError> {
    let params = Params::load(plan.env.iter().cloned(), &crate::prefix::parameter_files());
    let selection = params.get(&SELECT).map_err(SrunError::Param)?;
    selection
        .check("plm", &["srun", "rsh"])
        .map_err(SrunError::Selection)?;
    let placed = plan.place(&plan.apps).map_err(SrunError::Map)?;
    let remote = placed.iter().flatten().any(|&host| !plan.hosts[host].here);
    if !remote || !selection.allows("srun") || !in_allocation(plan, &placed, &var) {
        return Ok(Launcher::Ourselves);
    }
    if let Some(what) = beyond_srun(plan) {
        return Ok(Launcher::OurselvesBecause(format!("srun has no {what}")));
    }
    let Some(srun) = find("srun", &plan.env) else {
        return Ok(Launcher::OurselvesBecause(
            "there is no srun in PATH".into(),
        ));
    };
    let mpi = params.get(&MPI).map_err(SrunError::Param)?;
    let inside_a_step = var("SLURM_STEP_ID").is_some();
    let mut command = Command::new(srun);
    command.args(arguments(plan, &placed, &mpi, inside_a_step));
    let mut env: Vec<_> = environment(plan).collect();
    let libraries = Libraries::of_this_installation();
    for app in &plan.apps {
        // srun starts all programs with one environment, and reports missing programs itself.
        if let Ok(program) = app.resolve(&plan.env, None) {
            foreign::serve(&program, 1, &libraries, &mut env);
        }
    }
    command.env_clear().envs(env);
    Ok(Launcher::Srun(Box::new(command)))
}

/// Returns true if all hosts of the ranks belong to the Slurm allocation of this process.
fn in_allocation(plan: &Plan, placed: &[Vec<usize>], var: impl Fn(&str) -> Option<String>) -> bool {
    // The parser of host options reports a malformed list.
    let Ok(Some(allocation)) = allocation::find(var) else {
        return false;
    };
    let set_aside = |host: usize| {
        let name = &plan.hosts[host].name;
        allocation.hosts.iter().any(|host| &host.name == name)
    };
    allocation.manager == allocation::SLURM && placed.iter().flatten().all(|&host| set_aside(host))
}

/// Returns the first requested option that srun does not support.
fn beyond_srun(plan: &Plan) -> Option<&'static str> {
    [
        (plan.io.folder.is_some(), "--output as mpirun lays it out"),
        (plan.io.timestamp, "--timestamp-output"),
        (plan.io.merge, "--merge-stderr-to-stdout"),
        (plan.display_map, "--display-map"),
        (plan.report_bindings, "--report-bindings"),
        (
            plan.apps.iter().any(|app| app.placements.is_some()),
            "--rankfile",
        ),
        (
            plan.timeout.is_some(),
            "--timeout that says which rank waits for which",
        ),
        (plan.hang_after.is_some(), "--hang-after"),
        (plan.checkpoints.is_some(), "--checkpoint-dir"),
        (
            plan.tolerates_deaths,
            "--with-ft that tells ranks of deaths",
        ),
        (
            plan.binding.each > 1 || plan.binding.over.is_some(),
            "--map-by of this kind",
        ),
        (
            matches!(plan.binding.to, Some(Unit::Cache(_))),
            "--bind-to a cache",
        ),
    ]
    .into_iter()
    .find_map(|(asked, what)| asked.then_some(what))
}

fn arguments(plan: &Plan, placed: &[Vec<usize>], mpi: &str, inside_a_step: bool) -> Vec<OsString> {
    let ranks: Vec<&str> = placed
        .iter()
        .flatten()
        .map(|&host| plan.hosts[host].name.as_str())
        .collect();
    let mut hosts = ranks.clone();
    hosts.sort_unstable();
    hosts.dedup();
    let mut line: Vec<OsString> = vec![
        format!("--mpi={mpi}").into(),
        format!("--ntasks={}", ranks.len()).into(),
        format!("--nodes={}", hosts.len()).into(),
        // The node list contains the host of each rank, in rank order.
        format!("--nodelist={}", ranks.join(",")).into(),
        "--distribution=arbitrary".into(),
        "--export=ALL".into(),
        "--kill-on-bad-exit=1".into(),
        "--quit-on-interrupt".into(),
        match plan.io.stdin {
            StdinTo::Rank(rank) => format!("--input={rank}"),
            StdinTo::All => "--input=all".into(),
            StdinTo::NoRank => "--input=none".into(),
        }
        .into(),
    ];
    if plan.oversubscribe {
        line.push("--overcommit".into());
    }
    if inside_a_step {
        // The Slurm step of this process uses the same processors, so both steps must overlap.
        line.push("--overlap".into());
    }
    if plan.io.tag || plan.io.label {
        line.push("--label".into());
    }
    if let Some(unit) = plan.binding.to {
        let unit = match unit {
            Unit::Thread => "threads",
            Unit::Core => "cores",
            // Binding to a cache never reaches this line: `beyond_srun` refuses it.
            Unit::Numa | Unit::Cache(_) => "ldoms",
            Unit::Package => "sockets",
        };
        line.push(format!("--cpu-bind={unit}").into());
    }
    match plan.apps.as_slice() {
        [app] if app.path.is_none() && app.env.is_empty() => {
            if let Some(dir) = &app.dir {
                line.push(concat(&["--chdir=".as_ref(), dir.as_os_str()]));
            }
            line.push(app.program.clone());
            line.extend(app.args.iter().cloned());
        }
        apps => line.extend(["sh".into(), "-c".into(), script(apps, placed)]),
    }
    line
}

/// Builds a shell script that starts each rank's program, since srun accepts only one command.
fn script(apps: &[App], placed: &[Vec<usize>]) -> OsString {
    let mut text = Vec::new();
    let mut end = 0;
    for (number, (app, ranks)) in apps.iter().zip(placed).enumerate() {
        end += ranks.len();
        text.extend(format!("if [ $SLURM_PROCID -lt {end} ]; then\n").into_bytes());
        if let Some(dir) = &app.dir {
            text.extend(b"cd ");
            text.extend(quoted(dir.as_os_str().as_bytes()));
            text.extend(b" || exit 127\n");
        }
        text.extend(format!("exec env PORTCULLIS_APPNUM={number}").into_bytes());
        if let Some(path) = &app.path {
            text.extend(b" PATH=");
            text.extend(quoted(path.as_bytes()));
            text.extend(b":\"$PATH\"");
        }
        for (name, value) in &app.env {
            text.push(b' ');
            text.extend(quoted(&concat(&[name, "=".as_ref(), value]).into_vec()));
        }
        for word in std::iter::once(&app.program).chain(&app.args) {
            text.push(b' ');
            text.extend(quoted(word.as_bytes()));
        }
        text.extend(b"\nfi\n");
    }
    OsString::from_vec(text)
}

fn concat(parts: &[&OsStr]) -> OsString {
    parts.iter().copied().collect()
}

/// Returns the job's environment without variables that would override srun's arguments.
fn environment(plan: &Plan) -> impl Iterator<Item = (OsString, OsString)> {
    const MISLEADING: [&str; 4] = [
        "SLURM_HOSTFILE",
        "SLURM_NTASKS_PER_NODE",
        "SLURM_DISTRIBUTION",
        "SLURM_EXPORT_ENV",
    ];
    let misleads = |name: &OsStr| {
        MISLEADING.iter().any(|known| name == OsStr::new(known))
            || name.as_bytes().starts_with(b"SLURM_CPU_BIND")
    };
    plan.env
        .iter()
        .filter(move |(name, _)| !misleads(name))
        .cloned()
}

/// Finds a program in the `PATH` of an environment.
fn find(name: &str, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let path = env.iter().find(|(variable, _)| variable == "PATH");
    std::env::split_paths(&path?.1)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Replaces this process by another launcher; returns only if exec fails, with the error.
pub fn become_command(mut command: Command, verbose: bool) -> io::Error {
    if verbose {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line: Vec<u8> = words
            .map(|word| quoted(word.as_bytes()))
            .collect::<Vec<_>>()
            .join(&b' ');
        printable::eprintln!("mpirun: {}", String::from_utf8_lossy(&line));
    }
    command.exec()
}

#[cfg(test)]
mod tests;
