//! Snapshot of a rank's state: launchers exchange snapshots, and reports are made from them.
//!
//! A snapshot is a host-independent form of a rank's state page ([`mpi_base::state`]).
//! Start times become durations, and call numbers become names.

use mpi_base::state::{self, About, AboutWindow, NO_PEER, Phase, State, Threads, Waits};
use mpi_core::coll::CallSignature;
use mpi_core::pml::Context;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The stage of a rank between start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The rank has not reached `MPI_Init`; its program may not use MPI.
    Before,
    Starting,
    Running,
    Finalized,
}

/// The latest collective operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    pub comm: Comm,
    /// The operation's number on its communicator; the first operation has number 1.
    pub number: u64,
    /// The function and the arguments that must match at all members: "MPI_Ibcast from rank 0 of 400 bytes".
    pub what: String,
    /// The number of members of the communicator.
    pub members: u32,
    /// True if the rank is in a call that returns when the operation is complete.
    pub inside: bool,
}

/// A communicator, identified by a number that is the same at all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Comm(pub u64);

impl Comm {
    /// The number of `MPI_COMM_WORLD` in every job.
    pub const WORLD: Comm = Comm(0);
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, Context::chosen(self.0)) {
            (Comm::WORLD, _) => write!(f, "MPI_COMM_WORLD"),
            (_, (_, 1)) => write!(f, "MPI_COMM_SELF"),
            (_, (chooser, serial)) => write!(f, "communicator {chooser}.{serial}"),
        }
    }
}

/// The event that a rank waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// The receiver must receive a message that this rank sends.
    Send(Partner),
    /// A message must arrive from a given rank.
    Recv(Partner),
    /// A message must arrive from any source.
    RecvAny { comm: Comm, tag: Option<i32> },
    /// The other members must act in a nonblocking collective operation.
    Collective,
    /// One of several requests must complete; `requests` is the number of requests.
    Any { requests: u32 },
    /// A member of a window must act.
    Window(Box<AtWindow>),
}

/// A rank's wait for a member of an RMA window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtWindow {
    /// The window's name; empty for a window without a name.
    pub name: String,
    /// The member that must act, by its rank in the window.
    pub rank: u32,
    pub job_rank: u32,
    pub need: WindowNeed,
    /// The rank in the job of the holder of the requested lock.
    pub holder: Option<u32>,
    /// The needed rank's [`RankSnapshot::calls`] when the wait began, if known. The needed
    /// rank is the holder of the lock; if there is no holder, it is the member `job_rank`.
    pub calls: Option<u64>,
    /// True if the needed rank is outside MPI and has made no call since the wait began.
    pub is_outside: bool,
}

/// The action of a window's member that ends the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowNeed {
    Lock,
    Post,
    Complete,
    Answer,
    Unknown,
}

/// The other rank of a message, and the message's properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partner {
    pub comm: Comm,
    /// The other rank in the communicator; `job_rank` is the same process's rank in the job.
    pub rank: u32,
    pub job_rank: u32,
    pub tag: Option<i32>,
    pub bytes: u64,
    /// The number of requests that the call waits for, including this one.
    pub requests: u32,
}

/// The state of a hardware-barrier wire, as the rank that drives the wire knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    pub wire: u32,
    /// The number of barriers that the rank has entered; `released` is the number that it has left.
    pub entered: u64,
    pub released: u64,
}

/// The system call on a file that a rank is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFile {
    /// The name of the system call: "pwrite".
    pub call: String,
    /// The file's name, or the end of a long name.
    pub name: String,
    pub since: Duration,
}

/// The latest poll of a waiting rank that found nothing; see [`mpi_base::state::Quiet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    pub waits: u64,
    /// The first sleep since the latest arrival, by the host's clock.
    pub since_ns: u64,
    /// The start of the poll by the host's clock; `taken_ns` is the time of the snapshot.
    pub checked_ns: u64,
    pub taken_ns: u64,
    /// The number of messages sent by transports that count their messages.
    /// `received` is the number of messages that these transports have received.
    pub sent: u64,
    pub received: u64,
    /// True if an event from outside this job may end the wait.
    pub is_open: bool,
    /// True if each other thread of the process waits for a thread of the same process.
    /// The launcher on the rank's host determines this.
    pub others_sleep: bool,
    /// The number of context switches of these threads; it changes if one of them runs.
    #[serde(default)]
    pub switches: u64,
}

impl Quiet {
    fn of(quiet: &state::Quiet, now_ns: u64) -> Option<Quiet> {
        (quiet.checked_ns > 0).then_some(Quiet {
            waits: quiet.waits,
            since_ns: quiet.since_ns,
            checked_ns: quiet.checked_ns,
            taken_ns: now_ns,
            sent: quiet.sent,
            received: quiet.received,
            is_open: quiet.is_open,
            others_sleep: false,
            switches: 0,
        })
    }
}

/// The long wait of one thread, in a rank whose messages have lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadWait {
    /// The kernel's ID of the thread.
    pub thread: u32,
    pub lane: u32,
    /// The name of the MPI call in which the thread waits.
    pub call: String,
    /// The event that the thread waits for, if it is known.
    pub waiting: Option<Waiting>,
    /// As [`RankSnapshot::begun`].
    pub begun: Option<String>,
    pub waited: Duration,
}

/// The state of a rank at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankSnapshot {
    pub stage: Stage,
    /// The name of the current MPI call.
    pub call: Option<String>,
    /// The name of the previous MPI call.
    pub last_call: Option<String>,
    /// The number of MPI calls entered plus the number of MPI calls left.
    pub calls: u64,
    /// The event that the rank waits for; `None` if it does not wait or has just begun to wait.
    pub waiting: Option<Waiting>,
    /// The name of the function that began the request for which the rank waits, if it is known.
    pub begun: Option<String>,
    /// The time since the wait in the current call began.
    pub waited: Option<Duration>,
    pub round: Option<Round>,
    pub gate: Option<Gate>,
    /// The system call on a file that the rank is in.
    #[serde(default)]
    pub in_file: Option<Box<InFile>>,
    /// The counter that the rank's engine increments when it makes progress.
    pub progress: u64,
    /// The latest poll that found nothing; `None` if the rank has never slept in a wait.
    #[serde(default)]
    pub quiet: Option<Quiet>,
    /// The long waits of the rank's threads, the longest first; empty if messages have no lanes.
    #[serde(default)]
    pub threads: Vec<ThreadWait>,
    /// The reason why the rank's process does not run; `None` if it may run.
    #[serde(default)]
    pub stopped: Option<Stopped>,
}

/// The reason why a process is stopped: the states `T` and `t` of proc(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// By a signal such as SIGSTOP.
    BySignal,
    /// By a debugger.
    ByDebugger,
}

impl Stopped {
    /// Returns the reason from the content of `/proc/PID/stat`.
    pub fn of(stat: &str) -> Option<Stopped> {
        // The program's name is in parentheses, and may contain some itself.
        let (_, fields) = stat.rsplit_once(") ")?;
        match fields.chars().next()? {
            'T' => Some(Stopped::BySignal),
            't' => Some(Stopped::ByDebugger),
            _ => None,
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stopped::BySignal => "stopped by a signal",
            Stopped::ByDebugger => "stopped by a debugger",
        })
    }
}

impl Waiting {
    fn of(about: &About, at_window: Option<&AboutWindow>) -> Option<Waiting> {
        let comm = Comm(about.comm);
        let tag = (about.tag >= 0).then_some(about.tag);
        let partner = || Partner {
            comm,
            rank: about.peer as u32,
            job_rank: about.proc as u32,
            tag,
            bytes: about.bytes,
            requests: about.requests,
        };
        match about.waits {
            Waits::Nothing => None,
            Waits::Send => Some(Waiting::Send(partner())),
            Waits::Recv if about.peer == NO_PEER => Some(Waiting::RecvAny { comm, tag }),
            Waits::Recv => Some(Waiting::Recv(partner())),
            Waits::Collective => Some(Waiting::Collective),
            Waits::Any => Some(Waiting::Any {
                requests: about.requests,
            }),
            Waits::Window => at_window.map(|at| Waiting::Window(Box::new(AtWindow::of(about, at)))),
        }
    }
}

impl AtWindow {
    fn of(about: &About, about_window: &AboutWindow) -> AtWindow {
        let need = match about_window.need {
            state::WindowNeed::Lock => WindowNeed::Lock,
            state::WindowNeed::Post => WindowNeed::Post,
            state::WindowNeed::Complete => WindowNeed::Complete,
            state::WindowNeed::Answer => WindowNeed::Answer,
            state::WindowNeed::Unknown => WindowNeed::Unknown,
        };
        AtWindow {
            name: about_window.name.clone(),
            rank: about.peer as u32,
            job_rank: about.proc as u32,
            need,
            holder: about_window.on.filter(|_| need == WindowNeed::Lock),
            calls: about_window.on.map(|_| about_window.calls),
            is_outside: false,
        }
    }

    /// Returns the rank in the job that must act to end the wait.
    pub fn needed(&self) -> u32 {
        self.holder.unwrap_or(self.job_rank)
    }
}

impl RankSnapshot {
    /// Converts a state page; `now_ns` is the present time by the page's clock,
    /// `name` returns the name of a call number.
    pub fn of(state: &State, now_ns: u64, name: impl Fn(u16) -> String) -> RankSnapshot {
        let call = |number: u16| (number != 0).then(|| name(number));
        let round = &state.collective;
        RankSnapshot {
            stage: match state.phase {
                Phase::Absent => Stage::Before,
                Phase::Starting => Stage::Starting,
                Phase::Running => Stage::Running,
                Phase::Finalized => Stage::Finalized,
            },
            call: call(state.call),
            last_call: call(state.last_call),
            calls: state.calls,
            waiting: Waiting::of(&state.about, state.at_window.as_ref()),
            begun: call(state.about.begun),
            waited: (state.since_ns > 0)
                .then(|| Duration::from_nanos(now_ns.saturating_sub(state.since_ns))),
            round: (round.round > 0).then(|| Round {
                comm: Comm(round.comm),
                number: round.round,
                what: CallSignature::from_words(&round.signature).to_string(),
                members: round.members,
                inside: round.inside,
            }),
            gate: state.barrier_wire.map(|gate| Gate {
                wire: gate.wire,
                entered: gate.entered,
                released: gate.released,
            }),
            in_file: state.in_file.as_ref().map(|at| {
                Box::new(InFile {
                    call: at.call.name().into(),
                    name: at.name.clone(),
                    since: Duration::from_nanos(now_ns.saturating_sub(at.since_ns)),
                })
            }),
            progress: state.progress,
            quiet: Quiet::of(&state.quiet, now_ns),
            threads: Vec::new(),
            stopped: None,
        }
    }

    /// Adds the waits of the rank's threads.
    /// If the rank is in no call of lane 0, its call and its wait are those of the longest waiting thread.
    #[must_use]
    pub fn with_threads(
        mut self,
        threads: &Threads,
        now_ns: u64,
        name: impl Fn(u16) -> String,
    ) -> RankSnapshot {
        // The state page describes the latest call of lane 0 only.
        let in_base = threads.waits.iter().filter(|wait| wait.lane == 0).count();
        let of_thread = |wait: &state::ThreadWait| {
            let begun = (wait.about.begun != 0).then(|| name(wait.about.begun));
            let (waiting, begun) = match wait.lane {
                0 if in_base == 1 && self.call == Some(name(wait.call)) => {
                    (self.waiting.clone(), self.begun.clone())
                }
                0 => (None, None),
                _ => (Waiting::of(&wait.about, None), begun),
            };
            ThreadWait {
                thread: wait.thread,
                lane: wait.lane,
                call: name(wait.call),
                waiting,
                begun,
                waited: Duration::from_nanos(now_ns.saturating_sub(wait.since_ns)),
            }
        };
        let all: Vec<ThreadWait> = threads.waits.iter().map(of_thread).collect();
        if let Some(longest) = all.first() {
            if self.call.is_none() {
                self.call = Some(longest.call.clone());
                (self.waiting, self.begun) = (longest.waiting.clone(), longest.begun.clone());
            }
            self.waited = self.waited.or(Some(longest.waited));
        }
        self.progress = self.progress.wrapping_add(threads.events);
        let waits = self.quiet.map_or(0, |quiet| quiet.waits);
        self.quiet = Quiet::of(&threads.quiet, now_ns).map(|quiet| Quiet {
            waits: quiet.waits.wrapping_add(waits),
            ..quiet
        });
        self.threads = all;
        self
    }

    /// Returns true if several threads of the rank wait, or one that is not in the rank's latest call.
    pub fn has_several_waits(&self) -> bool {
        match self.threads.as_slice() {
            [] => false,
            [one] => self.call.as_ref() != Some(&one.call),
            _ => true,
        }
    }

    /// Returns the blocking or nonblocking collective operation that the rank waits in, if any.
    pub fn in_round(&self) -> Option<&Round> {
        let waits = self.waiting == Some(Waiting::Collective);
        let round = self.round.as_ref()?;
        (self.call.is_some() && (round.inside || waits)).then_some(round)
    }
}
