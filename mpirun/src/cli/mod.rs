//! The command line of `mpirun` and `mpiexec`: the forms that the MPI standard gives and the options that users' fingers know.
//!
//! `mpirun [options] program [args] [: [options] program [args]]...`
//!
//! Long options are taken with one dash or two (`-np`, `--np`, `-wdir`), as both peers do.
//! What is known and not there yet is refused in a sentence ([`not_yet`]) and never silently ignored.
//!
//! [`options`] is the definition; [`dashes`] reads it for one dash, [`help`] makes screens, manual page and completions of it,
//! [`configfile`] reads parts from a file, and this module makes a [`Plan`] of what was read.

mod configfile;
mod dashes;
mod help;
mod not_yet;
mod options;
mod recording;
mod soft;

use crate::hosts::map::{MapError, Policy};
use crate::hosts::{self, Host, HostError, allocation, named};
use crate::launch::binding::{Binding, Unit};
use crate::launch::program::{App, Far, Io, Plan, StdinTo, clean_env, set_env};
use crate::pmi;
use clap::Parser;
use configfile::ConfigError;
use mpi_base::param::{About, Level, MARKER, PREFIX, Param, Params, Value};
use mpi_core::record::{RECORD, REPLAY};
use mpi_core::trace::TRACE;
use options::{AppOptions, Options, Section};
use recording::RecordingError;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
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

/// How other hosts are reached; the name is the one that users know from Open MPI.
pub static RSH_AGENT: Param<String> = Param::new(
    "plm",
    "rsh",
    "agent",
    "ssh",
    Level::USER,
    "The command that reaches another host: it is called with the host's name and one shell command.",
);

/// The width of the tree of launchers.
pub static FANOUT: Param<usize> = Param::new(
    "mpirun",
    "",
    "fanout",
    "16",
    Level::TUNER,
    "How many other hosts mpirun reaches itself; each of those reaches as many again.",
);

/// When a host that says nothing is given up.
pub static SILENCE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "silence",
    "30s",
    Level::TUNER,
    "A host that has said nothing for this long is taken for lost, and the job ends; 0 waits for ever.",
);

/// The launcher's own parameters.
pub static PARAMS: [&About; 3] = [GRACE.about(), FANOUT.about(), SILENCE.about()];

/// Name of the parameter that makes the library print what was selected and why; set by --explain.
const EXPLAIN: &str = "mpi_base_explain";

/// Why a command line does not lead to a job.
#[derive(Debug)]
pub enum CliError {
    /// clap's own message, the version included.
    Usage(clap::Error),
    /// Not an error: this was asked for, and nothing else.
    Answer(String),
    NotYet {
        option: String,
        what: &'static str,
    },
    NoProgram {
        section: usize,
    },
    Topic {
        name: String,
    },
    Value {
        option: &'static str,
        value: String,
        wanted: &'static str,
    },
    Parameter(mpi_base::param::ParamError),
    Hosts(HostError),
    Map(MapError),
    Config(ConfigError),
    Recording(RecordingError),
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(error) => error.fmt(f),
            CliError::Answer(text) => f.write_str(text),
            CliError::NotYet { option, what } => {
                write!(
                    f,
                    "{option} ({what}) is not there yet in this version of mpirun"
                )
            }
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
            CliError::Topic { name } => {
                write!(
                    f,
                    "there is no help about \"{name}\"; topics are {}",
                    help::topics()
                )
            }
            CliError::Value {
                option,
                value,
                wanted,
            } => write!(
                f,
                "{option} \"{value}\" is not understood; it takes {wanted}"
            ),
            CliError::Parameter(error) => error.fmt(f),
            CliError::Hosts(error) => error.fmt(f),
            CliError::Map(error) => error.fmt(f),
            CliError::Config(error) => error.fmt(f),
            CliError::Recording(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CliError {}

/// What a command line asks for.
#[derive(Debug)]
pub enum Request {
    Job(Box<Plan>),
    /// To serve a launcher elsewhere.
    Agent,
}

/// Reads a whole command line, the program's own name first.
pub fn request(args: impl IntoIterator<Item = OsString>) -> Result<Request, CliError> {
    let mut args = args.into_iter();
    let me = args.next().unwrap_or_else(|| "mpirun".into());
    let args: Vec<OsString> = args.collect();
    let mut parts: Vec<Vec<OsString>> = args.split(|arg| arg == ":").map(<[_]>::to_vec).collect();
    let first = parts.remove(0);
    let (mut options, mut sections) = (parse::<Options>(&me, &first)?, Vec::new());
    if let Some(text) = answered(&options)? {
        return Err(CliError::Answer(text));
    }
    if options.agent {
        return Ok(Request::Agent);
    }
    for file in std::mem::take(&mut options.configfile) {
        parts.extend(configfile::read(&file).map_err(CliError::Config)?);
    }
    let only_files = options.section.command.is_empty() && !parts.is_empty();
    if only_files && options.section.app.procs.is_none() {
        // Only options of the whole job stand before a file; its lines are the programs.
        let job = options.section.app.clone();
        for part in parts {
            let mut section = parse::<Section>(&me, &part)?;
            section.app.inherit(&job);
            sections.push(section);
        }
    } else {
        sections.push(options.section.clone());
        for part in parts {
            sections.push(parse::<Section>(&me, &part)?);
        }
    }
    assemble(&options, sections).map(|plan| Request::Job(Box::new(plan)))
}

fn parse<T: Parser>(me: &OsString, part: &[OsString]) -> Result<T, CliError> {
    let line = std::iter::once(me.clone()).chain(dashes::normalised(part)?);
    T::try_parse_from(line).map_err(CliError::Usage)
}

/// Help and generated files, which are asked for instead of a job.
fn answered(options: &Options) -> Result<Option<String>, CliError> {
    if let Some(topic) = &options.help {
        // `--help hosts`, where the word has been taken for the program.
        let word = options.section.command.first();
        let word = word.map(|word| word.to_string_lossy().into_owned());
        let name = Some(topic.clone())
            .filter(|topic| !topic.is_empty())
            .or(word);
        return match name {
            None => Ok(Some(help::screen())),
            Some(name) => help::topic(&name).map(Some).ok_or(CliError::Topic { name }),
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
    help::generate(what, "mpirun", help::whole())
        .map(|bytes| Some(String::from_utf8_lossy(&bytes).into_owned()))
        .ok_or_else(|| CliError::Value {
            option: "--generate",
            value: what.clone(),
            wanted: "man, bash, zsh, fish, elvish or powershell",
        })
}

impl AppOptions {
    /// What stands before a configuration file holds for each of its lines that does not say otherwise.
    fn inherit(&mut self, job: &AppOptions) {
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

fn assemble(options: &Options, sections: Vec<Section>) -> Result<Plan, CliError> {
    let mut env = clean_env();
    let mut from_command_line = Vec::new();
    let mut apps = Vec::new();
    let mut hosts: Vec<Host> = Vec::new();
    let mut softs = Vec::new();
    for (number, section) in sections.into_iter().enumerate() {
        let Section { app, command } = section;
        let named = named_hosts(&app)?;
        // A host that two programs name is one host with one number of slots, not two.
        for host in &named {
            if !hosts.iter().any(|known| is_same(known, host)) {
                hosts.push(host.clone());
            }
        }
        for pair in app.mca.chunks_exact(2) {
            let name = pair[0].to_string_lossy().into_owned();
            set_env(&mut env, format!("{PREFIX}{name}"), &pair[1]);
            from_command_line.push(name);
        }
        for export in &app.export {
            // `-x NAME` alone says that the rank gets it, which it does anyway.
            if let Some((name, value)) = split_at_sign(export) {
                set_env(&mut env, name, value);
            }
        }
        for pair in app.genv.chunks_exact(2) {
            set_env(&mut env, &pair[0], &pair[1]);
        }
        softs.extend(app.soft.clone().map(|list| (number, list)));
        let mut command = command.into_iter();
        let program = command
            .next()
            .ok_or(CliError::NoProgram { section: number })?;
        apps.push((
            App {
                procs: app.procs.map(|procs| procs as usize),
                hosts: Vec::new(),
                program,
                args: command.collect(),
                dir: app.wdir.clone(),
                path: app.path.clone(),
                env: app
                    .env
                    .chunks_exact(2)
                    .map(|pair| (pair[0].clone(), pair[1].clone()))
                    .collect(),
            },
            named,
        ));
    }
    if options.explain {
        set_env(&mut env, format!("{PREFIX}{EXPLAIN}"), "true");
        from_command_line.push(EXPLAIN.into());
    }
    witness(options, &mut env, &mut from_command_line)?;
    if !from_command_line.is_empty() {
        set_env(&mut env, MARKER, from_command_line.join(","));
    }
    let given = !hosts.is_empty();
    let mut allocated = given;
    if !given {
        let var = |name: &str| std::env::var(name).ok();
        match allocation::find(var).map_err(CliError::Hosts)? {
            Some(allocation) => {
                hosts = allocation.hosts;
                allocated = true;
            }
            None => hosts.push(Host::here()),
        }
    }
    let apps: Vec<App> = apps
        .into_iter()
        .map(|(mut app, named)| {
            let index = |host: &Host| hosts.iter().position(|known| is_same(known, host));
            app.hosts = named.iter().filter_map(index).collect();
            if !allocated {
                // Nobody has said how many fit, and filling the machine would be a surprise.
                app.procs = app.procs.or(Some(1));
            }
            app
        })
        .collect();
    let params = Params::load(env.iter().cloned(), &crate::prefix::parameter_files());
    let (policy, binding, oversubscribe) = placement(options)?;
    let mut plan = Plan {
        apps,
        hosts,
        policy,
        rank_by_node: rank_by_node(options)?,
        oversubscribe,
        strict: options.no_oversubscribe,
        binding,
        report_bindings: options.report_bindings,
        display_map: options.display_map,
        io: io(options)?,
        timeout: timeout(options)?,
        hang_after: time("--hang-after", options.hang_after.as_deref())?,
        trace: options.trace.as_deref().map(absolute),
        hang_report: options.hang_report.as_deref().map(absolute),
        grace: params.get(&GRACE).map_err(CliError::Parameter)?,
        quiet: options.quiet,
        verbose: options.verbose,
        far: far(options, &params)?,
        env,
    };
    for (number, list) in softs {
        soften(&mut plan, number, &list)?;
    }
    plan.place(&plan.apps).map_err(CliError::Map)?;
    Ok(plan)
}

/// Takes as many ranks of a program as fit, of the numbers that will do; one that does not fit at all is told when all are placed.
fn soften(plan: &mut Plan, number: usize, list: &str) -> Result<(), CliError> {
    let most = plan.apps[number].procs.unwrap_or(1);
    let numbers = soft::allowed(list, most).ok_or_else(|| CliError::Value {
        option: "--soft",
        value: list.into(),
        wanted: "numbers up to that of -n, such as 4, 2:8 or 2:8:2, with commas between them",
    })?;
    for procs in numbers {
        plan.apps[number].procs = Some(procs);
        if plan.place(&plan.apps[..=number]).is_ok() {
            break;
        }
    }
    Ok(())
}

/// Tells the ranks to trace, to record or to replay.
fn witness(
    options: &Options,
    env: &mut Vec<(OsString, OsString)>,
    from_command_line: &mut Vec<String>,
) -> Result<(), CliError> {
    let events = TRACE.about();
    let name = OsString::from(format!("{PREFIX}{}", events.full_name()));
    let chosen = env.iter().any(|(known, _)| *known == name);
    let mut set = |about: &About, value: OsString| {
        set_env(env, format!("{PREFIX}{}", about.full_name()), value);
        from_command_line.push(about.full_name());
    };
    if options.trace.is_some() && !chosen {
        set(events, crate::trace::EVENTS.to_string().into());
    }
    if let Some(folder) = &options.record {
        let folder = absolute(folder);
        recording::make_room(&folder).map_err(CliError::Recording)?;
        set(RECORD.about(), folder.into());
    }
    if let Some(folder) = &options.replay {
        let folder = absolute(folder);
        recording::is_there(&folder).map_err(CliError::Recording)?;
        set(REPLAY.about(), folder.into());
    }
    Ok(())
}

fn is_same(a: &Host, b: &Host) -> bool {
    a.name == b.name || (a.here && b.here)
}

fn named_hosts(app: &AppOptions) -> Result<Vec<Host>, CliError> {
    let mut named = Vec::new();
    for file in &app.hostfile {
        hosts::merge(&mut named, named::file(file).map_err(CliError::Hosts)?);
    }
    for list in &app.host {
        let chosen = named::list(list).map_err(CliError::Hosts)?;
        if app.hostfile.is_empty() {
            hosts::merge(&mut named, chosen);
        } else {
            // With a file, the list chooses among its hosts.
            named.retain(|host| chosen.iter().any(|chosen| is_same(chosen, host)));
        }
    }
    Ok(named)
}

/// How `--map-by`, `--bind-to`, `-N` and the like place ranks.
fn placement(options: &Options) -> Result<(Policy, Binding, bool), CliError> {
    const MAP: &str = "slot, node, package, numa, core, hwthread or ppr:N:node, and :PE=N or :OVERSUBSCRIBE after it";
    const BIND: &str = "none, core, hwthread, numa or package, and :overload-allowed after it";
    let mut policy = options.per_node.map_or(Policy::Slot, Policy::PerNode);
    let mut binding = Binding::default();
    let mut oversubscribe = options.oversubscribe;
    if let Some(how) = &options.map_by {
        let wrong = || CliError::Value {
            option: "--map-by",
            value: how.clone(),
            wanted: MAP,
        };
        let lower = how.to_lowercase();
        let mut words: Vec<&str> = lower.split([':', ',']).collect();
        if words[0] == "ppr" {
            let (Some(count), Some(&"node")) = (words.get(1), words.get(2)) else {
                return Err(wrong());
            };
            policy = Policy::PerNode(count.parse().map_err(|_| wrong())?);
            words.drain(1..3);
        } else {
            match words[0] {
                "slot" | "" => {}
                "node" => policy = Policy::Node,
                unit => binding.over = Some(Unit::named(unit).ok_or_else(wrong)?),
            }
        }
        for word in &words[1..] {
            match (*word, word.split_once('=')) {
                ("oversubscribe", _) => oversubscribe = true,
                ("nooversubscribe", _) => {}
                (_, Some(("pe", each))) => {
                    binding.each = each.parse().map_err(|_| wrong())?;
                    binding.to = Some(Unit::Core);
                }
                _ => return Err(wrong()),
            }
        }
    }
    if let Some(to) = &options.bind_to {
        let wrong = || CliError::Value {
            option: "--bind-to",
            value: to.clone(),
            wanted: BIND,
        };
        let lower = to.to_lowercase();
        let mut words = lower.split(':');
        binding.to = match words.next().unwrap_or_default() {
            "none" => None,
            unit => Some(Unit::named(unit).ok_or_else(wrong)?),
        };
        for word in words {
            match word {
                "overload-allowed" => binding.overload = true,
                "if-supported" | "no-overload" => {}
                _ => return Err(wrong()),
            }
        }
    }
    Ok((policy, binding, oversubscribe))
}

fn rank_by_node(options: &Options) -> Result<bool, CliError> {
    match options.rank_by.as_deref() {
        None | Some("slot") => Ok(false),
        Some("node") => Ok(true),
        Some(how) => Err(CliError::Value {
            option: "--rank-by",
            value: how.into(),
            wanted: "slot or node",
        }),
    }
}

fn io(options: &Options) -> Result<Io, CliError> {
    let (folder, echo) = match &options.output {
        None => (None, true),
        Some(text) => {
            let text = text.strip_prefix("dir=").unwrap_or(text);
            match text.strip_suffix(":nocopy") {
                Some(folder) => (Some(PathBuf::from(folder)), false),
                None => (Some(PathBuf::from(text)), true),
            }
        }
    };
    let stdin = match options.stdin.as_deref() {
        None => StdinTo::Rank(0),
        Some("all") => StdinTo::All,
        Some("none") => StdinTo::Nobody,
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
        stdin,
    })
}

fn far(options: &Options, params: &Params) -> Result<Far, CliError> {
    let agent = match &options.launch_agent {
        Some(agent) => agent.to_string_lossy().into_owned(),
        None => params.get(&RSH_AGENT).map_err(CliError::Parameter)?,
    };
    let me = std::env::current_exe().unwrap_or_else(|_| "mpirun".into());
    Ok(Far {
        agent: agent.split_whitespace().map(OsString::from).collect(),
        mpirun: match &options.prefix {
            Some(prefix) => prefix.join("bin/mpirun"),
            None => me,
        },
        fanout: params.get(&FANOUT).map_err(CliError::Parameter)?.max(1),
        silence: params.get(&SILENCE).map_err(CliError::Parameter)?,
    })
}

fn timeout(options: &Options) -> Result<Option<Duration>, CliError> {
    let from_env = std::env::var("MPIEXEC_TIMEOUT").ok();
    time(
        "--timeout",
        options.timeout.as_deref().or(from_env.as_deref()),
    )
}

fn time(option: &'static str, value: Option<&str>) -> Result<Option<Duration>, CliError> {
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

/// Seen from where the user is, also when the agent is elsewhere.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn split_at_sign(pair: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((
        OsStr::from_bytes(&bytes[..at]),
        OsStr::from_bytes(&bytes[at + 1..]),
    ))
}

/// A program of an `MPI_Comm_spawn`, with the infos that the standard reserves for it; `hosts` are the job's.
pub fn spawned_app(app: pmi::App, hosts: &[Host]) -> App {
    let info = |key: &str| {
        app.info
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.clone())
    };
    let named = info("host").or_else(|| info("hosts"));
    let named = named.and_then(|names| named::list(&names.to_string_lossy()).ok());
    let index = |host: &Host| hosts.iter().position(|known| is_same(known, host));
    App {
        procs: Some(app.procs),
        // A host that the job does not have cannot be had; the spawn then runs where the job does.
        hosts: named.iter().flatten().filter_map(index).collect(),
        dir: info("wdir").map(PathBuf::from),
        path: info("path"),
        program: app.program,
        args: app.args,
        env: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
