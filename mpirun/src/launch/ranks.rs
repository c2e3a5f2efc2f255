//! The ranks of one or more jobs: starting those of this host, and what is known of each while it lives.

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
    /// Whether that is this one.
    pub here: bool,
    /// Whether it was not started by this launcher but has started it: its end is seen by that of its socket, and no signals are sent to it.
    pub is_adopted: bool,
    /// Among the job's ranks of its host.
    pub local_rank: u32,
    /// 0 until a launcher elsewhere has said it.
    pub pid: i32,
    pub alive: bool,
    /// Whether another host has said that it has begun to die.
    pub is_dying: bool,
    /// Whether its job is ended while others go on: its end is a consequence of which nothing is said.
    pub is_dismissed: bool,
    /// How it has died, where the job goes on without it.
    pub lost: Option<String>,
    pub pmi: Option<Client>,
    pub stdout: Option<Stream>,
    pub stderr: Option<Stream>,
    /// What another host said last of what it does.
    pub snapshot: Option<RankSnapshot>,
}

/// A rank's side of PMI.
#[derive(Debug)]
pub struct Client {
    /// `None` where another host has it.
    pub socket: Option<PmiSocket>,
    pub lines: Lines,
}

/// Why a job could not be started.
#[derive(Debug)]
pub enum StartError {
    Program(ProgramError),
    Place(MapError),
    Node(NodeError),
    /// A rankfile binds a rank to what its host has not.
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
    /// What mpirun exits with: 126 or 127 for a program as shells have it, else 1.
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
            StartError::Place(error) => error.fmt(f),
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
    /// The environment of every rank, without what is added here.
    pub env: &'a [(OsString, OsString)],
    /// The working directory of programs that name none; `None` is this process's own.
    pub dir: Option<&'a Path>,
    /// Where a child says that it could not become its program.
    pub report: BorrowedFd<'a>,
    pub null: BorrowedFd<'a>,
    pub nofile: Option<u64>,
}

/// A rank that was just started.
pub struct Fresh {
    pub rank: u32,
    pub local_rank: u32,
    pub pid: i32,
    pub pmi: PmiSocket,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// Which processors it was bound to.
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
    /// How many ranks run here.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// What is to be said of the programs that are executed here; what gets a stand-in only if it is to be explained.
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

    /// Starts the ranks of this host; `input` says what a rank reads, where `None` is nothing.
    ///
    /// Each rank is handed to `started` as soon as it lives, so that the code that ends jobs knows it even if a later start fails.
    pub fn start(
        &self,
        order: &Order,
        resolved: &Resolved<'_>,
        node: BorrowedFd<'_>,
        mut input: impl FnMut(u32) -> io::Result<Option<OwnedFd>>,
        mut started: impl FnMut(Fresh),
    ) -> Result<(), StartError> {
        let (machine, bound) = bound(order, resolved)?;
        let roomy = resolved.count() <= Cores::of_this_process().usable;
        let numbers: Vec<usize> = resolved.ranks.iter().map(|&rank| rank as usize).collect();
        let place = Place {
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
            let room = Room {
                cpus,
                sharers,
                shares,
            };
            let mut fresh = self.start_rank(&place, identity, app, stdin, room)?;
            fresh.bound = machine.as_ref().map(|machine| match cpus {
                Some(cpus) => format!("bound to {}", machine.describe(cpus)),
                None if order.binding.to.is_none() => "not bound".to_string(),
                None => "not bound (more ranks than there are units on its host)".to_string(),
            });
            started(fresh);
        }
        Ok(())
    }

    fn start_rank(
        &self,
        place: &Place<'_>,
        (rank, local_rank, appnum): (u32, u32, usize),
        resolved: &ResolvedApp<'_>,
        stdin: Option<OwnedFd>,
        Room {
            cpus,
            sharers,
            shares,
        }: Room<'_>,
    ) -> Result<Fresh, StartError> {
        let app = resolved.app;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(system("making a rank's PMI socket"))?;
        // Only our ends do not block: a program that finds its standard output nonblocking would lose output.
        let pipe = || super::link::reading_pipe().map_err(system("making a rank's output pipe"));
        let (out, to_out) = pipe()?;
        let (err, to_err) = pipe()?;
        let mut env = resolved.env.clone();
        env.extend(place.env(rank, local_rank, appnum, theirs.as_raw_fd()));
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
                keep: &[theirs.as_raw_fd(), place.node],
                report: self.report,
                nofile: self.nofile,
                cpus,
            },
        )
        .map_err(system("starting a process"))?;
        Ok(Fresh {
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

/// The processors that a rank is bound to, if it is.
type Cpus = Option<Vec<usize>>;

/// The processors of each rank of this host, and the machine if any is to be bound.
fn bound(
    order: &Order,
    resolved: &Resolved<'_>,
) -> Result<(Option<Machine>, Vec<Cpus>), StartError> {
    let count = resolved.count();
    let seats = resolved.ranks.iter().map(|&rank| order.seat(rank));
    let seats: Vec<_> = seats
        .map(|seat| seat.filter(|seat| !seat.cores.is_empty()))
        .collect();
    if order.binding.to.is_none() && seats.iter().all(Option::is_none) {
        return Ok((None, vec![None; count]));
    }
    let machine = Machine::of_this_process();
    let mut bound: Vec<Cpus> = match machine.bind(order.binding, count) {
        Some(bound) => bound.into_iter().map(Some).collect(),
        None => vec![None; count],
    };
    for ((place, &rank), seat) in bound.iter_mut().zip(&resolved.ranks).zip(seats) {
        let Some(seat) = seat else { continue };
        let cpus = machine.pick(&seat.cores).ok_or_else(|| {
            let cores: Vec<String> = seat.cores.iter().map(ToString::to_string).collect();
            let cores = cores.join(" and ");
            StartError::NoSuchCores { rank, cores }
        })?;
        *place = Some(cpus);
    }
    Ok((Some(machine), bound))
}

/// Where a rank may run.
struct Room<'a> {
    /// If it is bound.
    cpus: Option<&'a [usize]>,
    /// How many ranks of this host may run there, if it is to be told.
    sharers: Option<usize>,
    /// Whether they are more than the processors are.
    shares: bool,
}

/// What the ranks of one job on one host have in common.
struct Place<'a> {
    order: &'a Order,
    local_size: usize,
    local_ranks: String,
    node: i32,
}

impl Place<'_> {
    /// What a rank is told about itself: the standard PMI-1 variables, those that scripts look at, and our own,
    /// which spare our library every question at start.
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
        let room = room(self.order.slots, size);
        set("PORTCULLIS_UNIVERSE_SIZE", room.to_string());
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
    /// Whether it is a child of this process.
    pub fn is_here(&self) -> bool {
        self.here
    }

    /// Whether it lives, or has said something that was not read yet.
    fn may_be_heard(&self) -> bool {
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

    /// A process by its number, whether it lives or has ended, unless it was forgotten.
    pub fn get(&self, proc: Proc) -> Option<&Rank> {
        self.ranks.get(proc.0)
    }

    /// Forgets the processes of a job that has ended well; false as long as one of them may still have something to be read.
    pub fn forget(&mut self, job: Job) -> bool {
        let of_job = |(_, rank): &(usize, &Rank)| rank.job == job;
        let all: Vec<usize> = self.ranks.iter().filter(of_job).map(|(n, _)| n).collect();
        let may_be_heard = |&n: &usize| self.ranks.get(n).is_some_and(Rank::may_be_heard);
        if all.iter().any(may_be_heard) {
            return false;
        }
        for number in all {
            self.ranks.remove(number);
        }
        true
    }

    /// Whether there have been processes that were forgotten, all of which had ended well.
    pub fn has_forgotten(&self) -> bool {
        self.ranks.has_forgotten()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, proc: Proc) -> Option<&mut Rank> {
        self.ranks.get_mut(proc.0)
    }

    /// How many there have been.
    pub fn count(&self) -> usize {
        self.ranks.next()
    }

    /// All that were not forgotten, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Proc, &Rank)> {
        self.ranks.iter().map(|(n, rank)| (Proc(n), rank))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Rank> {
        self.ranks.values_mut()
    }

    /// The process of this host that lives under a pid; pids of the dead come again.
    pub fn by_pid(&self, pid: i32) -> Option<Proc> {
        self.iter()
            .find(|(_, rank)| rank.pid == pid && rank.alive && rank.is_here())
            .map(|(proc, _)| proc)
    }

    /// Whether there is any rank to wait for, on any host.
    pub fn any_alive(&self) -> bool {
        self.ranks.iter().any(|(_, rank)| rank.alive)
    }

    /// Sends a signal to the process group of each rank of this host that lives.
    pub fn signal(&self, signal: sys::Signal) {
        self.signal_those(signal, |_| true);
    }

    /// The same, to those that are meant.
    pub fn signal_those(&self, signal: sys::Signal, meant: impl Fn(&Rank) -> bool) {
        let meant = self.started_here().filter(|rank| meant(rank));
        meant.for_each(|rank| sys::signal_group(rank.pid, signal));
    }

    /// The ranks of this host that live and were started here, each the leader of a process group.
    pub fn leaders(&self) -> impl Iterator<Item = i32> {
        self.started_here().map(|rank| rank.pid)
    }

    fn started_here(&self) -> impl Iterator<Item = &Rank> {
        let ranks = self.ranks.iter().map(|(_, rank)| rank);
        ranks.filter(|rank| rank.alive && rank.is_here() && !rank.is_adopted)
    }
}
