//! Construction of a [`Plan`] from options: programs, hosts, environment.

use super::CliError;
use super::choices::{RankBy, TimeLimit, end_dead_by_default};
use super::environment::{of_all_programs, own_variables, shared_by_all, unset_exports};
use super::observation::observation;
use super::options::{AppOptions, Options, Section};
use super::placement::{placement, rankfile};
use super::soft::{self, Soft};
use super::values::{absolute, io, output, remote, shown, survival, timeout};
use crate::checkpoint::{self, Wanted};
use crate::foreign::{COMPAT, on};
use crate::hosts::map::Policy;
use crate::hosts::rankfile::Rankfile;
use crate::hosts::{self, Host, allocation, named};
use crate::launch::program::{App, Plan, StdinTo};
use crate::launch::under::{Debugger, Under};
use crate::params::{EXPLAIN, GRACE, SIGNAL_GRACE, explain_variable};
use crate::rank_environment::{clean_env, set_env};
use mpi_abi::initial_handler::INITIAL_HANDLER;
use mpi_abi::stdio::STREAM_BUFFERING;
use mpi_base::param::{MARKER, PREFIX, Params};
use mpi_base::{environment, ranges, text};
use mpi_core::crs::store::Found;
use mpi_core::fault;
use std::path::PathBuf;

impl AppOptions {
    /// Adds the options before a configuration file to those of one line of the file.
    /// The line's own options take precedence.
    pub fn inherit(&mut self, job: &AppOptions) {
        fn before<T: Clone>(mine: &mut Vec<T>, job: &[T]) {
            mine.splice(0..0, job.iter().cloned());
        }
        before(&mut self.mca, &job.mca);
        before(&mut self.genv, &job.genv);
        before(&mut self.env, &job.env);
        before(&mut self.export, &job.export);
        if self.host.is_empty() && self.hostfile.is_empty() {
            self.host.clone_from(&job.host);
            self.hostfile.clone_from(&job.hostfile);
        }
        self.wdir = self.wdir.take().or_else(|| job.wdir.clone());
        self.path = self.path.take().or_else(|| job.path.clone());
    }
}

/// Builds the plan; `origin` is the checkpoint that the job restarts from.
pub fn assemble(
    options: &Options,
    sections: Vec<Section>,
    origin: Option<Found>,
) -> Result<Plan, CliError> {
    let mut env = clean_env();
    let mut from_command_line = Vec::new();
    let mut apps = Vec::new();
    let mut hosts: Vec<Host> = Vec::new();
    let mut softs = Vec::new();
    let mut warnings = Vec::new();
    let count = sections.len();
    for (number, section) in sections.into_iter().enumerate() {
        let Section { app, command } = section;
        let named = named_hosts(&app)?;
        // A host that several programs name is added once, with the slots of its first mention.
        for host in &named {
            if !hosts.iter().any(|known| known.is_same(host)) {
                hosts.push(host.clone());
            }
        }
        for pair in app.mca.chunks_exact(2) {
            let name = pair[0].to_string_lossy().into_owned();
            set_env(&mut env, format!("{PREFIX}{name}"), &pair[1]);
            from_command_line.push(name);
        }
        for (name, value) in of_all_programs(&app)? {
            set_env(&mut env, name, value);
        }
        warnings.extend(unset_exports(&app));
        softs.extend(app.soft.clone().map(|soft| (number, soft)));
        let mut command = command.into_iter();
        let program = command.next().ok_or(CliError::NoProgram {
            section: number,
            of: count,
        })?;
        apps.push((
            App {
                procs: app.procs.map(|procs| procs as usize),
                hosts: Vec::new(),
                placements: None,
                program,
                args: command.collect(),
                dir: app.wdir.clone(),
                path: app.path.clone(),
                env: own_variables(&app)?,
            },
            named,
        ));
    }
    // Variables that all programs share belong to the job, so that spawned programs get them too.
    let shared = shared_by_all(apps.iter_mut().map(|(app, _)| &mut app.env));
    for (name, value) in shared {
        set_env(&mut env, name, value);
    }
    if options.explain {
        set_env(&mut env, explain_variable(), "true");
        from_command_line.push(EXPLAIN.into());
    }
    if let Some(word) = options.compat {
        set_env(&mut env, COMPAT, word.word());
    }
    if let Some(word) = &options.on {
        let library = on::find(word, &env).map_err(CliError::On)?;
        set_env(&mut env, on::ON, library);
    }
    if let Some(mode) = options.stream_buffering {
        let name = STREAM_BUFFERING.about().full_name();
        set_env(&mut env, format!("{PREFIX}{name}"), mode.to_string());
        from_command_line.push(name);
    }
    if let Some(wanted) = survival(options) {
        let name = fault::ENABLE.about().full_name();
        set_env(&mut env, format!("{PREFIX}{name}"), wanted.to_string());
        from_command_line.push(name);
    }
    if let Some(handler) = options.initial_errhandler {
        let name = INITIAL_HANDLER.about().full_name();
        set_env(&mut env, format!("{PREFIX}{name}"), handler.name());
        from_command_line.push(name);
    }
    observation(options, &mut env, &mut from_command_line)?;
    if !from_command_line.is_empty() {
        set_env(&mut env, MARKER, from_command_line.join(","));
    }
    let rankfile = rankfile(options).map(|file| Rankfile::read(&file));
    let rankfile = rankfile.transpose().map_err(CliError::Rankfile)?;
    let given = !hosts.is_empty();
    let mut allocated = given;
    if !given {
        let var = |name: &str| environment::var(name).map(text::from_os);
        match allocation::find(var).map_err(CliError::Hosts)? {
            Some(allocation) => {
                hosts = allocation.hosts;
                allocated = true;
            }
            None => hosts = rankfile.as_ref().map_or_else(Vec::new, Rankfile::hosts),
        }
    }
    if hosts.is_empty() {
        hosts.push(Host::here());
    }
    let placement = placement(options, &hosts)?;
    let mut apps: Vec<App> = apps
        .into_iter()
        .map(|(mut app, named)| {
            let index = |host: &Host| hosts.iter().position(|known| known.is_same(host));
            app.hosts = named.iter().filter_map(index).collect();
            if let (Some(file), 1, None) = (&rankfile, count, app.procs) {
                app.procs = Some(file.count());
            }
            if !allocated && !matches!(placement.policy, Policy::PerNode(_)) {
                // Without named hosts the program gets one rank by default, not one rank per slot.
                app.procs = app.procs.or(Some(1));
            }
            app
        })
        .collect();
    if let Some(file) = &rankfile {
        apply_rankfile(&mut apps, file, &hosts)?;
    }
    let params = Params::load(env.iter().cloned(), &crate::prefix::parameter_files());
    let shown = shown(options);
    let mut plan = Plan {
        apps,
        hosts,
        policy: placement.policy,
        rank_by_node: options.rank_by == Some(RankBy::Node),
        oversubscribe: placement.oversubscribe,
        strict: placement.strict,
        binding: placement.binding,
        report_bindings: shown.bindings,
        display_map: shown.map,
        display_allocation: shown.allocation,
        io: io(options),
        timeout: timeout(options)?,
        hang_after: options.hang_after.and_then(|TimeLimit(limit)| limit),
        trace: output("--trace", options.trace.as_deref())?,
        matrix: output("--matrix", options.matrix.as_deref())?,
        io_report: match options.io_report.as_deref() {
            Some(file) if file.as_os_str() == "-" => Some(file.to_owned()),
            file => output("--io-report", file)?,
        },
        end_dead: options.end_dead.unwrap_or_else(end_dead_by_default),
        under: None,
        hang_report: output("--hang-report", options.hang_report.as_deref())?,
        tolerates_deaths: params.get(&fault::ENABLE).map_err(CliError::Parameter)?,
        grace: params.get(&GRACE).map_err(CliError::Parameter)?,
        signal_grace: params.get(&SIGNAL_GRACE).map_err(CliError::Parameter)?,
        quiet: options.quiet,
        verbose: options.verbose,
        remote: remote(options, &params)?,
        checkpoints: None,
        warnings,
        env,
    };
    for (number, soft) in &softs {
        apply_soft(&mut plan, *number, soft)?;
    }
    let placed = plan.place(&plan.apps).map_err(CliError::Map)?;
    let ranks = placed.iter().map(Vec::len).sum();
    plan.under = under(options, ranks)?;
    let counts: Vec<usize> = placed.iter().map(Vec::len).collect();
    checkpoint::plan(&mut plan, wanted(options, origin), &counts).map_err(CliError::Checkpoint)?;
    match plan.io.stdin {
        StdinTo::Rank(rank) if rank as usize >= ranks => Err(CliError::StdinRank { rank, ranks }),
        _ => Ok(plan),
    }
}

/// Collects the checkpoint options.
fn wanted(options: &Options, origin: Option<Found>) -> Wanted {
    Wanted {
        dir: options.checkpoint_dir.as_deref().map(absolute),
        restarts: super::restarts_left(options),
        every: options.checkpoint_every.and_then(|TimeLimit(every)| every),
        signal: options.checkpoint_signal,
        keep: options.checkpoint_keep,
        origin,
    }
}

/// Returns the ranks that run under a debugger (`--gdb`, `--rr`).
fn under(options: &Options, ranks: usize) -> Result<Option<Under>, CliError> {
    let (debugger, option, text) = match (&options.gdb, &options.rr) {
        (Some(text), _) => (Debugger::Gdb, "--gdb", text),
        (None, Some(text)) => (Debugger::Rr, "--rr", text),
        (None, None) => return Ok(None),
    };
    let chosen = match text.as_str() {
        "" => Vec::new(),
        text => ranges::read(text, ranks).ok_or_else(|| CliError::Value {
            option,
            value: text.to_owned(),
            wanted: "ranks of the job in ascending order, such as 0,2-3",
        })?,
    };
    let path = environment::var("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_missing = |program: &&&str| !folders.iter().any(|dir| dir.join(program).is_file());
    let missing = Under::programs(debugger).iter().find(is_missing);
    if let Some(program) = missing {
        return Err(CliError::NoDebugger { option, program });
    }
    Ok(Some(Under {
        debugger,
        ranks: chosen.into_iter().map(|rank| rank as u32).collect(),
        session: format!("mpirun-{}", std::process::id()),
    }))
}

/// Assigns each line of a rankfile to its rank.
fn apply_rankfile(apps: &mut [App], file: &Rankfile, hosts: &[Host]) -> Result<(), CliError> {
    let counts: Vec<usize> = apps.iter().map(|app| app.procs.unwrap_or(1)).collect();
    let placements = file.placements(counts.iter().sum(), hosts);
    let mut placements = placements.map_err(CliError::Rankfile)?.into_iter();
    for (app, count) in apps.iter_mut().zip(counts) {
        app.procs = Some(count);
        app.placements = Some(placements.by_ref().take(count).collect());
    }
    Ok(())
}

/// Sets a program's number of ranks to the largest number in `--soft` that fits on the hosts.
/// If no number fits, the mapping step reports the error.
fn apply_soft(plan: &mut Plan, number: usize, soft: &Soft) -> Result<(), CliError> {
    let most = plan.apps[number].procs.unwrap_or(1);
    let numbers = soft.allowed(most);
    if numbers.is_empty() {
        return Err(CliError::Value {
            option: "--soft",
            value: soft.text.clone(),
            wanted: soft::WANTED,
        });
    }
    for procs in numbers {
        plan.apps[number].procs = Some(procs);
        if plan.place(&plan.apps[..=number]).is_ok() {
            break;
        }
    }
    Ok(())
}

fn named_hosts(app: &AppOptions) -> Result<Vec<Host>, CliError> {
    let mut named = Vec::new();
    for file in &app.hostfile {
        hosts::merge(&mut named, named::file(file).map_err(CliError::Hosts)?);
    }
    let mut chosen = Vec::new();
    for list in &app.host {
        hosts::merge(&mut chosen, named::list(list).map_err(CliError::Hosts)?);
    }
    if app.hostfile.is_empty() {
        return Ok(chosen);
    }
    // With a hostfile, `--host` selects among the hosts of that file.
    match chosen.is_empty() {
        true => Ok(named),
        false => hosts::select(named, &chosen).map_err(CliError::Hosts),
    }
}
