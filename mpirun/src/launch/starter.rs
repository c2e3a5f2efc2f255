//! Start of the ranks of one host: programs, processors, environment and descriptors.

use super::binding::{Binding, Machine};
use super::pmi_socket::PmiSocket;
use super::program::{App, ProgramError};
use super::rseq;
use super::sys::{self, Image, Wiring};
use super::wire::Order;
use crate::foreign::{self, Libraries, Served};
use crate::hosts::map::MapError;
use crate::params::explain_variable;
use mpi_base::cpu::{self, Cores, SHARERS};
use mpi_base::node::NodeError;
use mpi_base::ranges;
use mpi_core::rte::universe_of;
use mpi_core::rte::{checkpoints, deaths, own_launcher};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why the start of a job failed.
#[derive(Debug)]
pub enum StartError {
    Program(ProgramError),
    Mapping(MapError),
    Node(NodeError),
    /// A rankfile binds a rank to cores that its host lacks.
    NoSuchCores {
        rank: u32,
        cores: String,
    },
    /// Each rank must get several units, and the host has fewer than its ranks need.
    TooFewUnits {
        ranks: usize,
        each: usize,
        unit: &'static str,
        found: usize,
    },
    Output {
        path: String,
        error: io::Error,
    },
    System {
        doing: &'static str,
        error: io::Error,
    },
}

impl StartError {
    /// Returns mpirun's exit code: 126 or 127 for a program error as in shells, else 1.
    pub fn code(&self) -> i32 {
        match self {
            StartError::Program(error) => error.code(),
            _ => 1,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Program(error) => error.fmt(f),
            StartError::Mapping(error) => error.fmt(f),
            StartError::Node(error) => error.fmt(f),
            StartError::NoSuchCores { rank, cores } => write!(
                f,
                "the rankfile binds rank {rank} to {cores}, which {} has not, or mpirun may not use",
                crate::hosts::own_name()
            ),
            StartError::TooFewUnits {
                ranks,
                each,
                unit,
                found,
            } => write!(
                f,
                "{each} of the units \"{unit}\" cannot be bound to each of {ranks} ranks: mpirun may use {found} on {}; start fewer ranks there, or let ranks share units by --bind-to {unit}:{each}:overload-allowed",
                crate::hosts::own_name()
            ),
            StartError::Output { path, error } => {
                write!(
                    f,
                    "the ranks' output cannot be written to {}: {error}",
                    printable::name(path)
                )
            }
            StartError::System { doing, error } => {
                write!(f, "{doing} failed: {error}{}", sys::advice(error))
            }
        }
    }
}

impl std::error::Error for StartError {}

/// Returns a function that wraps the error of a system call; `doing` describes the failed action.
pub fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> StartError {
    move |error| StartError::System {
        doing,
        error: error.into(),
    }
}

/// The environment and working directory that all ranks of one launcher inherit.
#[derive(Clone, Copy)]
pub struct Inherited<'a> {
    /// The environment of every rank, without the variables that [`Starter::start`] adds.
    pub env: &'a [(OsString, OsString)],
    /// The working directory of programs that specify none; `None` means this process's directory.
    pub dir: Option<&'a Path>,
}

/// Descriptors and settings for all starts of one launcher on its host.
pub struct Starter<'a> {
    pub inherited: Inherited<'a>,
    /// The pipe on which a child reports that it could not execute its program.
    pub report: BorrowedFd<'a>,
    pub null: BorrowedFd<'a>,
    pub nofile: Option<u64>,
}

/// A rank that was just started.
pub struct StartedRank {
    pub rank: u32,
    pub local_rank: u32,
    pub pid: i32,
    pub pmi: PmiSocket,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The processors that the rank is bound to, as text; `None` if it is unbound.
    pub bound: Option<String>,
}

/// The job's programs that run on this host, by index in the order's `apps`.
pub struct Resolved<'a> {
    apps: Vec<Option<ResolvedApp<'a>>>,
    ranks: Vec<u32>,
}

struct ResolvedApp<'a> {
    app: &'a App,
    path: PathBuf,
    /// The job's environment, overridden by the program's own settings.
    env: Vec<(OsString, OsString)>,
    served: Served,
}

impl Resolved<'_> {
    /// Returns the number of ranks on this host.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the messages about the programs that run on this host.
    /// The use of a stand-in library is reported only with `--explain`.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.apps.iter().flatten().filter_map(|app| {
            let explained = || app.env.iter().any(|(name, _)| *name == *explain_variable());
            match &app.served {
                Served::Warning(said) => Some(said.clone()),
                Served::StandIn(said) if explained() => Some(said.clone()),
                Served::StandIn(_) | Served::Nothing => None,
            }
        })
    }
}

impl Starter<'_> {
    /// Resolves all programs of a job that run on `host`; if one is missing, no rank is started.
    pub fn resolve<'a>(&self, order: &'a Order, host: u32) -> Result<Resolved<'a>, StartError> {
        let ranks = order.ranks_on(host);
        let apps = order
            .apps
            .iter()
            .enumerate()
            .map(|(appnum, app)| {
                let here = |rank: &u32| order.appnums.get(*rank as usize) == Some(&appnum);
                if !ranks.iter().any(here) {
                    return Ok(None);
                }
                let mut env = self.inherited.env.to_vec();
                for (name, value) in &app.env {
                    crate::rank_environment::set_env(&mut env, name, value);
                }
                let path = app
                    .resolve(&env, self.inherited.dir)
                    .map_err(StartError::Program)?;
                let libraries = Libraries::of_this_installation();
                let served = foreign::serve(&path, order.hosts.len(), &libraries, &mut env);
                Ok(Some(ResolvedApp {
                    app,
                    path,
                    env,
                    served,
                }))
            })
            .collect::<Result<_, StartError>>()?;
        Ok(Resolved { apps, ranks })
    }

    /// Starts the ranks of this host; `input` returns the standard input of a rank, if any.
    ///
    /// `started` is called for each rank as soon as it runs.
    /// So the owner can end this rank even if a later start fails.
    pub fn start(
        &self,
        order: &Order,
        resolved: &Resolved<'_>,
        node: BorrowedFd<'_>,
        mut input: impl FnMut(u32) -> io::Result<Option<OwnedFd>>,
        mut started: impl FnMut(StartedRank),
    ) -> Result<(), StartError> {
        let (machine, bound) = bound(order, resolved)?;
        let roomy = resolved.count() <= Cores::of_this_process().usable;
        let numbers: Vec<usize> = resolved.ranks.iter().map(|&rank| rank as usize).collect();
        let job_on_host = JobOnHost {
            order,
            local_size: resolved.count(),
            local_ranks: ranges::write(&numbers),
            node: node.as_raw_fd(),
        };
        for (local_rank, &rank) in (0u32..).zip(&resolved.ranks) {
            let appnum = order.appnums.get(rank as usize).copied().unwrap_or(0);
            let Some(app) = resolved.apps.get(appnum).and_then(Option::as_ref) else {
                continue;
            };
            let stdin = input(rank).map_err(system("making a rank's input"))?;
            let cpus = bound[local_rank as usize].as_deref();
            let sharers = cpus
                .filter(|_| roomy)
                .map(|cpus| cpu::sharers(cpus, bound.iter().map(Option::as_deref)));
            let shares = match (cpus, sharers) {
                (Some(cpus), Some(sharers)) => sharers > cpus.len(),
                _ => !roomy,
            };
            let identity = (rank, local_rank, appnum);
            let cores = RankCores {
                cpus,
                sharers,
                shares,
            };
            let mut started_rank = self.start_rank(&job_on_host, identity, app, stdin, cores)?;
            started_rank.bound = machine.as_ref().map(|machine| match cpus {
                Some(cpus) => format!("bound to {}", machine.describe(cpus)),
                None if order.binding.to.is_none() => "not bound".to_string(),
                None => "not bound (more ranks than there are units on its host)".to_string(),
            });
            started(started_rank);
        }
        Ok(())
    }

    fn start_rank(
        &self,
        job: &JobOnHost<'_>,
        (rank, local_rank, appnum): (u32, u32, usize),
        resolved: &ResolvedApp<'_>,
        stdin: Option<OwnedFd>,
        RankCores {
            cpus,
            sharers,
            shares,
        }: RankCores<'_>,
    ) -> Result<StartedRank, StartError> {
        let app = resolved.app;
        let (ours, rank_end) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(system("making a rank's PMI socket"))?;
        // Only the launcher's ends of the pipes are nonblocking:
        // a program with a nonblocking standard output would lose output.
        let pipe = || super::link::reading_pipe().map_err(system("making a rank's output pipe"));
        let (out, to_out) = pipe()?;
        let (err, to_err) = pipe()?;
        let mut env = resolved.env.clone();
        env.extend(job.env(rank, local_rank, appnum, rank_end.as_raw_fd()));
        let size = job.order.hosts.len() as u32;
        let record = own_launcher::record(rank, size, rank_end.as_fd())
            .map_err(system("reading the number of a rank's PMI socket"))?;
        env.push((own_launcher::RECORD.into(), record.into()));
        env.extend(sharers.map(|ranks| (SHARERS.into(), ranks.to_string().into())));
        if shares {
            rseq::do_without(&mut env);
        }
        let under = job.order.under.as_ref();
        let under = under.filter(|under| under.includes(rank));
        let (path, argv) = match under {
            Some(under) => {
                env.push(under.variable());
                let argv = under.arguments(resolved.path.as_os_str(), app.args.iter());
                (Path::new("/bin/sh"), argv)
            }
            None => {
                let argv = std::iter::once(&app.program).chain(&app.args);
                (resolved.path.as_path(), argv.cloned().collect())
            }
        };
        let dir = app.dir_from(self.inherited.dir);
        let image = Image::new(
            path.as_os_str(),
            argv.iter(),
            env.iter().map(|(n, v)| (n, v)),
            dir.as_ref().map(|dir| dir.as_os_str()),
        )
        .map_err(system("preparing a program's arguments"))?;
        let pid = sys::start(
            &image,
            &Wiring {
                stdin: stdin.as_ref().map_or(self.null, AsFd::as_fd),
                stdout: to_out.as_fd(),
                stderr: to_err.as_fd(),
                keep: &[rank_end.as_raw_fd(), job.node],
                report: self.report,
                nofile: self.nofile,
                cpus,
            },
        )
        .map_err(system("starting a process"))?;
        Ok(StartedRank {
            rank,
            local_rank,
            pid,
            pmi: PmiSocket::new(ours),
            stdout: out,
            stderr: err,
            bound: None,
        })
    }
}

/// The processors that a rank is bound to; `None` if the rank is unbound.
type Cpus = Option<Vec<usize>>;

/// Returns each local rank's processors, and the machine if at least one rank must be bound.
fn bound(
    order: &Order,
    resolved: &Resolved<'_>,
) -> Result<(Option<Machine>, Vec<Cpus>), StartError> {
    let count = resolved.count();
    let placements = resolved.ranks.iter().map(|&rank| order.placement(rank));
    let placements: Vec<_> = placements
        .map(|placement| placement.filter(|placement| !placement.cores.is_empty()))
        .collect();
    if order.binding.to.is_none() && placements.iter().all(Option::is_none) {
        return Ok((None, vec![None; count]));
    }
    let machine = Machine::of_this_process();
    let mut bound: Vec<Cpus> = match (machine.bind(order.binding, count), order.binding) {
        (Some(bound), _) => bound.into_iter().map(Some).collect(),
        // The user has requested a number of units for each rank, which is no hint.
        (
            None,
            Binding {
                to: Some(unit),
                each: each @ 2..,
                ..
            },
        ) if placements.iter().any(Option::is_none) => {
            return Err(StartError::TooFewUnits {
                ranks: count,
                each,
                unit: unit.name(),
                found: machine.count(unit),
            });
        }
        (None, _) => vec![None; count],
    };
    for ((place, &rank), placement) in bound.iter_mut().zip(&resolved.ranks).zip(placements) {
        let Some(placement) = placement else { continue };
        let cpus = machine.pick(&placement.cores).ok_or_else(|| {
            let cores: Vec<String> = placement.cores.iter().map(ToString::to_string).collect();
            let cores = cores.join(" and ");
            StartError::NoSuchCores { rank, cores }
        })?;
        *place = Some(cpus);
    }
    Ok((Some(machine), bound))
}

/// The processors of a rank, and the number of ranks that share them.
struct RankCores<'a> {
    /// The processors that the rank is bound to; `None` if it is unbound.
    cpus: Option<&'a [usize]>,
    /// The number of local ranks that may run on these processors, for the rank's environment.
    sharers: Option<usize>,
    /// Whether the processors are oversubscribed.
    shares: bool,
}

/// The properties of one job that all its ranks on one host share.
struct JobOnHost<'a> {
    order: &'a Order,
    local_size: usize,
    local_ranks: String,
    node: i32,
}

impl JobOnHost<'_> {
    /// Returns the environment variables of a rank.
    /// They are PMI-1's standard variables, variables that scripts read, and this library's own.
    /// With this library's own variables, `MPI_Init` needs no request to the PMI server.
    fn env(&self, rank: u32, local: u32, appnum: usize, pmi: i32) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = Vec::with_capacity(14);
        let mut set = |name: &str, value: String| env.push((name.into(), value.into()));
        let size = self.order.hosts.len();
        set("PMI_FD", pmi.to_string());
        set("PMI_RANK", rank.to_string());
        set("PMI_SIZE", size.to_string());
        set("MPI_LOCALRANKID", local.to_string());
        set("MPI_LOCALNRANKS", self.local_size.to_string());
        set("PORTCULLIS_NODE_FD", self.node.to_string());
        set("PORTCULLIS_LOCAL_RANK", local.to_string());
        set("PORTCULLIS_LAUNCHER", std::process::id().to_string());
        set("PORTCULLIS_LOCAL_SIZE", self.local_size.to_string());
        set("PORTCULLIS_LOCAL_RANKS", self.local_ranks.clone());
        set("PORTCULLIS_JOB", self.order.kvsname.clone());
        set("PORTCULLIS_APPNUM", appnum.to_string());
        let slots = universe_of(self.order.slots, size);
        set("PORTCULLIS_UNIVERSE_SIZE", slots.to_string());
        if self.order.tolerates_deaths {
            set(deaths::SERVED, "1".to_string());
        }
        if self.order.takes_checkpoints {
            set(checkpoints::SERVED, "1".to_string());
        }
        if self.order.spawned {
            set("PMI_SPAWNED", "1".to_string());
        }
        env
    }
}
