//! Record and replay of nondeterministic decisions, so that a failed run can be repeated.
//!
//! If its processes are deterministic, an MPI program makes only these nondeterministic decisions: which message a receive with a wildcard matches,
//! what a probe finds, which requests `MPI_Test...`, `MPI_Waitany` and `MPI_Waitsome` find complete, whether `MPI_Cancel` is early enough,
//! and in which order the ranks of a node lock and access windows
//! (R. Netzer, B. Miller, "Optimal tracing and replay for debugging message-passing parallel programs", Supercomputing 1992).
//! Each such outcome is a *decision*.
//! The decisions of each rank are in a file of its own, in the order of its calls (`word`, `file`).
//! In a replay, a receive with a wildcard is posted for the recorded sender and tag,
//! since messages of one sender and tag keep their order.
//! A receive that was cancelled is posted with a key that matches no message.
//! Other calls wait for the recorded result, or return immediately
//! if they returned without a result when recorded.
//!
//! Guarantees: a decision is in the file before the program gets its result, and survives the rank's end.
//! Damage to a decision is detected before the decision is used,
//! because a wrong decision would let the replay wait indefinitely.
//! Not covered: the order of calls of several threads
//! (so recorded and replayed runs get a lower thread level), and inputs from outside MPI.

mod cancel;
mod file;
#[cfg(test)]
mod tests;
pub(crate) mod word;

pub use word::{Asker, Decision};

use crate::pml::Key;
use crate::request::{ANY_SOURCE, ANY_TAG, ReqId};
use file::Writer;
use mpi_base::param::{Level, Param};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Parameter that `mpirun --record` sets.
pub static RECORD: Param<PathBuf> = Param::new(
    "mpi",
    "base",
    "record",
    "",
    Level::USER,
    "Directory in which each rank records nondeterministic decisions (matching, completion order); set by mpirun --record",
);

/// Parameter that `mpirun --replay` sets.
pub static REPLAY: Param<PathBuf> = Param::new(
    "mpi",
    "base",
    "replay",
    "",
    Level::USER,
    "Directory of the recording that this run replays; set by mpirun --replay",
);

/// The reason why a run cannot be recorded or replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    File {
        path: String,
        doing: &'static str,
        why: String,
    },
    NotARecording {
        path: String,
    },
    /// The check bits of a word are wrong.
    Damaged {
        path: String,
        byte: usize,
    },
    /// The recording is of another rank or of a job of another size.
    Other {
        path: String,
        rank: u32,
        size: u32,
        now: (u32, u32),
    },
    /// The program makes another call than in the recorded run.
    Diverged {
        rank: u32,
        number: usize,
        asks: Asker,
        recorded: Option<(Asker, Decision)>,
    },
    /// The recorded result cannot be reproduced.
    Impossible {
        rank: u32,
        number: usize,
        asks: Asker,
        recorded: Decision,
        why: String,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::File { path, doing, why } => {
                write!(f, "the recording {path} cannot be {doing}: {why}")
            }
            RecordError::NotARecording { path } => {
                write!(
                    f,
                    "{path} is not a recording of this version of the library"
                )
            }
            RecordError::Damaged { path, byte } => write!(
                f,
                "the recording {path} is damaged at byte {byte}, so this run cannot follow it; use an undamaged copy, or record the run again"
            ),
            RecordError::Other {
                path,
                rank,
                size,
                now: (now, of),
            } => write!(
                f,
                "the recording {path} is of rank {rank} of {size}, and this is rank {now} of {of}"
            ),
            RecordError::Diverged {
                rank,
                number,
                asks,
                recorded,
            } => {
                write!(
                    f,
                    "the replay has left the recording on rank {rank} at decision {number}: the program calls {asks}, recorded is "
                )?;
                match recorded {
                    Some((asker, decision)) => write!(f, "{asker}, which found {decision}"),
                    None => write!(f, "nothing more"),
                }
            }
            RecordError::Impossible {
                rank,
                number,
                asks,
                recorded,
                why,
            } => write!(
                f,
                "the replay has left the recording on rank {rank} at decision {number}: recorded is {recorded} for {asks}, but {why}"
            ),
        }
    }
}

impl std::error::Error for RecordError {}

impl crate::Failure for RecordError {}

/// A process's recording or replay.
pub struct Script {
    rank: u32,
    /// The number of receives without a wildcard that have been posted.
    plain: Cell<u32>,
    mode: Mode,
}

enum Mode {
    Record {
        writer: Writer,
        /// Receives with a wildcard that have not matched, each with the index of its decision.
        open: RefCell<HashMap<ReqId, usize>>,
        /// The index of the decision of the receive that is being posted.
        posting: Cell<Option<usize>>,
        /// The numbers of receives without a wildcard, indexed by the slot of their request; an entry stays until the slot is used again.
        plain: RefCell<Vec<(ReqId, u32)>>,
        /// The last decision if its call found nothing:
        /// the index of the decision, the call, and the number of consecutive calls that found nothing.
        idle: Cell<Option<(usize, Asker, u32)>>,
    },
    Replay {
        decisions: Vec<(Asker, Decision)>,
        next: Cell<usize>,
        /// How many times the decision at `next` has been returned.
        answered: Cell<u32>,
        /// The numbers of the receives without a wildcard that were cancelled.
        cancelled: HashSet<u32>,
    },
}

/// Returns a key that matches no message, for a receive that did not match in the recorded run.
fn nobody() -> Key {
    // The program's tags are never negative.
    Key::new(0, i32::MIN)
}

impl Script {
    /// Creates a recording in a folder.
    pub fn record(folder: &Path, rank: u32, size: u32) -> Result<Script, RecordError> {
        let writer = Writer::create(&path(folder, rank), rank, size)?;
        let mode = Mode::Record {
            writer,
            open: RefCell::default(),
            posting: Cell::new(None),
            plain: RefCell::default(),
            idle: Cell::new(None),
        };
        Ok(Script::new(rank, mode))
    }

    /// Opens the recording in a folder for replay.
    pub fn replay(folder: &Path, rank: u32, size: u32) -> Result<Script, RecordError> {
        let decisions = file::read(&path(folder, rank), rank, size)?;
        let cancelled = decisions.iter().filter_map(|(_, decision)| match decision {
            Decision::Cancelled { plain } => Some(*plain).filter(|&number| number != 0),
            _ => None,
        });
        let mode = Mode::Replay {
            cancelled: cancelled.collect(),
            decisions,
            next: Cell::new(0),
            answered: Cell::new(0),
        };
        Ok(Script::new(rank, mode))
    }

    fn new(rank: u32, mode: Mode) -> Script {
        Script {
            rank,
            plain: Cell::new(0),
            mode,
        }
    }

    /// Returns true if decisions are replayed, not recorded.
    pub fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replay { .. })
    }

    /// Returns the number of decisions replayed so far, or the number of words recorded so far.
    fn number(&self) -> usize {
        match &self.mode {
            Mode::Record { writer, .. } => writer.len(),
            Mode::Replay { next, .. } => next.get(),
        }
    }

    /// Called before a receive is posted. Returns the key with which it must be posted.
    pub(crate) fn posts(&self, key: Key) -> Result<Key, RecordError> {
        if key.source() != ANY_SOURCE && key.tag() != ANY_TAG {
            // After 2^32 receives this number stays the same, so later receives are not distinguished.
            self.plain.set(self.plain.get().saturating_add(1));
            return Ok(match &self.mode {
                Mode::Replay { cancelled, .. } if cancelled.contains(&self.plain.get()) => nobody(),
                _ => key,
            });
        }
        match &self.mode {
            Mode::Record { posting, .. } => {
                posting.set(self.write(Asker::Recv, Decision::Open)?);
                Ok(key)
            }
            Mode::Replay { .. } => match self.next(Asker::Recv)? {
                Decision::From { source, tag } => {
                    let exact = Key::new(source as i32, tag);
                    match key.accepts(exact) {
                        true => Ok(exact),
                        false => Err(self.impossible(
                            Asker::Recv,
                            Decision::From { source, tag },
                            "the receive takes no such message".into(),
                        )),
                    }
                }
                _ => Ok(nobody()),
            },
        }
    }

    /// Called after a receive has been posted as request `id`.
    pub(crate) fn posted(&self, id: ReqId, key: Key) {
        let Mode::Record {
            posting,
            open,
            plain,
            ..
        } = &self.mode
        else {
            return;
        };
        if let Some(at) = posting.take() {
            open.borrow_mut().insert(id, at);
        } else if key.source() != ANY_SOURCE && key.tag() != ANY_TAG {
            let mut plain = plain.borrow_mut();
            if plain.len() <= id.index() {
                plain.resize(id.index() + 1, (ReqId(u64::MAX), 0));
            }
            plain[id.index()] = (id, self.plain.get());
        }
    }

    /// Returns the number of a receive without a wildcard, counted from 1; 0 if it has none.
    fn plain_number(&self, id: ReqId) -> u32 {
        let Mode::Record { plain, .. } = &self.mode else {
            return 0;
        };
        let plain = plain.borrow();
        let found = plain.get(id.index()).filter(|(known, _)| *known == id);
        found.map_or(0, |(_, number)| *number % u32::MAX)
    }

    /// Records that a receive has matched a message.
    pub(crate) fn meets(&self, id: ReqId, message: Key) {
        let Mode::Record {
            writer,
            open,
            posting,
            ..
        } = &self.mode
        else {
            return;
        };
        let at = open.borrow_mut().remove(&id).or_else(|| posting.take());
        if let Some(at) = at {
            writer.replace(at, Asker::Recv, from(message));
        }
    }

    /// Records that a call found nothing complete, or no message.
    pub fn found_nothing(&self, asker: Asker) -> Result<(), RecordError> {
        let Mode::Record { writer, idle, .. } = &self.mode else {
            return Ok(());
        };
        match idle.get() {
            // Consecutive equal calls without a result share one word, which counts them.
            Some((at, same, times))
                if same == asker && at + 1 == writer.end() && times < u32::MAX =>
            {
                let times = times + 1;
                idle.set(Some((at, asker, times)));
                writer.replace(at, asker, Decision::Nothing { times });
            }
            _ => {
                let at = self.write(asker, Decision::Nothing { times: 1 })?;
                idle.set(at.map(|at| (at, asker, 1)));
            }
        }
        Ok(())
    }

    /// Records that a probe found a message.
    pub fn found(&self, asker: Asker, source: i32, tag: i32) -> Result<(), RecordError> {
        self.write(asker, from(Key::new(source, tag))).map(drop)
    }

    /// Records that the requests at these indices were complete.
    pub fn completed(&self, asker: Asker, places: &[usize]) -> Result<(), RecordError> {
        if let [place] = places {
            return self.write(asker, Decision::Place(*place as u32)).map(drop);
        }
        self.write(asker, Decision::Several(places.len() as u32))?;
        for place in places {
            self.write(asker, Decision::Place(*place as u32))?;
        }
        Ok(())
    }

    /// Returns the indices of the requests that were complete in the recorded run, or `None` if none was.
    pub fn places(&self, asker: Asker) -> Result<Option<Vec<usize>>, RecordError> {
        match self.next(asker)? {
            Decision::Nothing { .. } => Ok(None),
            Decision::Place(place) => Ok(Some(vec![place as usize])),
            Decision::Several(count) => (0..count)
                .map(|_| match self.next(asker)? {
                    Decision::Place(place) => Ok(place as usize),
                    other => Err(self.impossible(asker, other, "a request was to follow".into())),
                })
                .collect::<Result<Vec<_>, _>>()
                .map(Some),
            other => Err(self.impossible(asker, other, "that is about messages".into())),
        }
    }

    /// Returns the number that a lock or access got in the recorded run.
    pub fn number_of(&self, asker: Asker) -> Result<u32, RecordError> {
        match self.next(asker)? {
            Decision::Place(number) => Ok(number),
            other => Err(self.impossible(asker, other, "that is no number".into())),
        }
    }

    /// Returns the message that a probe found in the recorded run, or `None`.
    pub(crate) fn probed(&self, asker: Asker) -> Result<Option<Key>, RecordError> {
        match self.next(asker)? {
            Decision::From { source, tag } => Ok(Some(Key::new(source as i32, tag))),
            Decision::Nothing { .. } => Ok(None),
            other => Err(self.impossible(asker, other, "that is about requests".into())),
        }
    }

    /// Returns the error for a decision that cannot be repeated.
    #[cold]
    pub fn impossible(&self, asks: Asker, recorded: Decision, why: String) -> RecordError {
        RecordError::Impossible {
            rank: self.rank,
            number: self.number(),
            asks,
            recorded,
            why,
        }
    }

    fn write(&self, asker: Asker, decision: Decision) -> Result<Option<usize>, RecordError> {
        match &self.mode {
            Mode::Record { writer, .. } => writer.append(asker, decision).map(Some),
            Mode::Replay { .. } => Ok(None),
        }
    }

    /// Returns the next decision; an error if it is of another call than `asker`.
    fn next(&self, asker: Asker) -> Result<Decision, RecordError> {
        let Mode::Replay {
            decisions,
            next,
            answered,
            ..
        } = &self.mode
        else {
            return Ok(Decision::Open);
        };
        let recorded = decisions.get(next.get()).copied();
        match recorded {
            Some((same, decision)) if same == asker => {
                let times = match decision {
                    Decision::Nothing { times } => times,
                    _ => 1,
                };
                answered.set(answered.get() + 1);
                if answered.get() >= times {
                    answered.set(0);
                    next.set(next.get() + 1);
                }
                Ok(decision)
            }
            recorded => Err(RecordError::Diverged {
                rank: self.rank,
                number: next.get() + 1,
                asks: asker,
                recorded,
            }),
        }
    }
}

fn from(message: Key) -> Decision {
    Decision::From {
        source: message.source() as u32,
        tag: message.tag(),
    }
}

fn path(folder: &Path, rank: u32) -> std::path::PathBuf {
    folder.join(format!("rank.{rank}"))
}
