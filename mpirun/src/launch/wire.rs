//! The messages between launchers on different hosts, and their framing.
//!
//! A link is the standard input and output of a command that reaches another host: a byte stream in each direction.
//! The far side begins with a line, [`GREETING`], before which it may be noisy, as login shells are. Then frames follow:
//! `length: u32, host: u32, body`, little-endian, the body in postcard's encoding.
//! The host is the addressee on the way down ([`ALL`]: all hosts) and the sender on the way up;
//! a launcher that is not the addressee forwards a frame without decoding it.
//!
//! Both sides are the same program; [`ToDaemon::Hello`] carries the version, so that different versions refuse each other with a message.
//!
//! Promise: no sequence of bytes from the other side makes anything here panic or grow without bound.

use super::binding::Binding;
use super::program::{App, RemoteLaunch};
use super::under::Under;
use crate::hosts::rankfile::RankPlacement;
use crate::rank_snapshot::RankSnapshot;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The first line of the far side.
pub const GREETING: &[u8] = b"portcullis mpirun agent\n";

/// The version that both sides must have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The address of all hosts below.
pub const ALL: u32 = u32::MAX;

/// The longest frame; output comes in much shorter ones, and no environment is as long.
const FRAME_MAX: usize = 32 << 20;

/// The longest noise before a greeting.
const NOISE_MAX: usize = 1 << 20;

/// A host and the hosts that are reached through it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub host: u32,
    pub name: String,
    pub below: Vec<Branch>,
}

impl Branch {
    /// Returns this host and all hosts below it.
    pub fn hosts(&self) -> Vec<u32> {
        let below = self.below.iter().flat_map(Branch::hosts);
        std::iter::once(self.host).chain(below).collect()
    }

    /// Builds a tree in which each host reaches at most `fanout` others; returns the first row.
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

/// A job to start, the same message for every host: each host starts its own ranks from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub job: usize,
    /// The name of the job.
    pub kvsname: String,
    pub spawned: bool,
    /// The process number of rank 0; the other ranks follow.
    pub first: usize,
    pub apps: Vec<App>,
    /// The program of each rank.
    pub appnums: Vec<usize>,
    /// The host of each rank.
    pub hosts: Vec<u32>,
    pub binding: Binding,
    /// Ranks that get standard input.
    pub readers: Vec<u32>,
    /// The number of slots of all hosts.
    pub slots: usize,
    /// Whether the death of a rank does not end the job.
    pub tolerates_deaths: bool,
    /// Whether the launcher agrees with the ranks on checkpoints.
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

    /// Returns the ranks of one host.
    pub fn ranks_on(&self, host: u32) -> Vec<u32> {
        (0..)
            .zip(&self.hosts)
            .filter(|(_, on)| **on == host)
            .map(|(rank, _)| rank)
            .collect()
    }
}

/// The settings that a host gets once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub version: String,
    /// The addressee, and the hosts that are reached through it.
    pub branch: Branch,
    pub remote: RemoteLaunch,
    pub grace: Duration,
    /// Whether the death of a rank does not end the job.
    pub tolerates_deaths: bool,
    pub dir: PathBuf,
    pub env: Vec<(OsString, OsString)>,
}

/// A message from the launcher that the user started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToDaemon {
    Hello(Box<Hello>),
    Launch(Box<Order>),
    /// Bytes for a process's PMI socket.
    Pmi {
        proc: usize,
        bytes: Vec<u8>,
    },
    /// Standard input for the readers of that host.
    Stdin(Vec<u8>),
    StdinEnd,
    /// A signal for all ranks.
    Signal(i32),
    /// The same, where the signal asks all ranks to end.
    AskToEnd(i32),
    /// Kill the ranks that do not handle the signal that asked them to end.
    KillWithoutHandler(i32),
    Kill,
    /// A signal for these ranks, whose job ends while others go on.
    SignalRanks {
        procs: Vec<usize>,
        signal: i32,
    },
    /// Asks for a [`FromDaemon::Snapshots`].
    TakeSnapshots,
    /// Asks for a [`FromDaemon::Time`]; carries the sender's clock.
    Time(u64),
    /// Asks for the event rings of all ranks, which have ended.
    EventRings,
    /// All ranks have ended: send what is left and exit.
    Finish,
    Heartbeat,
}

/// A message to the launcher that the user started.
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
    /// The ranks of a job on this host cannot be started.
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
    /// A rank that has not spoken to its PMI server has loaded another MPI library.
    Loaded {
        proc: usize,
        library: String,
    },
    /// Ranks that have begun to die: sent before the end of another rank that they may explain.
    Dying(Vec<usize>),
    Snapshots(Vec<(usize, RankSnapshot)>),
    /// The clock in the request, and the clock of this host.
    Time {
        asked: u64,
        now: u64,
    },
    /// The next piece of a rank's event ring, events as [`mpi_base::node::Event::words`] encodes them.
    EventRing {
        proc: usize,
        lost: u64,
        events: Vec<[u64; 8]>,
    },
    /// All event rings of this host have been sent.
    EventRingsSent,
    /// The readers have taken this number of bytes of standard input.
    Fed(usize),
    /// Hosts that are unreachable.
    Lost {
        hosts: Vec<u32>,
        why: String,
    },
    Heartbeat,
}

impl FromDaemon {
    /// Returns the process that the message is about, if it is about one.
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
            | FromDaemon::Heartbeat => None,
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Exited(i32),
    Killed(i32),
    /// It could not execute its program.
    NeverBegan {
        errno: i32,
        step: i32,
    },
}

/// The reason why a link is given up.
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

/// Encodes a frame; empty if the message cannot be encoded, which no message of [`ToDaemon`] or [`FromDaemon`] is.
pub fn frame<T: Serialize>(host: u32, message: &T) -> Vec<u8> {
    let Ok(body) = postcard::to_stdvec(message) else {
        return Vec::new();
    };
    raw_frame(host, &body)
}

/// Builds a frame around an encoded body that is forwarded.
pub fn raw_frame(host: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + body.len());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&host.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Decodes a frame's body.
pub fn open<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    postcard::from_bytes(body).map_err(|_| FrameError::ProtocolError { len: body.len() })
}

/// Cuts a byte stream into frames.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    greeted: bool,
}

impl Frames {
    /// A stream that begins with the greeting, as the far side's does, or without one.
    pub fn new(greeting: bool) -> Frames {
        Frames {
            bytes: Vec::new(),
            greeted: !greeting,
        }
    }

    /// Adds received bytes, cut at any place.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns true if the greeting has arrived; anything before it came from the login shell.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Returns the next complete frame: host and body.
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
