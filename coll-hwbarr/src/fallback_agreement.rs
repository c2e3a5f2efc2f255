//! The agreement of all members to stop using the hardware after the same barrier (fallback).
//!
//! The agreement starts when a member's barrier is not released in time or a port fails.
//! All members must then agree on the barriers that the hardware has released:
//! a member whose barrier was released must not wait in software for a member whose barrier was not,
//! and a release may arrive at the moment at which a member stops waiting for it.
//!
//! # The protocol
//!
//! 1. A member whose barrier has timed out or whose port has failed stops:
//!    it enters no further barrier, does not withdraw its entries,
//!    and sends rank 0 its number of entries and a remark (such as its port's error).
//! 2. Rank 0, when it stops or receives such a message, sends "stop" to all others;
//!    each stops at its next poll and sends its number of entries.
//! 3. When rank 0 has all numbers of entries, it sends the minimum to all members: the *verdict*.
//!
//! The verdict is exact: the hardware releases barrier n if and only if every node has entered n barriers,
//! and a member's number of entries does not change after it was sent.
//! So no entry is withdrawn, and a release that a member sees during the agreement,
//! even long before the verdict, is consistent with the verdict.
//! With `coll_hwbarr_reboot` an entry may be delayed until the previous return to idle is complete.
//! Such an entry also counts:
//! the verdict shows every member whether the barrier is complete, which requires all entries.
//! Barriers up to the verdict are complete; the next component performs those after it.
//!
//! A member polls in every MPI call that waits,
//! because a member whose barrier was released may wait for a member whose barrier was not.
//! Only a member that computes without calling MPI delays the other members, as in every barrier.
//! A member counts as missing if it has entered fewer barriers than another member,
//! or has not answered "stop" within [`PATIENCE`].
//! This rule applies to ports that cannot report the missing nodes:
//! rank 0 applies it to all members, and the other members only to rank 0, as they send no requests.
//! Messages are only tested and never waited for, so a nonblocking barrier can also fall back.

use mpi_core::plugin::guest::{Comm, Message};
use std::time::{Duration, Instant};

/// Time limit for the answer of a member in the barrier, which polls often.
const PATIENCE: Duration = Duration::from_millis(500);

const WORD: usize = size_of::<u64>();

/// Length in bytes of a member's message to rank 0:
/// its number of entries, the kind of its remark, and a zero-padded text.
const STATEMENT: usize = 256;

/// What a member reports to rank 0 together with its number of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The member's port has failed with this error.
    Lost(String),
    /// The member has read from the hardware which nodes have not entered; the text names them.
    Missing(String),
    /// The member has already warned the user about the fallback.
    Told,
}

pub struct FallbackAgreement {
    role: Role,
    /// Time at which this member stopped and, at rank 0, sent "stop".
    stopped: Option<Instant>,
    /// The remarks of all members, including this one; only at rank 0.
    remarks: Vec<(u32, Remark)>,
}

enum Role {
    /// The state of rank 0: each other member's number of entries, or its pending receive.
    Root(Vec<Number>),
    /// The state of another rank: the pending receives of "stop" and,
    /// after this member has stopped, of the verdict.
    Member {
        /// The pending receive; `None` after a message from rank 0 has arrived.
        stop: Option<Message>,
        verdict: Option<Message>,
    },
}

enum Number {
    Expected(Message),
    Known(u64),
}

/// The result of a poll of the agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// No member has stopped; the hardware is in use.
    Nothing,
    /// A member has stopped, so this member must not enter the wire again.
    Stopped,
    /// The hardware has released this number of barriers and will release no others.
    Verdict(u64),
}

impl FallbackAgreement {
    /// Creates this member's state and posts its receives; every member must call this.
    pub fn new(comm: &Comm) -> Result<FallbackAgreement, String> {
        let role = if comm.rank() == 0 {
            let numbers =
                (1..comm.size()).map(|rank| comm.start_recv(rank, STATEMENT).map(Number::Expected));
            Role::Root(numbers.collect::<Result<_, _>>()?)
        } else {
            Role::Member {
                stop: Some(comm.start_recv(0, WORD)?),
                verdict: None,
            }
        };
        Ok(FallbackAgreement {
            role,
            stopped: None,
            remarks: Vec::new(),
        })
    }

    /// Polls the agreement's messages. `entered` is the number of barriers that this node has entered,
    /// which must not change after a poll has returned any result except [`Finding::Nothing`].
    ///
    /// `remark` is `Some` if this member stops now; it is then reported to rank 0.
    pub fn poll_once(
        &mut self,
        comm: &Comm,
        give_up: bool,
        entered: u64,
        remark: Option<&Remark>,
    ) -> Result<Finding, String> {
        let was_stopped = self.stopped.is_some();
        if give_up {
            self.stopped.get_or_insert_with(Instant::now);
        }
        let mut received = false;
        match &mut self.role {
            Role::Root(numbers) => {
                for (rank, number) in (1..).zip(numbers.iter_mut()) {
                    if let Number::Expected(message) = number
                        && let Some((theirs, remark)) = receive_statement(comm, message)?
                    {
                        *number = Number::Known(theirs);
                        received = true;
                        self.remarks.extend(remark.map(|remark| (rank, remark)));
                    }
                }
                if let Some(mine) = remark
                    && !self.remarks.iter().any(|(rank, _)| *rank == 0)
                {
                    self.remarks.push((0, mine.clone()));
                }
                if received {
                    self.stopped.get_or_insert_with(Instant::now);
                }
                if self.stopped.is_none() {
                    return Ok(Finding::Nothing);
                }
                if !was_stopped {
                    send_all(comm, 0)?;
                }
                let known = numbers.iter().map(|n| match n {
                    Number::Known(theirs) => Some(*theirs),
                    Number::Expected(_) => None,
                });
                match known.collect::<Option<Vec<_>>>() {
                    None => Ok(Finding::Stopped),
                    Some(theirs) => {
                        let verdict = theirs.into_iter().fold(entered, u64::min);
                        send_all(comm, verdict)?;
                        Ok(Finding::Verdict(verdict))
                    }
                }
            }
            Role::Member { stop, verdict } => {
                // The receive of "stop" was posted first, so it matches rank 0's first message.
                if let Some(message) = stop
                    && test(comm, message)?.is_some()
                {
                    *stop = None;
                    self.stopped.get_or_insert_with(Instant::now);
                }
                if self.stopped.is_none() {
                    return Ok(Finding::Nothing);
                }
                let Some(verdict) = verdict else {
                    comm.start_send(0, &statement(entered, remark))?;
                    *verdict = Some(comm.start_recv(0, WORD)?);
                    return Ok(Finding::Stopped);
                };
                Ok(test(comm, verdict)?.map_or(Finding::Stopped, Finding::Verdict))
            }
        }
    }

    /// Returns the members' remarks in the order of arrival at rank 0; empty at other ranks.
    pub fn remarks(&self) -> &[(u32, Remark)] {
        &self.remarks
    }

    /// Returns true if rank 0 has the number of entries of every member that has answered in time.
    pub fn has_all_numbers(&self) -> bool {
        let Role::Root(numbers) = &self.role else {
            return false;
        };
        let all = numbers.iter().all(|n| matches!(n, Number::Known(_)));
        all || self.stopped.is_some_and(|at| at.elapsed() >= PATIENCE)
    }

    /// Returns the missing members, as far as this member knows; `None` while it must wait for answers.
    ///
    /// `entered` is the number of barriers that this node has entered.
    pub fn missing(&self, entered: u64) -> Option<Vec<u32>> {
        let waits = self.stopped?.elapsed() < PATIENCE;
        match &self.role {
            Role::Root(numbers) => {
                let known = numbers.iter().map(|number| match number {
                    Number::Known(theirs) => Some(*theirs),
                    Number::Expected(_) => None,
                });
                let all: Vec<_> = std::iter::once(Some(entered)).chain(known).collect();
                if waits && all.contains(&None) {
                    return None;
                }
                // A member that received "stop" before it entered the barrier
                // has fewer entries than the members that waited for it.
                let most = all.iter().flatten().copied().max();
                let missing = (0..).zip(all).filter(|&(_, theirs)| theirs < most);
                Some(missing.map(|(rank, _)| rank).collect())
            }
            Role::Member { stop, .. } => (stop.is_some() && !waits).then(|| vec![0]),
        }
    }
}

fn send_all(comm: &Comm, word: u64) -> Result<(), String> {
    for rank in 1..comm.size() {
        comm.start_send(rank, &word.to_le_bytes())?;
    }
    Ok(())
}

/// Encodes a member's number of entries and its remark as a message.
fn statement(entered: u64, remark: Option<&Remark>) -> [u8; STATEMENT] {
    let (kind, text) = match remark {
        None => (0, ""),
        Some(Remark::Lost(reason)) => (1, reason.as_str()),
        Some(Remark::Missing(nodes)) => (2, nodes.as_str()),
        Some(Remark::Told) => (3, ""),
    };
    let mut bytes = [0; STATEMENT];
    bytes[..WORD].copy_from_slice(&entered.to_le_bytes());
    bytes[WORD] = kind;
    let places = bytes[WORD + 1..].iter_mut();
    places.zip(text.bytes()).for_each(|(to, from)| *to = from);
    bytes
}

/// Returns the decoded [`statement`] of a member; `None` if it has not arrived.
fn receive_statement(
    comm: &Comm,
    message: &Message,
) -> Result<Option<(u64, Option<Remark>)>, String> {
    let mut bytes = [0; STATEMENT];
    if !comm.test_message(message, &mut bytes)? {
        return Ok(None);
    }
    let (mut number, text) = ([0; WORD], &bytes[WORD + 1..]);
    number.copy_from_slice(&bytes[..WORD]);
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    let text = String::from_utf8_lossy(&text[..end]).into_owned();
    let remark = match bytes[WORD] {
        1 => Some(Remark::Lost(text)),
        2 => Some(Remark::Missing(text)),
        3 => Some(Remark::Told),
        _ => None,
    };
    Ok(Some((u64::from_le_bytes(number), remark)))
}

fn test(comm: &Comm, message: &Message) -> Result<Option<u64>, String> {
    let mut word = [0; WORD];
    Ok(comm
        .test_message(message, &mut word)?
        .then(|| u64::from_le_bytes(word)))
}
