//! The ranks of one or more jobs: starting those of this host, and the state of each rank.

use super::binding::Machine;
use super::output::Stream;
use super::pmi_socket::PmiSocket;
use super::program::{App, ProgramError};
use super::rseq;
use super::sys::{self, Image, Wiring};
use super::wire::Order;
use crate::cli::explain_variable;
use crate::foreign::{self, Libraries, Served};
use crate::hosts::map::MapError;
use crate::ledger::Ledger;
use crate::pmi::{Job, Proc};
use crate::rank_snapshot::RankSnapshot;
use mpi_base::cpu::{self, Cores, SHARERS};
use mpi_base::node::NodeError;
use mpi_base::ranges;
use mpi_core::rte::deaths::SERVED;
use mpi_core::rte::room;
use mpi_core::rte::wire::Lines;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// One rank of one job.
#[derive(Debug)]
pub struct Rank {
    pub job: Job,
    pub rank: u32,
    pub size: usize,
    pub program: String,
    /// Its host, as an index of the plan's.
    pub host: u32,
    /// Whether that host is this one.
    pub here: bool,
    /// Whether it started this launcher instead of being started by it: the end of its socket is its end, and it gets no signals.
    pub is_adopted: bool,
    /// Its index among the job's ranks of its host.
    pub local_rank: u32,
    /// 0 until the launcher of its host has reported it.
    pub pid: i32,
    pub alive: bool,
    /// Whether its host has reported that it has begun to die.
    pub is_dying: bool,
    /// Whether its job is being ended while others go on: its end is a consequence and is not reported.
    pub is_dismissed: bool,
    /// How it died, if the job goes on without it.
    pub lost: Option<String>,
    pub pmi: Option<Client>,
    pub stdout: Option<Stream>,
    pub stderr: Option<Stream>,
    /// The last snapshot that its host has sent.
    pub snapshot: Option<RankSnapshot>,
}

/// The server's side of a rank's PMI connection.
#[derive(Debug)]
pub struct Client {
    /// `None` if the rank runs on another host, whose daemon has the socket.
    pub socket: Option<PmiSocket>,
    pub lines: Lines,
}

/// The reason why a job could not be started.
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
    /// Returns mpirun's exit code: 126 or 127 for a program as in shells, else 1.
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
            StartError::Output { path, error } => {
                write!(
                    f,
                    "the ranks' output cannot be written to {}: {error}",
                    printable::name(path)
                )
            }
            StartError::System { doing, error } => write!(f, "{doing} failed: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> StartError {
    move |error| StartError::System {
        doing,
        error: error.into(),
    }
}

/// What all starts of one launcher on one host share.
pub struct Starter<'a> {
    /// The environment of every rank, without the variables that [`Starter::start`] adds.
    pub env: &'a [(OsString, OsString)],
    /// The working directory of programs that name none; `None` is this process's own.
    pub dir: Option<&'a Path>,
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
    /// The processors that it was bound to.
    pub bound: Option<String>,
}

/// The programs of a job that run on this host, by their number.
pub struct Resolved<'a> {
    apps: Vec<Option<ResolvedApp<'a>>>,
    ranks: Vec<u32>,
}

struct ResolvedApp<'a> {
    app: &'a App,
    path: PathBuf,
    /// The job's environment with the program's own settings.
    env: Vec<(OsString, OsString)>,
    served: Served,
}

impl Resolved<'_> {
    /// Returns the number of ranks on this host.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the messages about the programs that run here; that a program gets a stand-in library is reported only with `--explain`.
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
    /// Finds all programs of a job that run on `host`, so that nothing is started if one is missing.
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
                let mut env = self.env.to_vec();
                for (name, value) in &app.env {
                    super::program::set_env(&mut env, name, value);
                }
                let path = app.resolve(&env, self.dir).map_err(StartError::Program)?;
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

    /// Starts the ranks of this host; `input` returns what a rank reads, `None` for nothing.
    ///
    /// Each rank is passed to `started` as soon as it runs, so that the code that ends jobs knows it even if a later start fails.
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
        // Only the launcher's ends are nonblocking: a program that finds its standard output nonblocking would lose output.
        let pipe = || super::link::reading_pipe().map_err(system("making a rank's output pipe"));
        let (out, to_out) = pipe()?;
        let (err, to_err) = pipe()?;
        let mut env = resolved.env.clone();
        env.extend(job.env(rank, local_rank, appnum, rank_end.as_raw_fd()));
        env.extend(sharers.map(|ranks| (SHARERS.into(), ranks.to_string().into())));
        if shares {
            rseq::do_without(&mut env);
        }
        let argv = std::iter::once(&app.program).chain(&app.args);
        let dir = app.dir_from(self.dir);
        let image = Image::new(
            resolved.path.as_os_str(),
            argv,
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

/// The processors that a rank is bound to, if any.
type Cpus = Option<Vec<usize>>;

/// Returns the processors of each rank of this host, and the machine if any rank must be bound.
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
    let mut bound: Vec<Cpus> = match machine.bind(order.binding, count) {
        Some(bound) => bound.into_iter().map(Some).collect(),
        None => vec![None; count],
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

/// The processors of a rank, and how many ranks share them.
struct RankCores<'a> {
    /// The processors that it is bound to, if any.
    cpus: Option<&'a [usize]>,
    /// The number of ranks of this host that may run there, if the rank must know it.
    sharers: Option<usize>,
    /// Whether the processors are oversubscribed.
    shares: bool,
}

/// The properties that all ranks of one job on one host share.
struct JobOnHost<'a> {
    order: &'a Order,
    local_size: usize,
    local_ranks: String,
    node: i32,
}

impl JobOnHost<'_> {
    /// Returns a rank's variables: the standard ones of PMI-1, those that scripts read, and this library's own,
    /// which spare `MPI_Init` all requests to the PMI server.
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
        let slots = room(self.order.slots, size);
        set("PORTCULLIS_UNIVERSE_SIZE", slots.to_string());
        if self.order.tolerates_deaths {
            set(SERVED, "1".to_string());
        }
        if self.order.spawned {
            set("PMI_SPAWNED", "1".to_string());
        }
        env
    }
}

impl Rank {
    /// Returns true if the rank runs on this host.
    pub fn is_here(&self) -> bool {
        self.here
    }

    /// Returns true if it lives, or has sent something that was not read yet.
    fn has_unread(&self) -> bool {
        self.alive || self.pmi.is_some() || self.stdout.is_some() || self.stderr.is_some()
    }
}

/// The processes of all jobs, by their number.
#[derive(Debug, Default)]
pub struct Ranks {
    ranks: Ledger<Rank>,
}

impl Ranks {
    /// Adds a process, whose number is the next one.
    pub fn push(&mut self, rank: Rank) -> Proc {
        Proc(self.ranks.push(rank))
    }

    /// Returns a process by its number, living or ended, unless it was forgotten.
    pub fn get(&self, proc: Proc) -> Option<&Rank> {
        self.ranks.get(proc.0)
    }

    /// Returns the processes of a job.
    pub fn of(&self, job: Job) -> impl Iterator<Item = &Rank> {
        let ranks = self.ranks.iter().map(|(_, rank)| rank);
        ranks.filter(move |rank| rank.job == job)
    }

    /// Forgets the processes of a job that has ended. Returns false while one of them may still have unread data.
    pub fn forget(&mut self, job: Job) -> bool {
        let of_job = |(_, rank): &(usize, &Rank)| rank.job == job;
        let all: Vec<usize> = self.ranks.iter().filter(of_job).map(|(n, _)| n).collect();
        let has_unread = |&n: &usize| self.ranks.get(n).is_some_and(Rank::has_unread);
        if all.iter().any(has_unread) {
            return false;
        }
        for number in all {
            self.ranks.remove(number);
        }
        true
    }

    /// Returns true if processes have been forgotten; none of those was lost.
    pub fn has_forgotten(&self) -> bool {
        self.ranks.has_forgotten()
    }

    /// The same, mutably.
    pub fn get_mut(&mut self, proc: Proc) -> Option<&mut Rank> {
        self.ranks.get_mut(proc.0)
    }

    /// Returns the number of processes so far, ended and forgotten ones included.
    pub fn count(&self) -> usize {
        self.ranks.next()
    }

    /// Returns all processes that were not forgotten, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Proc, &Rank)> {
        self.ranks.iter().map(|(n, rank)| (Proc(n), rank))
    }

    /// The same, mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Rank> {
        self.ranks.values_mut()
    }

    /// Returns the living process of this host with this pid; the kernel reuses pids of ended processes.
    pub fn by_pid(&self, pid: i32) -> Option<Proc> {
        self.iter()
            .find(|(_, rank)| rank.pid == pid && rank.alive && rank.is_here())
            .map(|(proc, _)| proc)
    }

    /// Returns true if a rank lives, on any host.
    pub fn any_alive(&self) -> bool {
        self.ranks.iter().any(|(_, rank)| rank.alive)
    }

    /// Sends a signal to the process group of each living rank of this host.
    pub fn signal(&self, signal: sys::Signal) {
        self.signal_those(signal, |_| true);
    }

    /// The same, to the ranks for which `meant` returns true.
    pub fn signal_those(&self, signal: sys::Signal, meant: impl Fn(&Rank) -> bool) {
        let meant = self.started_here().filter(|rank| meant(rank));
        meant.for_each(|rank| sys::signal_group(rank.pid, signal));
    }

    /// Returns the pids of living ranks that this host's launcher started, each the leader of a process group.
    pub fn leaders(&self) -> impl Iterator<Item = i32> {
        self.started_here().map(|rank| rank.pid)
    }

    fn started_here(&self) -> impl Iterator<Item = &Rank> {
        let ranks = self.ranks.iter().map(|(_, rank)| rank);
        ranks.filter(|rank| rank.alive && rank.is_here() && !rank.is_adopted)
    }
}
