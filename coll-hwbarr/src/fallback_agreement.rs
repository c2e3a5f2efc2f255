//! How the members leave the hardware together.
//!
//! Some member's barrier has not been released for too long.
//! All must then agree which barriers the hardware has released, for a member that was released must not wait in software for one that was not,
//! and a release may come at the very moment a member gives up.
//!
//! # The protocol
//!
//! 1. A member that gives up, because it has waited for too long or because its port has failed, stops:
//!    it enters the wire no more, keeps what it has entered, and tells rank 0 how often it has entered in all, and what its port said.
//! 2. Rank 0, when it gives up or hears from a member that did, stops too and tells all others to stop; each stops when it next looks.
//! 3. When rank 0 has the number of every member, it tells all of them the smallest: the verdict.
//!
//! The verdict is exact, because the hardware releases barrier n when, and only when, every node has entered n times,
//! and no number changes after it was told.
//! So nothing is withdrawn, and a release that is seen meanwhile, even long before the verdict, agrees with it.
//! A barrier that goes there and back may hold an entry until the last way back is done; it counts as entered all the same,
//! for then every member hears of it by the verdict, and none before all have entered.
//! Barriers up to the verdict are over; those beyond are the next component's.
//!
//! A member looks whenever it is in a call of MPI that waits, be it for something else: one that was released may wait for one that was not.
//! Only a member that computes keeps the others waiting, as in every barrier.
//! A member that has entered less often than others has not come yet, which is how ports that cannot tell the missing nodes know them, and neither has one that has not answered [`PATIENCE`] after it was asked:
//! rank 0 knows of all, and the others, which ask no other member, know of rank 0.
//! All messages are tested, never waited for, so that a nonblocking barrier can take part.

use mpi_core::plugin::guest::{Comm, Message};
use std::time::{Duration, Instant};

/// How long a member that is in the barrier may take to answer: it looks often, unless its machine is very busy.
const PATIENCE: Duration = Duration::from_millis(500);

const WORD: usize = size_of::<u64>();

/// What a member tells rank 0: its number, the kind of its remark, and a sentence with zeros behind it.
const STATEMENT: usize = 256;

/// What a member says beside its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Its port has failed, and said this.
    Lost(String),
    /// The hardware has told it which nodes have not entered.
    Missing(String),
    /// It has told the user already.
    Told,
}

pub struct FallbackAgreement {
    role: Role,
    /// When this member stopped, and so asked.
    stopped: Option<Instant>,
    /// At rank 0: the members' remarks, and its own.
    remarks: Vec<(u32, Remark)>,
}

enum Role {
    /// Rank 0: each other member's number, or the message it will come in.
    Chair(Vec<Number>),
    /// Another rank: the message that says stop, and the one with the verdict once it has been asked for.
    Member {
        /// `None` once rank 0 has been heard.
        stop: Option<Message>,
        verdict: Option<Message>,
    },
}

enum Number {
    Expected(Message),
    Known(u64),
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The hardware is in use.
    Nothing,
    /// Some member has given up; this one enters the wire no more.
    Stopped,
    /// The hardware has released so many barriers and will release no other.
    Verdict(u64),
}

impl FallbackAgreement {
    /// Expects messages from now on; every member calls.
    pub fn new(comm: &Comm) -> Result<FallbackAgreement, String> {
        let role = if comm.rank() == 0 {
            let numbers =
                (1..comm.size()).map(|rank| comm.start_recv(rank, STATEMENT).map(Number::Expected));
            Role::Chair(numbers.collect::<Result<_, _>>()?)
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

    /// Looks for messages; `entered` is how often this node has entered, which must not change any more once the answer is not [`Finding::Nothing`].
    ///
    /// `remark` is what this member has to say when it gives up.
    pub fn look(
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
        let mut heard = false;
        match &mut self.role {
            Role::Chair(numbers) => {
                for (rank, number) in (1..).zip(numbers.iter_mut()) {
                    if let Number::Expected(message) = number
                        && let Some((theirs, remark)) = hear(comm, message)?
                    {
                        *number = Number::Known(theirs);
                        heard = true;
                        self.remarks.extend(remark.map(|remark| (rank, remark)));
                    }
                }
                if let Some(mine) = remark
                    && !self.remarks.iter().any(|(rank, _)| *rank == 0)
                {
                    self.remarks.push((0, mine.clone()));
                }
                if heard {
                    self.stopped.get_or_insert_with(Instant::now);
                }
                if self.stopped.is_none() {
                    return Ok(Finding::Nothing);
                }
                if !was_stopped {
                    tell_all(comm, 0)?;
                }
                let known = numbers.iter().map(|n| match n {
                    Number::Known(theirs) => Some(*theirs),
                    Number::Expected(_) => None,
                });
                match known.collect::<Option<Vec<_>>>() {
                    None => Ok(Finding::Stopped),
                    Some(theirs) => {
                        let verdict = theirs.into_iter().fold(entered, u64::min);
                        tell_all(comm, verdict)?;
                        Ok(Finding::Verdict(verdict))
                    }
                }
            }
            Role::Member { stop, verdict } => {
                // The order of messages makes this one the first from rank 0, whether it is looked at or not.
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

    /// What the members have said, in the order in which rank 0 has heard it; nothing at the others.
    pub fn remarks(&self) -> &[(u32, Remark)] {
        &self.remarks
    }

    /// Whether rank 0 has heard every member that is in the barrier.
    pub fn has_heard_all(&self) -> bool {
        let Role::Chair(numbers) = &self.role else {
            return false;
        };
        let all = numbers.iter().all(|n| matches!(n, Number::Known(_)));
        all || self.stopped.is_some_and(|at| at.elapsed() >= PATIENCE)
    }

    /// The members that have not entered, as far as this member knows: it may have to wait for answers first.
    ///
    /// `entered` is how often this node has entered.
    pub fn missing(&self, entered: u64) -> Option<Vec<u32>> {
        let waits = self.stopped?.elapsed() < PATIENCE;
        match &self.role {
            Role::Chair(numbers) => {
                let known = numbers.iter().map(|number| match number {
                    Number::Known(theirs) => Some(*theirs),
                    Number::Expected(_) => None,
                });
                let all: Vec<_> = std::iter::once(Some(entered)).chain(known).collect();
                if waits && all.contains(&None) {
                    return None;
                }
                // A member that came after it had been told to stop has entered less often than those that waited for it.
                let most = all.iter().flatten().copied().max();
                let missing = (0..).zip(all).filter(|&(_, theirs)| theirs < most);
                Some(missing.map(|(rank, _)| rank).collect())
            }
            Role::Member { stop, .. } => (stop.is_some() && !waits).then(|| vec![0]),
        }
    }
}

fn tell_all(comm: &Comm, word: u64) -> Result<(), String> {
    for rank in 1..comm.size() {
        comm.start_send(rank, &word.to_le_bytes())?;
    }
    Ok(())
}

/// A member's number and its remark, as a message.
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

/// A [`statement`], when it has come.
fn hear(comm: &Comm, message: &Message) -> Result<Option<(u64, Option<Remark>)>, String> {
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
