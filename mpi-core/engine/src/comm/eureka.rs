//! The eureka line of a communicator: early termination of a parallel search by a flag that any member may raise (`MPIX_Eureka_...`).
//!
//! All members begin and end a round together.
//! In a round any member may raise the line; the call reports to one member that it was the first.
//! A test of the line costs no message.
//! How a round implements the line is chosen at its beginning, the same on all members:
//!
//! * by a collective component's line, such as that of the hardware barrier ([`EurekaLine`]);
//! * otherwise by a word in the node's shared memory ([`FoundWord`]), which the first such round allocates;
//! * otherwise not at all: the round fails to begin, with the same error on all members.
//!
//! Guarantee: if a member tests the line after a raise has returned on another
//! (for example, after a message from the raising member),
//! it reads the line as raised until the round ends. The end of the round returns the member that was first.

use super::eureka_word::{FoundWord, Offer};
use super::{Comm, CommError, ControlGroup};
use crate::Error;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A collective component's eureka line for a communicator.
pub trait EurekaLine {
    /// Begins a round; every member calls this function.
    /// Returns false, on all members, if the round cannot use this line.
    fn begin(&self) -> Result<bool, Error>;

    /// Raises the line. Returns true if this member is the first.
    fn raise(&self) -> Result<bool, Error>;

    /// Returns true if a member has raised the line in this round.
    fn is_found(&self) -> Result<bool, Error>;

    /// Ends the round; every member calls this function, which returns after all have called it.
    fn end(&self) -> Result<(), Error>;
}

/// The state of a communicator's eureka line.
#[derive(Default)]
pub(super) struct Eureka {
    round: RefCell<Option<Round>>,
    /// The number of rounds so far that used the word in shared memory.
    rounds: Cell<u32>,
    word: OnceCell<Rc<FoundWord>>,
}

#[derive(Clone)]
struct Round {
    way: Way,
    /// The result of this member's raise in this round; `None` if it has not raised the line.
    first: Option<bool>,
}

/// How a round implements the line.
#[derive(Clone)]
enum Way {
    Line,
    Word(Rc<FoundWord>, u32),
}

/// The error of a call on the eureka line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EurekaError {
    /// A round has begun already.
    Open { comm: String },
    /// No round has begun.
    NotOpen { call: &'static str, comm: String },
    /// The members have neither hardware nor shared memory for a line.
    NoLine { comm: String, why: &'static str },
    /// The eureka line cannot be used in recorded and replayed runs.
    Recorded,
}

impl fmt::Display for EurekaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EurekaError::Open { comm } => write!(
                f,
                "a round of the eureka line is open on {comm} already; MPIX_Eureka_end ends it"
            ),
            EurekaError::NotOpen { call, comm } => write!(
                f,
                "{call} needs an open round of the eureka line, and none is open on {comm}; every member opens one by MPIX_Eureka_begin"
            ),
            EurekaError::NoLine { comm, why } => write!(
                f,
                "{comm} has no eureka line: no hardware barrier with one serves it, and {why}; \
                 among several hosts a served board has one (coll_hwbarr_port sim:tcp://HOST:PORT, for MPI_COMM_WORLD)"
            ),
            EurekaError::Recorded => f.write_str(
                "what MPIX_Eureka_test finds is not recorded; run the program without --record and --replay",
            ),
        }
    }
}

impl std::error::Error for EurekaError {}

impl crate::Failure for EurekaError {}

/// The eureka line of a communicator.
#[derive(Clone, Copy)]
pub struct EurekaCalls<'a> {
    comm: &'a Comm,
    state: &'a Eureka,
}

impl<'a> EurekaCalls<'a> {
    pub(super) fn new(comm: &'a Comm, state: &'a Eureka) -> EurekaCalls<'a> {
        EurekaCalls { comm, state }
    }

    /// `MPIX_Eureka_begin`: begins a round, in which the line is not raised yet.
    /// Every member calls this function, which may wait for the others.
    pub fn begin(self) -> Result<(), Error> {
        if self.comm.is_inter() {
            return Err(CommError::Kind {
                operation: "MPIX_Eureka_begin",
                inter: true,
            }
            .into());
        }
        self.comm.usable()?;
        if self.comm.engine().script().is_some() {
            return Err(EurekaError::Recorded.into());
        }
        if self.state.round.borrow().is_some() {
            let comm = self.comm.label();
            return Err(EurekaError::Open { comm }.into());
        }
        let line = self
            .comm
            .collectives()
            .components()
            .and_then(|coll| coll.eureka());
        let way = match line {
            Some(line) if line.begin()? => Way::Line,
            _ => self.word_round()?,
        };
        *self.state.round.borrow_mut() = Some(Round { way, first: None });
        Ok(())
    }

    /// `MPIX_Eureka_raise`: raises the line. Local. Returns true if this member is the first in this round.
    pub fn raise(self) -> Result<bool, Error> {
        let round = self.open_round("MPIX_Eureka_raise")?;
        if let Some(first) = round.first {
            return Ok(first);
        }
        let first = match &round.way {
            Way::Line => self.line()?.raise()?,
            Way::Word(word, number) => word.raise(*number, self.comm.rank()),
        };
        if let Some(round) = &mut *self.state.round.borrow_mut() {
            round.first = Some(first);
        }
        Ok(first)
    }

    /// `MPIX_Eureka_test`: returns whether the line has been raised, and whether this member was first. Local.
    pub fn test(self) -> Result<(bool, bool), Error> {
        let round = self.open_round("MPIX_Eureka_test")?;
        let found = match &round.way {
            Way::Line => self.line()?.is_found()?,
            Way::Word(word, number) => word.is_found(*number),
        };
        Ok((found, round.first == Some(true)))
    }

    /// `MPIX_Eureka_end`: ends the round when all members have called it. Returns the member that was first; `None` if the line was not raised.
    pub fn end(self) -> Result<Option<u32>, Error> {
        let round = self.open_round("MPIX_Eureka_end")?;
        // The round ends even if an error follows: an error means that a member has died.
        *self.state.round.borrow_mut() = None;
        if let Way::Line = round.way {
            self.line()?.end()?;
        }
        let mut first = [match round.first {
            Some(true) => self.comm.rank(),
            _ => u32::MAX,
        }];
        let conversation = self.comm.internal().conversation();
        let group = ControlGroup::of(&conversation, self.comm.group(), self.comm.rank());
        self.comm.engine().block_on(group.lowest(&mut first))?;
        Ok(Some(first[0]).filter(|rank| *rank != u32::MAX))
    }

    fn open_round(self, call: &'static str) -> Result<Round, Error> {
        let round = self.state.round.borrow().clone();
        let round = round.ok_or_else(|| {
            let comm = self.comm.label();
            EurekaError::NotOpen { call, comm }
        })?;
        // After a member's death or a revocation the line might never be raised, so the program gets an error.
        self.comm.usable()?;
        Ok(round)
    }

    fn line(self) -> Result<&'a dyn EurekaLine, Error> {
        let line = self
            .comm
            .collectives()
            .components()
            .and_then(|coll| coll.eureka());
        line.ok_or_else(|| self.no_line("the component that had it is gone"))
    }

    /// Begins a round that uses the word in shared memory; all members call this function, and the first call allocates the word.
    fn word_round(self) -> Result<Way, Error> {
        let word = match self.state.word.get() {
            Some(word) => word.clone(),
            None => {
                let word = Rc::new(self.comm.engine().block_on(self.find_word())?);
                self.state.word.get_or_init(|| word).clone()
            }
        };
        // Each round has a number, which a raise stores in the word, so the word is never cleared.
        let number = self.state.rounds.get().wrapping_add(1).max(1);
        self.state.rounds.set(number);
        Ok(Way::Word(word, number))
    }

    /// Rank 0 allocates the word and broadcasts its offset; returns an error unless all members can map it.
    async fn find_word(self) -> Result<FoundWord, Error> {
        let conversation = self.comm.internal().conversation();
        let group = ControlGroup::of(&conversation, self.comm.group(), self.comm.rank());
        let mut made = None;
        let mut offer = Offer::default();
        if self.comm.rank() == 0 {
            (offer, made) = FoundWord::offer(self.comm);
        }
        let told = group.tell(offer.to_bytes().to_vec(), 0).await?;
        let place = Offer::from_bytes(&told).map_err(|why| self.no_line(why))?;
        let word = FoundWord::at(self.comm, place, made);
        let mut all = [word.is_some().into()];
        group.lowest(&mut all).await?;
        let word = word.filter(|_| all == [1]);
        word.ok_or_else(|| self.no_line("a member cannot reach the memory of rank 0"))
    }

    fn no_line(self, why: &'static str) -> Error {
        let comm = self.comm.label();
        EurekaError::NoLine { comm, why }.into()
    }
}
