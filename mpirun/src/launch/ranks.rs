//! The ranks of one or more jobs: starting them, and what is known of each while it lives.

use super::output::{Stream, Target};
use super::program::{App, Plan, ProgramError};
use super::sys::{self, Image, Wiring};
use crate::pmi::{Job, Proc, Server};
use mpi_base::node::NodeError;
use mpi_core::rte::wire::Lines;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// One rank of one job.
#[derive(Debug)]
pub struct Rank {
    pub job: Job,
    pub rank: u32,
    pub size: usize,
    pub program: String,
    pub pid: i32,
    pub alive: bool,
    pub pmi: Option<Client>,
    pub stdout: Option<Stream>,
    pub stderr: Option<Stream>,
}

/// Our end of a rank's PMI socket.
#[derive(Debug)]
pub struct Client {
    pub fd: OwnedFd,
    pub lines: Lines,
}

/// What a read of a client's socket found.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Bytes,
    Nothing,
    HungUp,
}

impl Client {
    /// Reads once.
    pub fn hear(&mut self) -> Heard {
        let mut buffer = [0u8; 16 * 1024];
        // Our end is not set nonblocking, as the rank shares the socket pair's other end with libraries that expect to block;
        // each receive asks not to wait.
        match rustix::net::recv(&self.fd, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Heard::HungUp,
            Ok((got, _)) => {
                self.lines.push(&buffer[..got]);
                Heard::Bytes
            }
            Err(Errno::AGAIN | Errno::INTR) => Heard::Nothing,
            Err(_) => Heard::HungUp,
        }
    }

    /// Sends a reply; a client that does not read its replies is not waited for.
    pub fn tell(&self, bytes: &[u8]) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(&self.fd, bytes, flags) == Ok(bytes.len())
    }
}

/// Why a job could not be started.
#[derive(Debug)]
pub enum StartError {
    Program(ProgramError),
    Node(NodeError),
    System {
        doing: &'static str,
        error: io::Error,
    },
}

impl StartError {
    pub fn code(&self) -> i32 {
        match self {
            StartError::Program(error) => error.code(),
            StartError::Node(_) | StartError::System { .. } => 1,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Program(error) => error.fmt(f),
            StartError::Node(error) => error.fmt(f),
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

/// What all starts of one `mpirun` share.
pub struct Starter<'a> {
    pub plan: &'a Plan,
    /// Where a child says that it could not become its program.
    pub report: BorrowedFd<'a>,
    pub null: BorrowedFd<'a>,
    pub nofile: Option<u64>,
}

/// A job whose programs have been found.
pub struct Resolved<'a> {
    apps: Vec<ResolvedApp<'a>>,
}

struct ResolvedApp<'a> {
    app: &'a App,
    path: PathBuf,
    /// The job's environment with the program's own settings.
    env: Vec<(OsString, OsString)>,
}

impl Starter<'_> {
    /// Finds all programs of a job, so that nothing is started if one is missing.
    pub fn resolve<'a>(&self, apps: &'a [App]) -> Result<Resolved<'a>, StartError> {
        let apps = apps
            .iter()
            .map(|app| {
                let mut env = self.plan.env.clone();
                for (name, value) in &app.env {
                    super::program::set_env(&mut env, name, value);
                }
                let path = app.resolve(&env).map_err(StartError::Program)?;
                Ok(ResolvedApp { app, path, env })
            })
            .collect::<Result<_, StartError>>()?;
        Ok(Resolved { apps })
    }

    /// Starts all ranks of a job; `stdin` goes to rank 0.
    ///
    /// Each rank is handed to `started` as soon as it lives, so that whoever ends jobs knows it even if a later start fails.
    pub fn start(
        &self,
        server: &Server,
        job: Job,
        resolved: &Resolved<'_>,
        node: BorrowedFd<'_>,
        stdin: BorrowedFd<'_>,
        mut started: impl FnMut(Rank),
    ) -> Result<(), StartError> {
        let size = server.procs(job).len();
        let mut rank = 0;
        for (appnum, app) in resolved.apps.iter().enumerate() {
            for _ in 0..app.app.procs {
                let input = if rank == 0 { stdin } else { self.null };
                let place = Place {
                    job,
                    rank,
                    size,
                    appnum,
                };
                started(self.start_rank(server, &place, app, node, input)?);
                rank += 1;
            }
        }
        Ok(())
    }

    fn start_rank(
        &self,
        server: &Server,
        place: &Place,
        resolved: &ResolvedApp<'_>,
        node: BorrowedFd<'_>,
        stdin: BorrowedFd<'_>,
    ) -> Result<Rank, StartError> {
        let app = resolved.app;
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(system("making a rank's PMI socket"))?;
        let (out, to_out) = output_pipe()?;
        let (err, to_err) = output_pipe()?;
        let mut env = resolved.env.clone();
        env.extend(place.env(server, theirs.as_raw_fd(), node.as_raw_fd()));
        let argv = std::iter::once(&app.program).chain(&app.args);
        let dir = app.dir.as_ref().map(|dir| dir.as_os_str());
        let image = Image::new(
            resolved.path.as_os_str(),
            argv,
            env.iter().map(|(n, v)| (n, v)),
            dir,
        )
        .map_err(system("preparing a program's arguments"))?;
        let pid = sys::start(
            &image,
            &Wiring {
                stdin,
                stdout: to_out.as_fd(),
                stderr: to_err.as_fd(),
                keep: &[theirs.as_raw_fd(), node.as_raw_fd()],
                report: self.report,
                nofile: self.nofile,
            },
        )
        .map_err(system("starting a process"))?;
        let tag = |name: &str| match self.plan.tag_output {
            true => format!("[{},{}]<{name}>: ", place.job.0 + 1, place.rank),
            false => String::new(),
        };
        Ok(Rank {
            job: place.job,
            rank: place.rank,
            size: place.size,
            program: app.program.to_string_lossy().into_owned(),
            pid,
            alive: true,
            pmi: Some(Client {
                fd: ours,
                lines: Lines::default(),
            }),
            stdout: Some(Stream::new(out, Target::Stdout, tag("stdout"))),
            stderr: Some(Stream::new(err, Target::Stderr, tag("stderr"))),
        })
    }
}

/// Which rank of which job.
struct Place {
    job: Job,
    rank: u32,
    size: usize,
    appnum: usize,
}

impl Place {
    /// What a rank is told about itself: the standard PMI-1 variables, those that scripts look at, and our own,
    /// which spare our library every question at start.
    fn env(&self, server: &Server, pmi: i32, node: i32) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = Vec::with_capacity(12);
        let mut set = |name: &str, value: String| env.push((name.into(), value.into()));
        set("PMI_FD", pmi.to_string());
        set("PMI_RANK", self.rank.to_string());
        set("PMI_SIZE", self.size.to_string());
        set("MPI_LOCALRANKID", self.rank.to_string());
        set("MPI_LOCALNRANKS", self.size.to_string());
        set("PORTCULLIS_NODE_FD", node.to_string());
        set("PORTCULLIS_LOCAL_RANK", self.rank.to_string());
        set("PORTCULLIS_LOCAL_SIZE", self.size.to_string());
        set("PORTCULLIS_JOB", server.kvsname(self.job).to_string());
        set("PORTCULLIS_APPNUM", self.appnum.to_string());
        set("PORTCULLIS_UNIVERSE_SIZE", self.size.to_string());
        if server.is_spawned(self.job) {
            set("PMI_SPAWNED", "1".to_string());
        }
        env
    }
}

fn output_pipe() -> Result<(OwnedFd, OwnedFd), StartError> {
    let (read, write) =
        pipe_with(PipeFlags::CLOEXEC).map_err(system("making a rank's output pipe"))?;
    // Only our end: a program that finds its standard output nonblocking would lose output.
    rustix::io::ioctl_fionbio(&read, true).map_err(system("making a rank's output pipe"))?;
    Ok((read, write))
}

/// The processes of all jobs, by their number.
#[derive(Debug, Default)]
pub struct Ranks {
    ranks: Vec<Rank>,
}

impl Ranks {
    pub fn push(&mut self, rank: Rank) -> Proc {
        self.ranks.push(rank);
        Proc(self.ranks.len() - 1)
    }

    pub fn get(&self, proc: Proc) -> Option<&Rank> {
        self.ranks.get(proc.0)
    }

    pub fn get_mut(&mut self, proc: Proc) -> Option<&mut Rank> {
        self.ranks.get_mut(proc.0)
    }

    /// How many there have been.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Proc, &Rank)> {
        self.ranks
            .iter()
            .enumerate()
            .map(|(n, rank)| (Proc(n), rank))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Rank> {
        self.ranks.iter_mut()
    }

    pub fn by_pid(&self, pid: i32) -> Option<Proc> {
        self.iter()
            .find(|(_, rank)| rank.pid == pid && rank.alive)
            .map(|(proc, _)| proc)
    }

    pub fn any_alive(&self) -> bool {
        self.ranks.iter().any(|rank| rank.alive)
    }

    /// Sends a signal to the process group of each rank that lives.
    pub fn signal(&self, signal: sys::Signal) {
        for rank in self.ranks.iter().filter(|rank| rank.alive) {
            sys::signal_group(rank.pid, signal);
        }
    }
}
