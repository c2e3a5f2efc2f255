//! Delegation of a job to Open MPI's launcher, by which `mpirun --on openmpi` replaces itself.
//!
//! Open MPI's library finds the other ranks only through its own launcher.
//!
//! MPICH and its derivatives speak PMI-1, so this launcher starts their ranks itself.
//! Options that only this launcher supports are errors.
//!
//! `--trace`, `--hang-after` and `--hang-report` work inside the ranks.
//! Open MPI's library has no state pages and no event rings that this launcher could read.
//! So ranks preload this project's library, which reads the options in environment variables.

use super::program::{App, Plan, StdinTo};
use crate::foreign::on::{self, Family};
use crate::rank_environment::set_env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of Open MPI's launcher; Debian installs `mpirun.openmpi` beside other implementations.
const LAUNCHERS: [&str; 2] = ["mpirun.openmpi", "mpirun"];

/// Moves the watch options to environment variables, which the preloaded library reads.
pub fn pass_watch_options(plan: &mut Plan) {
    if on::wanted(&plan.env).is_none() {
        return;
    }
    let trace = plan.trace.take().map(PathBuf::into_os_string);
    let patience = plan.hang_after.take();
    let patience = patience.map(|patience| patience.as_secs_f64().to_string().into());
    let report = plan.hang_report.take().map(PathBuf::into_os_string);
    for (name, value) in [
        (on::TRACE, trace),
        (on::HANG, patience),
        (on::HANG_REPORT, report),
    ] {
        if let Some(value) = value {
            set_env(&mut plan.env, name, value);
        }
    }
}

/// Returns the command of the launcher that must start the job; `None` if this launcher starts it.
pub fn launcher(plan: &Plan) -> Result<Option<Command>, String> {
    let Some(library) = on::wanted(&plan.env) else {
        return Ok(None);
    };
    let family = on::family(library).ok_or_else(|| {
        on::OnError::Unknown {
            file: library.into(),
        }
        .to_string()
    })?;
    on::library(family, on::folder().as_deref()).map_err(|e| e.to_string())?;
    if family != Family::OpenMpi {
        return Ok(None);
    }
    let launcher = launcher_of(library).ok_or_else(|| {
        format!(
            "ranks on {} are started by Open MPI's own mpirun, which is not beside it",
            printable::name(library)
        )
    })?;
    if let Some(what) = unsupported_option(plan) {
        return Err(format!(
            "ranks on {} are started by {}, which has no {what}",
            printable::name(library),
            printable::name(&launcher)
        ));
    }
    let mut command = Command::new(launcher);
    let mut env = plan.env.clone();
    for (name, value) in SETTINGS {
        if !env.iter().any(|(known, _)| known == name) {
            env.push((name.into(), value.into()));
        }
    }
    for (number, app) in plan.apps.iter().enumerate() {
        if number > 0 {
            command.arg(":");
        }
        let program = app.resolve(&plan.env, None).map_err(|e| e.to_string())?;
        let served = on::serve(&program, &mut env);
        if (plan.verbose
            || env
                .iter()
                .any(|(name, _)| *name == crate::params::explain_variable()))
            && let crate::foreign::Served::StandIn(said) = &served
        {
            printable::eprintln!("mpirun: {said}");
        }
        command.args(section(plan, app, &program, number == 0, &env));
    }
    command.env_clear().envs(env);
    Ok(Some(command))
}

/// Settings that give Open MPI this launcher's defaults: oversubscription and running as root.
const SETTINGS: [(&str, &str); 7] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
];

/// Returns the launcher in the same installation as a library.
fn launcher_of(library: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
    // The library is PREFIX/lib/libmpi.so.40 or PREFIX/lib/TRIPLET/openmpi/lib/libmpi.so.40.
    let prefixes = [library, &real]
        .into_iter()
        .flat_map(|file| file.ancestors().skip(2).take(4))
        .map(Path::to_owned)
        .collect::<Vec<_>>();
    LAUNCHERS
        .iter()
        .flat_map(|name| {
            prefixes
                .iter()
                .map(move |prefix| prefix.join("bin").join(name))
        })
        .find(|file| file.is_file())
}

/// Returns the first requested option that Open MPI's launcher does not support.
fn unsupported_option(plan: &Plan) -> Option<&'static str> {
    [
        (plan.io.folder.is_some(), "--output as mpirun lays it out"),
        (plan.io.label, "--label"),
        (plan.report_bindings, "--report-bindings"),
        (plan.io_report.is_some(), "--io-report"),
        (plan.matrix.is_some(), "--matrix"),
        (plan.checkpoints.is_some(), "--checkpoint-dir"),
        (
            plan.apps.iter().any(|app| app.placements.is_some()),
            "--rankfile",
        ),
        (
            plan.apps
                .iter()
                .any(|app| !app.env.is_empty() || app.path.is_some()),
            "environment of one program among several",
        ),
        (plan.binding.over.is_some(), "--map-by of this kind"),
    ]
    .into_iter()
    .find_map(|(asked, what)| asked.then_some(what))
}

fn section(
    plan: &Plan,
    app: &App,
    program: &Path,
    first: bool,
    env: &[(OsString, OsString)],
) -> Vec<OsString> {
    let mut line: Vec<OsString> = Vec::new();
    if first {
        if let Some(limit) = plan.timeout {
            line.extend([
                "--timeout".into(),
                limit.as_secs().max(1).to_string().into(),
            ]);
        }
        if plan.io.tag {
            line.push("--tag-output".into());
        }
        if plan.tolerates_deaths {
            line.extend(["--with-ft".into(), "ulfm".into()]);
        }
        if let StdinTo::NoRank = plan.io.stdin {
            line.extend(["--stdin".into(), "none".into()]);
        }
    }
    if let Some(procs) = app.procs {
        line.extend(["-n".into(), procs.to_string().into()]);
    }
    let hosts: Vec<&crate::hosts::Host> = match app.hosts.as_slice() {
        [] => plan.hosts.iter().collect(),
        some => some
            .iter()
            .filter_map(|&host| plan.hosts.get(host))
            .collect(),
    };
    if hosts.iter().any(|host| !host.here) {
        let list: Vec<String> = hosts
            .iter()
            .map(|host| format!("{}:{}", host.name, host.slots))
            .collect();
        line.extend(["--host".into(), list.join(",").into()]);
    }
    if let Some(dir) = &app.dir {
        line.extend(["--wdir".into(), dir.into()]);
    }
    let handed = ["LD_LIBRARY_PATH", "LD_PRELOAD", on::ON];
    for name in handed.into_iter().chain(on::WATCHING) {
        if env.iter().any(|(known, _)| known == name) {
            line.extend(["-x".into(), name.into()]);
        }
    }
    line.push(program.into());
    line.extend(app.args.iter().cloned());
    line
}
