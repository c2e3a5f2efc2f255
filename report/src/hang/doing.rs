//! Text about what a rank is doing.

use super::Seen;
use crate::rank_snapshot::{
    AtWindow, Comm, InFile, Partner, Round, Stage, ThreadWait, Waiting, WindowNeed,
};
use printable::name;
use std::fmt;
use std::time::Duration;

/// The text before the cause of death of a lost rank.
pub(super) const DEAD: &str = "is dead; it ";

impl Seen {
    /// Describes in words what the rank is doing, without its number:
    /// "waits in MPI_Recv from rank 5, tag 7, for 31 s".
    pub fn doing(&self) -> String {
        if let Some(how) = &self.lost {
            return format!("{DEAD}{how}");
        }
        let Some(snapshot) = &self.snapshot else {
            return "cannot be seen".into();
        };
        if !self.alive {
            return match snapshot.stage {
                Stage::Finalized => "has ended, after MPI_Finalize".into(),
                _ => "has ended".into(),
            };
        }
        let Some(call) = &snapshot.call else {
            if let (Stage::Starting, Some(at)) = (snapshot.stage, &snapshot.in_file) {
                return in_file(at, "MPI_Init");
            }
            let computes = match snapshot.stopped {
                Some(how) => format!("is {how}"),
                None => "computes".into(),
            };
            return match (snapshot.stage, &snapshot.last_call) {
                (Stage::Before, _) => "has not called MPI_Init".into(),
                (Stage::Finalized, _) => "has called MPI_Finalize".into(),
                (_, Some(last)) => format!("{computes}; its last MPI call was {last}"),
                (_, None) => computes,
            };
        };
        if let Some(at) = &snapshot.in_file {
            return in_file(at, call);
        }
        if snapshot.has_several_waits() {
            return of_threads(&snapshot.threads);
        }
        let mut text = match (&snapshot.waiting, snapshot.in_round()) {
            (Some(Waiting::Collective), Some(round)) => {
                format!("waits in {call} for {}", DisplayRound(round))
            }
            (Some(waiting), _) => {
                let begun = snapshot.begun.as_deref();
                format!("waits in {}", in_call(call, waiting, begun))
            }
            // A fence is a barrier on the window's own communicator.
            (None, Some(round)) if call.starts_with("MPI_Win_") => {
                format!("waits in {call} ({})", DisplayRound(round))
            }
            (None, Some(round)) => format!("waits in {}", DisplayRound(round)),
            (None, None) => format!("is in {call}"),
        };
        if let Some(waited) = snapshot.waited {
            text += &match &snapshot.waiting {
                Some(Waiting::Window(at)) if at.is_outside => {
                    let whose = match at.holder {
                        Some(_) => "which".to_owned(),
                        None => format!("and rank {}", at.rank),
                    };
                    format!(", {whose} has been outside MPI for {}", Seconds(waited))
                }
                _ => format!(", for {}", Seconds(waited)),
            };
        }
        if let Some(how) = snapshot.stopped {
            text += &format!(", and is {how}");
        }
        text
    }
}

/// Describes a rank in a system call on a file, or in a function of a plugin file.
fn in_file(at: &InFile, call: &str) -> String {
    let (since, name) = (Seconds(at.since), name(&at.name));
    format!("is in {} of {name} since {since}, in {call}", at.call)
}

/// Describes the waits of several threads:
/// "waits in 2 threads: thread 71 in MPI_Recv from rank 5, tag 7, for 31 s; thread 72 in MPI_Barrier, for 31 s".
fn of_threads(threads: &[ThreadWait]) -> String {
    let of_one = |wait: &ThreadWait| {
        let what = match &wait.waiting {
            Some(waiting) => in_call(&wait.call, waiting, wait.begun.as_deref()),
            None => wait.call.clone(),
        };
        format!(
            "thread {} in {what}, for {}",
            wait.thread,
            Seconds(wait.waited)
        )
    };
    let all: Vec<String> = threads.iter().map(of_one).collect();
    match all.as_slice() {
        [one] => format!("waits in {one}"),
        all => format!("waits in {} threads: {}", all.len(), all.join("; ")),
    }
}

/// Describes a wait in a call: "MPI_Recv from rank 5, tag 7".
fn in_call(call: &str, waiting: &Waiting, begun: Option<&str>) -> String {
    if !is_for_requests(call) || matches!(waiting, Waiting::Any { .. }) {
        return format!("{call} {waiting}");
    }
    let what = match (begun, waiting) {
        (Some(begun), _) => format!("its {begun}"),
        (None, Waiting::Send(_)) => "its message".to_owned(),
        (None, _) => "a message".to_owned(),
    };
    let requests = match waiting {
        Waiting::Send(partner) | Waiting::Recv(partner) => partner.requests,
        _ => 1,
    };
    format!("{call} for {what} {waiting}{}", OneOf(requests))
}

/// Returns true if a call completes requests of earlier calls, by its name.
fn is_for_requests(call: &str) -> bool {
    ["MPI_Wait", "MPI_Test"]
        .iter()
        .any(|those| call.starts_with(those))
}

/// Formats a collective operation: "MPI_Bcast #12 on MPI_COMM_WORLD, from rank 0 of 400 bytes".
pub(super) struct DisplayRound<'a>(pub(super) &'a Round);

impl fmt::Display for DisplayRound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Round {
            comm, number, what, ..
        } = self.0;
        match what.split_once(' ') {
            None => write!(f, "{what} #{number} on {comm}"),
            Some((name, rest)) => write!(f, "{name} #{number} on {comm}, {rest}"),
        }
    }
}

struct OneOf(u32);

impl fmt::Display for OneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 | 1 => Ok(()),
            many => write!(f, ", the first of {many} requests that are open"),
        }
    }
}

/// Formats a duration in seconds, with tenths below ten seconds.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0..10 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            seconds => write!(f, "{seconds} s"),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::Send(partner) => write!(f, "to {partner}, {} bytes", partner.bytes),
            Waiting::Recv(partner) => write!(f, "from {partner}"),
            Waiting::RecvAny { comm, tag } => {
                write!(f, "from any rank")?;
                if *comm != Comm::WORLD {
                    write!(f, " of {comm}")?;
                }
                write!(f, "{}", Tag(*tag))
            }
            Waiting::Collective => write!(f, "for the other members"),
            Waiting::Any { requests } => write!(f, "for one of {requests} requests"),
            Waiting::Window(at) => at.fmt(f),
        }
    }
}

impl fmt::Display for AtWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AtWindow { rank, .. } = self;
        let window = match self.name.as_str() {
            "" => "a window without a name".to_owned(),
            given => format!("window {}", name(given)),
        };
        match (self.need, self.holder) {
            (WindowNeed::Lock, Some(holder)) => write!(
                f,
                "for the lock of rank {rank} of {window}, held by rank {holder} of the job"
            ),
            (WindowNeed::Lock, None) => write!(f, "for the lock of rank {rank} of {window}"),
            (WindowNeed::Post, _) => write!(f, "for rank {rank} to call MPI_Win_post on {window}"),
            (WindowNeed::Complete, _) => {
                write!(f, "for rank {rank} to call MPI_Win_complete on {window}")
            }
            (WindowNeed::Answer, _) => {
                write!(f, "for rank {rank} to carry out accesses to {window}")
            }
            (WindowNeed::Unknown, _) => write!(f, "for rank {rank} of {window}"),
        }
    }
}

impl fmt::Display for Partner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if self.comm != Comm::WORLD {
            write!(f, " of {}", self.comm)?;
            if self.rank != self.job_rank {
                write!(f, " (rank {} of the job)", self.job_rank)?;
            }
        }
        write!(f, "{}", Tag(self.tag))
    }
}

struct Tag(Option<i32>);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(tag) => write!(f, ", tag {tag}"),
            None => write!(f, ", any tag"),
        }
    }
}
