//! Error messages about the end of a rank: rank, host, cause and last MPI call.

use super::sys::{Ended, signal_name};
use crate::rank_snapshot::{RankSnapshot, Stage};
use mpi_abi::abi::MPI_ERR_PROC_ABORTED;
use printable::name;
use std::fmt;

/// The rank that a message is about.
#[derive(Clone, Debug)]
pub struct NamedRank {
    pub rank: u32,
    pub size: usize,
    /// The index of the rank's job: 0 is the launched job, others are spawned.
    pub job: usize,
    /// The process id; 0 until the rank's host has reported the start.
    pub pid: i32,
    pub program: String,
    pub host: String,
}

impl fmt::Display for NamedRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if self.job > 0 {
            write!(f, " of spawned job {}", self.job)?;
        }
        write!(f, " (of {}; {}, ", self.size, name(&self.program))?;
        match self.pid {
            0 => write!(f, "not started")?,
            pid => write!(f, "pid {pid}")?,
        }
        write!(f, ") on {}", name(&self.host))
    }
}

/// The reason why a job ends early.
#[derive(Clone, Debug)]
pub enum Cause {
    Died(Ended),
    /// The rank called `MPI_Init` and exited with 0 without `MPI_Finalize`.
    NotFinalized,
    /// The rank exited with 0 without `MPI_Init`, which other ranks have called.
    NotInitialized,
    /// The spawned rank exited with 0 without `MPI_Init`, for which its parent waits.
    NotInitializedChild,
    Aborted {
        code: i32,
        message: Option<String>,
    },
    /// The rank ended without entering a barrier in which other ranks wait.
    LeftOthersWaiting {
        waiting: Vec<u32>,
    },
    ProtocolError(String),
    /// The rank's host is unreachable.
    HostLost {
        host: String,
        why: String,
    },
}

/// The likelihood that a rank's end caused the ends of other ranks, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The rank ended as a reaction to another rank's end, which is the root cause.
    Reaction,
    /// The rank touched unmapped memory (SIGBUS), which may have belonged to a dying rank.
    /// XPMEM unmaps a dying owner's memory before the kernel notifies the owner's parent.
    MemoryGone,
    /// The rank apparently ended for a reason of its own.
    OwnReason,
    /// A signal or the loss of a host is never a consequence of another rank's end.
    Certain,
}

impl Cause {
    /// Returns true if a fault-tolerant job survives this cause of a rank's end.
    ///
    /// The caller decides about `HostLost`, since the host may not have run any rank yet.
    pub fn is_a_death(&self) -> bool {
        match self {
            Cause::Died(_)
            | Cause::NotFinalized
            | Cause::NotInitialized
            | Cause::NotInitializedChild
            | Cause::LeftOthersWaiting { .. } => true,
            Cause::Aborted { .. } | Cause::ProtocolError(_) | Cause::HostLost { .. } => false,
        }
    }

    /// Returns the weight of this cause; the first cause with the greatest weight is reported.
    pub fn weight(&self) -> Weight {
        match self {
            Cause::Aborted { code, .. } | Cause::Died(Ended::Exited(code))
                if *code == MPI_ERR_PROC_ABORTED =>
            {
                Weight::Reaction
            }
            Cause::Died(Ended::Killed(libc::SIGBUS)) => Weight::MemoryGone,
            Cause::Died(Ended::Killed(_)) | Cause::HostLost { .. } => Weight::Certain,
            _ => Weight::OwnReason,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Died(Ended::Killed(signal)) => {
                write!(
                    f,
                    "was killed by signal {signal} ({})",
                    signal_name(*signal)
                )
            }
            Cause::Died(Ended::Exited(code)) => write!(f, "exited with status {code}"),
            Cause::NotFinalized => write!(f, "exited without calling MPI_Finalize"),
            Cause::NotInitialized => {
                write!(
                    f,
                    "exited without calling MPI_Init, which other ranks have called"
                )
            }
            Cause::NotInitializedChild => {
                write!(
                    f,
                    "exited without calling MPI_Init, for which the job that has spawned it waits"
                )
            }
            Cause::Aborted {
                code,
                message: None,
            } => write!(f, "aborted the job with code {code}"),
            Cause::Aborted {
                code,
                message: Some(message),
            } => write!(f, "aborted the job with code {code}: {}", name(message)),
            Cause::LeftOthersWaiting { waiting } => {
                let (ranks, wait) = match waiting.len() {
                    1 => ("rank", "waits"),
                    _ => ("ranks", "wait"),
                };
                let waiting = list(waiting);
                write!(f, "ended, but {ranks} {waiting} {wait} for it in start-up")
            }
            Cause::ProtocolError(reason) => write!(f, "was given up: {reason}"),
            Cause::HostLost { host, why } => {
                write!(f, "is lost with its host {}: {why}", name(host))
            }
        }
    }
}

/// Formats rank numbers as a list; long lists are cut.
pub fn list(ranks: &[u32]) -> String {
    const SHOWN: usize = 8;
    let mut text = ranks
        .iter()
        .take(SHOWN)
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if ranks.len() > SHOWN {
        text += &format!(" and {} more", ranks.len() - SHOWN);
    }
    text
}

/// Returns a sentence about a rank's last MPI call; `None` if the rank has made no call.
pub fn last_call(snapshot: &RankSnapshot) -> Option<String> {
    if let (Stage::Starting, None, Some(at)) = (snapshot.stage, &snapshot.call, &snapshot.in_file) {
        let name = printable::name(&at.name);
        return Some(format!("It was in MPI_Init, in {} of {name}.", at.call));
    }
    let before_any = match snapshot.stage {
        Stage::Before => return None,
        Stage::Starting => "It was in MPI_Init.",
        Stage::Running => "It had called no MPI procedure since MPI_Init.",
        Stage::Finalized => "It had called MPI_Finalize.",
    };
    let Some(call) = &snapshot.call else {
        return Some(match &snapshot.last_call {
            None => before_any.into(),
            Some(last) => format!("It was outside MPI; its last call was {last}."),
        });
    };
    if call == "MPI_Abort" {
        // The page may still describe the call that was interrupted, by a signal's handler or in another thread.
        return None;
    }
    let mut text = format!("It was in {call}");
    if let Some(waiting) = &snapshot.waiting {
        text += &format!(" {waiting}");
    } else if let Some(round) = snapshot.in_round() {
        text += &format!(" #{} of {}", round.number, round.comm);
    }
    if let Some(waited) = snapshot.waited {
        text += &format!(" and had waited {} s", waited.as_secs());
    }
    Some(text + ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::state::{About, FileCall, StatePage, Waits, file_name_words};

    fn last_call_on(page: &StatePage, now_ns: u64) -> Option<String> {
        let name = |call| format!("MPI_Call{call}");
        last_call(&RankSnapshot::of(&page.snapshot(), now_ns, name))
    }

    #[test]
    fn a_death_is_reported_with_rank_host_pid_and_signal() {
        let rank = NamedRank {
            rank: 2,
            size: 4,
            job: 0,
            pid: 4711,
            program: "./prog".into(),
            host: "vm".into(),
        };
        let text = format!("{rank} {}", Cause::Died(Ended::Killed(libc::SIGSEGV)));
        assert_eq!(
            text,
            "rank 2 (of 4; ./prog, pid 4711) on vm was killed by signal 11 (SIGSEGV)"
        );
    }

    #[test]
    fn a_rank_whose_host_was_not_reached_has_no_process() {
        let rank = NamedRank {
            rank: 1,
            size: 2,
            job: 0,
            pid: 0,
            program: "./prog".into(),
            host: "far".into(),
        };
        assert_eq!(
            rank.to_string(),
            "rank 1 (of 2; ./prog, not started) on far"
        );
    }

    #[test]
    fn the_last_call_is_reported_with_peer_tag_and_waiting_time() {
        let page = StatePage::default();
        assert_eq!(last_call_on(&page, 0), None);
        page.start(1, 2);
        assert_eq!(last_call_on(&page, 0).unwrap(), "It was in MPI_Init.");
        let name = file_name_words("coll_a.so");
        page.enters_file_call(FileCall::PluginQuery, 0, &name);
        assert_eq!(
            last_call_on(&page, 0).unwrap(),
            "It was in MPI_Init, in the function query of coll_a.so."
        );
        page.leaves_file_call();
        page.run();
        assert_eq!(
            last_call_on(&page, 0).unwrap(),
            "It had called no MPI procedure since MPI_Init."
        );
        page.enter(7);
        page.about(&About {
            waits: Waits::Send,
            peer: 5,
            proc: 5,
            tag: 7,
            bytes: 4096,
            ..About::default()
        });
        page.waits_since(1_000_000_000);
        assert_eq!(
            last_call_on(&page, 32_500_000_000).unwrap(),
            "It was in MPI_Call7 to rank 5, tag 7, 4096 bytes and had waited 31 s."
        );
        page.leave(7);
        assert_eq!(
            last_call_on(&page, 0).unwrap(),
            "It was outside MPI; its last call was MPI_Call7."
        );
    }

    #[test]
    fn a_collective_is_reported_with_its_number() {
        let page = StatePage::default();
        page.start(1, 2);
        page.run();
        page.enter(4);
        page.collective(0, 2, 12, [0, 0, 0, 0]);
        page.inside(true);
        assert_eq!(
            last_call_on(&page, 0).unwrap(),
            "It was in MPI_Call4 #12 of MPI_COMM_WORLD."
        );
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(list(&[1, 2]), "1, 2");
        assert!(list(&(0..60).collect::<Vec<_>>()).ends_with("7 and 52 more"));
    }
}
