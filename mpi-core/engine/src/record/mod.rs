//! Recording and replaying what depends on which process was faster, so that a run that failed can be repeated.
//!
//! An MPI program whose processes are deterministic by themselves meets chance at few places: which message a receive with a wildcard takes,
//! what a probe finds, which requests `MPI_Test...`, `MPI_Waitany` and `MPI_Waitsome` find complete, whether `MPI_Cancel` comes in time,
//! and in which order ranks of one node lock and access windows
//! (R. Netzer, B. Miller, "Optimal tracing and replay for debugging message-passing parallel programs", Supercomputing 1992).
//! Each of these is a *decision*; they are written to one file for each rank in the order in which the program asked ([`word`], [`file`](mod@file)).
//! On replay a receive with a wildcard is posted for the recorded sender and tag instead, since messages of one sender and tag do not overtake,
//! and one that was cancelled in time for none;
//! the other calls wait for what was recorded and answer that, or answer "nothing yet" at once where that was recorded.
//!
//! Promises: the decision stands in the file before the program sees it, and stays there however the rank ends.
//! A file that was damaged since is found before it is followed, since a wrong decision would let the replay wait for a message that never comes.
//! Not covered: the order of calls of several threads of one process, which is why such runs get a lower thread level, and what is not MPI.

mod cancel;
mod file;
#[cfg(test)]
mod tests;
mod word;

pub use word::{Asker, Decision};

use crate::pml::Key;
use crate::request::{ANY_SOURCE, ANY_TAG, ReqId};
use file::Writer;
use mpi_base::param::{Level, Param};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// Set by `mpirun --record`.
pub static RECORD: Param<PathBuf> = Param::new(
    "mpi",
    "base",
    "record",
    "",
    Level::USER,
    "The folder in which each rank records what depends on which rank was faster; what mpirun --record sets",
);

/// Set by `mpirun --replay`.
pub static REPLAY: Param<PathBuf> = Param::new(
    "mpi",
    "base",
    "replay",
    "",
    Level::USER,
    "The folder of a recording that this run repeats; what mpirun --replay sets",
);

/// Why a run cannot be recorded or repeated.
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
    /// A word that is not as it was written.
    Damaged {
        path: String,
        byte: usize,
    },
    /// The recording of another job.
    Other {
        path: String,
        rank: u32,
        size: u32,
        now: (u32, u32),
    },
    /// The program asks something else than when it was recorded.
    Diverged {
        rank: u32,
        number: usize,
        asks: Asker,
        recorded: Option<(Asker, Decision)>,
    },
    /// What was recorded cannot happen.
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

/// A process's part of a recording: being made, or being followed.
pub struct Script {
    rank: u32,
    /// How many receives without a wildcard have been posted.
    plain: Cell<u32>,
    mode: Mode,
}

enum Mode {
    Record {
        writer: Writer,
        /// Receives without a message yet, and where their decision stands.
        open: RefCell<HashMap<ReqId, usize>>,
        /// The decision of a receive that is just being posted.
        posting: Cell<Option<usize>>,
        /// Receives without a wildcard: the number of each, by the place of its request; what is over stays until the place is used again.
        plain: RefCell<Vec<(ReqId, u32)>>,
        /// Where "nothing yet" of the same call stands, how often so far.
        idle: Cell<Option<(usize, Asker, u32)>>,
    },
    Replay {
        decisions: Vec<(Asker, Decision)>,
        next: Cell<usize>,
        /// How many times the decision at `next` has been answered.
        answered: Cell<u32>,
        /// The numbers of the receives without a wildcard that were cancelled in time.
        cancelled: HashSet<u32>,
    },
}

/// The key that no message has: a recorded receive that never met one.
fn nobody() -> Key {
    // A program's tags are not negative.
    Key::new(0, i32::MIN)
}

impl Script {
    /// Begins a recording in a folder.
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

    /// Follows the recording in a folder.
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

    /// Whether decisions are read, and not written.
    pub fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replay { .. })
    }

    /// How many decisions have been answered, or words of decisions written.
    fn number(&self) -> usize {
        match &self.mode {
            Mode::Record { writer, .. } => writer.len(),
            Mode::Replay { next, .. } => next.get(),
        }
    }

    /// A receive with this key is about to be posted; the key with which it shall be.
    pub(crate) fn posts(&self, key: Key) -> Result<Key, RecordError> {
        if key.source() != ANY_SOURCE && key.tag() != ANY_TAG {
            // After four thousand million of them no more are told apart.
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

    /// The receive has been posted, as this request.
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

    /// Which receive without a wildcard this is, from 1; 0 if it is none that was numbered.
    fn plain_number(&self, id: ReqId) -> u32 {
        let Mode::Record { plain, .. } = &self.mode else {
            return 0;
        };
        let plain = plain.borrow();
        let found = plain.get(id.index()).filter(|(known, _)| *known == id);
        found.map_or(0, |(_, number)| *number % u32::MAX)
    }

    /// A receive has met a message.
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

    /// The program was answered that nothing is there yet.
    pub fn found_nothing(&self, asker: Asker) -> Result<(), RecordError> {
        let Mode::Record { writer, idle, .. } = &self.mode else {
            return Ok(());
        };
        match idle.get() {
            // A loop of such calls is one word.
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

    /// A probe found a message.
    pub fn found(&self, asker: Asker, source: i32, tag: i32) -> Result<(), RecordError> {
        self.write(asker, from(Key::new(source, tag))).map(drop)
    }

    /// Requests at these places were complete.
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

    /// The places that were complete when this was recorded; `None` where nothing was.
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

    /// The number that was drawn when this was recorded.
    pub fn number_of(&self, asker: Asker) -> Result<u32, RecordError> {
        match self.next(asker)? {
            Decision::Place(number) => Ok(number),
            other => Err(self.impossible(asker, other, "that is no number".into())),
        }
    }

    /// The message that a probe found when this was recorded; `None` where there was none.
    pub(crate) fn probed(&self, asker: Asker) -> Result<Option<Key>, RecordError> {
        match self.next(asker)? {
            Decision::From { source, tag } => Ok(Some(Key::new(source as i32, tag))),
            Decision::Nothing { .. } => Ok(None),
            other => Err(self.impossible(asker, other, "that is about requests".into())),
        }
    }

    /// The error of a decision that cannot happen again.
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

    /// The next decision, which has to be of this call.
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
