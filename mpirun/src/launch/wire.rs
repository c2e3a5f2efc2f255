//! Protocol between launchers on different hosts: messages and framing.
//!
//! A link has two byte streams: standard input and output of a command that reaches another host.
//! The daemon first sends the line [`GREETING`]. Before this line a login shell may print any text.
//! Then frames follow: `length: u32, host: u32, body`, little-endian;
//! the body is in postcard encoding.
//! The host index is the receiver of an order ([`ALL`]: all hosts) and the sender of a report.
//! A launcher that is not the receiver forwards a frame without decoding it.
//!
//! Both sides are the same program; [`ToDaemon::Hello`] carries the version.
//! Different versions refuse each other with a message.
//!
//! Promise: no received bytes can make this module panic or use unbounded memory.

use super::binding::Binding;
use super::hold::Go;
use super::program::{App, RemoteLaunch};
use super::under::Under;
use crate::hosts::rankfile::RankPlacement;
use crate::rank_snapshot::RankSnapshot;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The first line that a daemon sends.
pub const GREETING: &[u8] = b"portcullis mpirun agent\n";

/// The version of mpirun, which must be equal on both sides.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The host index that addresses all hosts.
pub const ALL: u32 = u32::MAX;

/// The maximum body length in bytes; output pieces and environments are much shorter.
const FRAME_MAX: usize = 32 << 20;

/// The maximum length in bytes of a login shell's output before the greeting.
const NOISE_MAX: usize = 1 << 20;

/// A host and the hosts that are reached through it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub host: u32,
    pub name: String,
    pub below: Vec<Branch>,
}

impl Branch {
    /// Returns this host and all hosts that are reached through it.
    pub fn hosts(&self) -> Vec<u32> {
        let below = self.below.iter().flat_map(Branch::hosts);
        std::iter::once(self.host).chain(below).collect()
    }

    /// Builds a launch tree in which a launcher reaches at most `fanout` hosts;
    /// returns the branches whose hosts this launcher reaches itself.
    pub fn tree(hosts: &[(u32, String)], fanout: usize) -> Vec<Branch> {
        let rows = fanout.max(1).min(hosts.len());
        if rows == 0 {
            return Vec::new();
        }
        hosts
            .chunks(hosts.len().div_ceil(rows))
            .filter_map(|group| {
                let ((host, name), below) = group.split_first()?;
                Some(Branch {
                    host: *host,
                    name: name.clone(),
                    below: Branch::tree(below, fanout),
                })
            })
            .collect()
    }
}

/// The order to start a job; every host gets the same message and starts its own ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub job: usize,
    /// The name of the job's key-value space, which also names the job.
    pub kvsname: String,
    pub spawned: bool,
    /// The process index of rank 0, as in `pmi::Proc`; rank `r` has index `first + r`.
    pub first: usize,
    pub apps: Vec<App>,
    /// The program index of each rank.
    pub appnums: Vec<usize>,
    /// The host index of each rank.
    pub hosts: Vec<u32>,
    pub binding: Binding,
    /// The ranks that read standard input.
    pub readers: Vec<u32>,
    /// The total number of slots of all hosts.
    pub slots: usize,
    /// Whether the job survives the death of a rank.
    pub tolerates_deaths: bool,
    /// Whether the launcher runs the checkpoint protocol with the ranks.
    pub takes_checkpoints: bool,
    /// The ranks that run under a debugger.
    pub under: Option<Under>,
}

impl Order {
    /// Returns the placement that a rankfile assigns to a rank.
    pub fn placement(&self, rank: u32) -> Option<&RankPlacement> {
        let at = rank as usize;
        let appnum = *self.appnums.get(at)?;
        let before = self.appnums[..at].iter().filter(|other| **other == appnum);
        let placements = self.apps.get(appnum)?.placements.as_ref()?;
        placements.get(before.count())
    }

    /// Returns the ranks that run on one host.
    pub fn ranks_on(&self, host: u32) -> Vec<u32> {
        (0..)
            .zip(&self.hosts)
            .filter(|(_, on)| **on == host)
            .map(|(rank, _)| rank)
            .collect()
    }
}

/// The first message to a daemon, with its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub version: String,
    /// The daemon's host and the hosts that are reached through it.
    pub branch: Branch,
    pub remote: RemoteLaunch,
    pub grace: Duration,
    /// Whether the job survives the death of a rank.
    pub tolerates_deaths: bool,
    pub dir: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    /// The settings of images of processes, which the guard of the daemon takes.
    pub images: Option<ImagesThere>,
}

/// The settings of images of processes on another host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImagesThere {
    /// The CRIU program.
    pub program: PathBuf,
    /// The folder of the checkpoints, which all hosts share.
    pub dir: PathBuf,
    /// The time limit of each step of a checkpoint or a restart; zero is no limit.
    pub limit: Duration,
    /// The time without a message after which mpirun and this host give each other up; zero is no limit.
    pub silence: Duration,
}

/// The restart of a host's processes from images.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestoreThere {
    pub version: String,
    pub images: ImagesThere,
    /// The folder of the checkpoint.
    pub set: PathBuf,
    /// The number of the host in the checkpoint.
    pub host: u32,
    /// Whether files that have grown since the checkpoint are cut to their old length.
    pub truncates: bool,
}

/// An order of mpirun's front end to the guard of a daemon. During a checkpoint or a restore,
/// the supervisor and the daemon are silent, and these orders take the link between them.
/// New orders are added at the end, so that a guard of another version reads the earlier ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToGuard {
    /// Stop all processes of the host.
    Stop,
    /// Report whether the connections of the stopped processes are quiet.
    IsQuiet,
    /// Dump the stopped processes to a folder of the checkpoint, which is `number`.
    Dump { set: PathBuf, number: u32 },
    /// Continue the processes.
    Continue,
    /// Sync the images and report them.
    Seal,
    /// The checkpoint or the restart is over: the daemon goes on.
    Go(Go),
    /// End all processes.
    End,
    /// Check the images of a checkpoint before their restore.
    Check(Box<RestoreThere>),
    /// Restore the processes up to the point at which all their sockets exist.
    Restore,
    /// Complete the restore; the processes stay stopped.
    Resume,
    /// Undo a restore that another host has not reached.
    Undo,
    /// Cut the files that have grown since the checkpoint: all hosts have agreed to the restart.
    Cut,
}

/// A TCP connection of a host's processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The name of the process, for messages.
    pub owner: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// The state of the TCP connections of a host's stopped processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quiet {
    /// Nothing is in flight.
    Yes,
    /// The kernels have yet to acknowledge data.
    NotYet,
    /// A connection waits for the program to accept it, so the program must run.
    MustRun,
}

/// A dump or a restore that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub why: String,
    /// Whether CRIU was killed, which may have damaged the processes.
    pub is_damaged: bool,
    /// Whether a later attempt may succeed.
    pub may_repeat: bool,
}

impl Failure {
    pub fn of(why: impl Into<String>) -> Failure {
        Failure {
            why: why.into(),
            is_damaged: false,
            may_repeat: false,
        }
    }
}

/// The answer of a daemon's guard; each order but `Go` has one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromGuard {
    /// The connections of the stopped processes, or what images of them cannot contain.
    Stopped(Result<Vec<Connection>, String>),
    /// The state of the connections, and a digest of their queues.
    Quiet(Quiet, u64),
    /// The entries of the manifest about the dumped processes.
    Dumped(Result<Vec<(String, String)>, Failure>),
    /// The files as name, length and CRC-32.
    Sealed(Result<Vec<(OsString, u64, u32)>, String>),
    Done(Result<(), Failure>),
}

/// A message from the supervisor to a daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToDaemon {
    Hello(Box<Hello>),
    Launch(Box<Order>),
    /// Write these bytes to a rank's PMI socket.
    Pmi {
        proc: usize,
        bytes: Vec<u8>,
    },
    /// Standard input for the readers on the receiving host.
    Stdin(Vec<u8>),
    StdinEnd,
    /// Send this signal to all ranks.
    Signal(i32),
    /// Send this signal to all ranks to ask them to end.
    AskToEnd(i32),
    /// Kill the ranks that have no handler for the signal that asked them to end.
    KillWithoutHandler(i32),
    Kill,
    /// Send a signal to these ranks, whose job ends while other jobs continue.
    SignalRanks {
        procs: Vec<usize>,
        signal: i32,
    },
    /// Request a [`FromDaemon::Snapshots`].
    TakeSnapshots,
    /// Request a [`FromDaemon::Time`]; the value is the supervisor's clock.
    Time(u64),
    /// Request the event rings of all ranks; all ranks have ended.
    EventRings,
    /// Send everything that is queued, and be silent until the end of a checkpoint.
    Hold,
    /// An order to the guard of the daemon.
    Guard(ToGuard),
    /// Send remaining output and exit; all ranks have ended.
    Finish,
    Heartbeat,
    /// Write these bytes to a rank's PMI socket, with the memory of the receiving host for the job's program `program`.
    Welcome {
        proc: usize,
        program: u32,
        bytes: Vec<u8>,
    },
}

/// A message from a daemon to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(
    clippy::large_enum_variant,
    reason = "reports are read and handled one at a time, and never kept"
)]
pub enum FromDaemon {
    Started {
        proc: usize,
        pid: i32,
        bound: Option<String>,
    },
    /// The ranks of a job on this host could not be started.
    NotStarted {
        job: usize,
        why: String,
        code: i32,
    },
    Pmi {
        proc: usize,
        bytes: Vec<u8>,
    },
    Output {
        proc: usize,
        stderr: bool,
        bytes: Vec<u8>,
    },
    Ended {
        proc: usize,
        end: End,
        snapshot: Option<RankSnapshot>,
    },
    /// A rank that has not contacted its PMI server has loaded another MPI library.
    Loaded {
        proc: usize,
        library: String,
    },
    /// These ranks have begun to die; sent before the report of an end that they may explain.
    Dying(Vec<usize>),
    Snapshots(Vec<(usize, RankSnapshot)>),
    /// The clock value from the request, and this host's clock, in nanoseconds.
    Time {
        asked: u64,
        now: u64,
    },
    /// The next events of a rank's event ring, encoded by [`mpi_base::node::Event::words`].
    EventRing {
        proc: usize,
        lost: u64,
        events: Vec<[u64; 8]>,
    },
    /// All event rings of this host have been sent.
    EventRingsSent,
    /// The readers on this host have consumed this number of bytes of standard input.
    Fed(usize),
    /// These hosts are unreachable.
    Lost {
        hosts: Vec<u32>,
        why: String,
    },
    /// The daemon is silent until the end of a checkpoint; its guard serves the front end.
    Held,
    /// The answer of a daemon's guard.
    Guard(FromGuard),
    Heartbeat,
}

impl FromDaemon {
    /// Returns the process index in the message, if the message concerns one process.
    pub fn proc(&self) -> Option<usize> {
        match self {
            FromDaemon::Started { proc, .. }
            | FromDaemon::Pmi { proc, .. }
            | FromDaemon::Output { proc, .. }
            | FromDaemon::Ended { proc, .. }
            | FromDaemon::Loaded { proc, .. }
            | FromDaemon::EventRing { proc, .. } => Some(*proc),
            FromDaemon::NotStarted { .. }
            | FromDaemon::Dying(_)
            | FromDaemon::Snapshots(_)
            | FromDaemon::Time { .. }
            | FromDaemon::EventRingsSent
            | FromDaemon::Fed(_)
            | FromDaemon::Lost { .. }
            | FromDaemon::Held
            | FromDaemon::Guard(_)
            | FromDaemon::Heartbeat => None,
        }
    }
}

/// The end of a rank, as its host reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    Killed(i32),
    /// The rank could not execute its program.
    NeverBegan {
        errno: i32,
        step: i32,
    },
}

/// The reason why a link is given up after malformed data.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameError {
    NoGreeting { begin: String },
    TooLong { len: usize },
    ProtocolError { len: usize },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::NoGreeting { begin } => {
                write!(
                    f,
                    "it is no launcher of this version: its output begins \"{begin}\""
                )
            }
            FrameError::TooLong { len } => write!(f, "it announced a frame of {len} bytes"),
            FrameError::ProtocolError { len } => {
                write!(f, "a frame of {len} bytes is not a frame of this version")
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// Encodes a message as a frame. The result is empty if the encoding fails.
/// The encoding of a [`ToDaemon`] or [`FromDaemon`] message never fails.
pub fn frame<T: Serialize>(host: u32, message: &T) -> Vec<u8> {
    let Ok(body) = postcard::to_stdvec(message) else {
        return Vec::new();
    };
    raw_frame(host, &body)
}

/// Builds a frame from an encoded body.
pub fn raw_frame(host: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + body.len());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&host.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Decodes the body of a frame.
pub fn open<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    postcard::from_bytes(body).map_err(|_| FrameError::ProtocolError { len: body.len() })
}

/// A decoder that splits a byte stream into frames.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    greeted: bool,
}

impl Frames {
    /// Creates a decoder; `greeting` is true if the stream begins with the daemon's greeting.
    pub fn new(greeting: bool) -> Frames {
        Frames {
            bytes: Vec::new(),
            greeted: !greeting,
        }
    }

    /// Appends received bytes; frames may be split at any position.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes after the last complete frame, which another reader of the stream needs.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns true if the greeting has arrived; earlier bytes came from the login shell.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Returns the next complete frame: host index and body.
    pub fn next_frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, FrameError> {
        if !self.greeted && !self.find_greeting()? {
            return Ok(None);
        }
        let word = |at: usize| -> Option<u32> {
            let bytes = self.bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let (Some(len), Some(host)) = (word(0), word(4)) else {
            return Ok(None);
        };
        let len = len as usize;
        if len > FRAME_MAX {
            return Err(FrameError::TooLong { len });
        }
        if self.bytes.len() < 8 + len {
            return Ok(None);
        }
        let rest = self.bytes.split_off(8 + len);
        let body = std::mem::replace(&mut self.bytes, rest).split_off(8);
        Ok(Some((host, body)))
    }

    fn find_greeting(&mut self) -> Result<bool, FrameError> {
        let found = self
            .bytes
            .windows(GREETING.len())
            .position(|window| window == GREETING);
        if let Some(at) = found {
            self.bytes.drain(..at + GREETING.len());
            self.greeted = true;
            return Ok(true);
        }
        match self.bytes.len() > NOISE_MAX {
            true => Err(FrameError::NoGreeting {
                begin: mpi_core::rte::wire::shown(&self.bytes),
            }),
            false => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_shells_noise_before_the_greeting_is_passed_over() {
        let mut frames = Frames::new(true);
        frames.push(b"Welcome!\nportcullis mpirun ag");
        assert_eq!(frames.next_frame(), Ok(None));
        frames.push(b"ent\n");
        frames.push(&frame(3, &FromDaemon::Fed(7)));
        let (host, body) = frames.next_frame().unwrap().unwrap();
        assert_eq!(host, 3);
        assert!(matches!(open(&body), Ok(FromDaemon::Fed(7))));
        assert_eq!(frames.next_frame(), Ok(None));
    }

    #[test]
    fn bytes_behind_a_frame_are_left_for_the_next_reader() {
        let mut frames = Frames::new(false);
        let next = frame(1, &ToDaemon::Finish);
        frames.push(&[frame(1, &ToDaemon::Heartbeat), next.clone()].concat());
        assert!(frames.next_frame().unwrap().is_some());
        assert_eq!(frames.into_rest(), next);
    }

    #[test]
    fn every_host_is_in_the_tree_once_and_no_row_is_wider_than_asked() {
        for (count, fanout) in [(1, 1), (5, 2), (100, 3), (40, 64)] {
            let hosts: Vec<(u32, String)> = (0..count).map(|n| (n, format!("h{n}"))).collect();
            let tree = Branch::tree(&hosts, fanout);
            let mut all: Vec<u32> = tree.iter().flat_map(Branch::hosts).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            fn widest(row: &[Branch]) -> usize {
                let below = row.iter().map(|branch| widest(&branch.below));
                below.chain([row.len()]).max().unwrap_or(0)
            }
            assert!(widest(&tree) <= fanout);
        }
    }
}
