//! The eureka line of a communicator: one member says that it has found it, and all others can see that (`MPIX_Eureka_...`).
//!
//! Rounds are opened and ended by all members together. In a round any member may raise the line, and exactly one is told that it
//! was first; a look at the line costs no message. What carries a round is chosen when it is opened, alike at all members:
//!
//! * the line of a collective component, such as that beside the hardware barrier ([`EurekaLine`]);
//! * else a word in the memory of the node ([`FoundWord`]), which is made at the first such round;
//! * else nothing, and the opening fails with a sentence at all members.
//!
//! Promise: a member that looks after a raise has returned, by whatever way it has learnt of that, sees the line high until the
//! round ends. The end is told which member was first.

use super::eureka_word::{FoundWord, Offer};
use super::{Comm, CommError, ControlGroup};
use crate::Error;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A line that a collective component has for a communicator.
pub trait EurekaLine {
    /// Opens a round; every member calls. False, at all members alike, if the round has to go another way.
    fn begin(&self) -> Result<bool, Error>;

    /// This member has found it; true if it is the first.
    fn raise(&self) -> Result<bool, Error>;

    /// Whether a member has found it in this round.
    fn is_found(&self) -> Result<bool, Error>;

    /// Ends the round; every member calls, and none returns before all have called.
    fn end(&self) -> Result<(), Error>;
}

/// What a communicator knows of its line.
#[derive(Default)]
pub(super) struct Eureka {
    round: RefCell<Option<Round>>,
    /// How many rounds have gone through the word.
    rounds: Cell<u32>,
    word: OnceCell<Rc<FoundWord>>,
}

/// A round that is open.
#[derive(Clone)]
struct Round {
    way: Way,
    /// What this member heard when it raised the line.
    first: Option<bool>,
}

/// What carries a round.
#[derive(Clone)]
enum Way {
    Line,
    Word(Rc<FoundWord>, u32),
}

/// Why a call of the eureka line cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EurekaError {
    /// A round is open already.
    Open { comm: String },
    /// No round is open.
    NotOpen { call: &'static str, comm: String },
    /// Neither hardware nor memory carries a line among these members.
    NoLine { comm: String, why: &'static str },
    /// The run is recorded or repeats a recording.
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

impl Comm {
    /// `MPIX_Eureka_begin`: opens a round, in which the line is low; every member calls, and it may wait for the others.
    pub fn eureka_begin(&self) -> Result<(), Error> {
        if self.is_inter() {
            return Err(CommError::Kind {
                operation: "MPIX_Eureka_begin",
                inter: true,
            }
            .into());
        }
        self.usable()?;
        if self.engine().script().is_some() {
            return Err(EurekaError::Recorded.into());
        }
        let state = self.eureka();
        if state.round.borrow().is_some() {
            let comm = self.label();
            return Err(EurekaError::Open { comm }.into());
        }
        let line = self.coll().and_then(|coll| coll.eureka());
        let way = match line {
            Some(line) if line.begin()? => Way::Line,
            _ => self.word_round()?,
        };
        *state.round.borrow_mut() = Some(Round { way, first: None });
        Ok(())
    }

    /// `MPIX_Eureka_raise`: this member has found it. Local; true if it is the first of this round.
    pub fn eureka_raise(&self) -> Result<bool, Error> {
        let round = self.open_round("MPIX_Eureka_raise")?;
        if let Some(first) = round.first {
            return Ok(first);
        }
        let first = match &round.way {
            Way::Line => self.eureka_line()?.raise()?,
            Way::Word(word, number) => word.raise(*number, self.rank()),
        };
        if let Some(round) = &mut *self.eureka().round.borrow_mut() {
            round.first = Some(first);
        }
        Ok(first)
    }

    /// `MPIX_Eureka_test`: whether a member has found it in this round, and whether that is this one. Local.
    pub fn eureka_test(&self) -> Result<(bool, bool), Error> {
        let round = self.open_round("MPIX_Eureka_test")?;
        let found = match &round.way {
            Way::Line => self.eureka_line()?.is_found()?,
            Way::Word(word, number) => word.is_found(*number),
        };
        Ok((found, round.first == Some(true)))
    }

    /// `MPIX_Eureka_end`: ends the round when all members have called it; which member was first, if any has found it.
    pub fn eureka_end(&self) -> Result<Option<u32>, Error> {
        let round = self.open_round("MPIX_Eureka_end")?;
        // The round is over whatever comes of its end: an error is that a member is gone.
        *self.eureka().round.borrow_mut() = None;
        if let Way::Line = round.way {
            self.eureka_line()?.end()?;
        }
        let mut first = [match round.first {
            Some(true) => self.rank(),
            _ => u32::MAX,
        }];
        let talk = self.hidden();
        let group = ControlGroup::of(&talk, self.group(), self.rank());
        self.engine().block_on(group.lowest(&mut first))?;
        Ok(Some(first[0]).filter(|rank| *rank != u32::MAX))
    }

    fn open_round(&self, call: &'static str) -> Result<Round, Error> {
        let round = self.eureka().round.borrow().clone();
        let round = round.ok_or_else(|| {
            let comm = self.label();
            EurekaError::NotOpen { call, comm }
        })?;
        // A finder that has died, or has gone away by revoking, would let the others look for ever.
        self.usable()?;
        Ok(round)
    }

    fn eureka_line(&self) -> Result<&dyn EurekaLine, Error> {
        let line = self.coll().and_then(|coll| coll.eureka());
        line.ok_or_else(|| self.no_line("the component that had it is gone"))
    }

    /// A round through the word in the node's memory, which is found first if need be; every member calls.
    fn word_round(&self) -> Result<Way, Error> {
        let state = self.eureka();
        let word = match state.word.get() {
            Some(word) => word.clone(),
            None => {
                let word = Rc::new(self.engine().block_on(self.find_word())?);
                state.word.get_or_init(|| word).clone()
            }
        };
        // Which round a raise belongs to is told by its number, so nothing is to be cleared.
        let number = state.rounds.get().wrapping_add(1).max(1);
        state.rounds.set(number);
        Ok(Way::Word(word, number))
    }

    /// Rank 0 makes the word and tells where it is; the members use it if all of them can.
    async fn find_word(&self) -> Result<FoundWord, Error> {
        let talk = self.hidden();
        let group = ControlGroup::of(&talk, self.group(), self.rank());
        let mut made = None;
        let mut offer = Offer::default();
        if self.rank() == 0 {
            (offer, made) = FoundWord::offer(self);
        }
        let told = group.tell(offer.to_bytes().to_vec(), 0).await?;
        let place = Offer::from_bytes(&told).map_err(|why| self.no_line(why))?;
        let word = FoundWord::at(self, place, made);
        let mut all = [word.is_some().into()];
        group.lowest(&mut all).await?;
        let word = word.filter(|_| all == [1]);
        word.ok_or_else(|| self.no_line("a member cannot reach the memory of rank 0"))
    }

    fn no_line(&self, why: &'static str) -> Error {
        let comm = self.label();
        EurekaError::NoLine { comm, why }.into()
    }
}
