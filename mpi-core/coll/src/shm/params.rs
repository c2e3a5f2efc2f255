//! What a user can set of collectives in shared memory.

use super::barrier::Kind;
use crate::trial::Way;
use mpi_base::param::{self, Level, Param, Value};

/// Which gate the ranks of a node pass.
pub static GATE: Param<GateChoice> = Param::new(
    "coll",
    "shm",
    "gate",
    "auto",
    Level::TUNER,
    "How barriers in shared memory are made: by a counter, best where ranks share cores; by flags, best where each has its own; or as fits.",
);

/// From how many bytes on data are read from where they lie.
pub static SINGLE_COPY_FROM: Param<usize> = Param::new(
    "coll",
    "shm",
    "single_copy_from",
    "4k",
    Level::TUNER,
    "Blocks of so many bytes that do not fit a cell are read from the other ranks' memory in one copy, where the system allows it; rank 0's value counts.",
);

/// Up to how many bytes data go in pieces.
pub static PIECES_UP_TO: Param<usize> = Param::new(
    "coll",
    "shm",
    "pieces_up_to",
    "64M",
    Level::TUNER,
    "Data that do not fit a cell may travel through cells, a piece in each, up to so many bytes of a call that waits; rank 0's value counts.",
);

/// Which way data go that can go in pieces.
pub static LONG_WAY: Param<LongWay> = Param::new(
    "coll",
    "shm",
    "long_way",
    "measured",
    Level::TUNER,
    "Whether data that do not fit a cell and can go in pieces do so: in pieces, or in single copies as if they could not, or whichever is found to be faster while the program runs, of calls that wait; rank 0's value counts.",
);

/// How long cells are.
pub static CELL_SIZE: Param<usize> = Param::new(
    "coll",
    "shm",
    "cell_size",
    "0",
    Level::TUNER,
    "Bytes of the cells in which ranks of a node show each other short data; 0 is what fits the number of ranks; rank 0's value counts.",
);

/// A value of [`GATE`]; `None` is what fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateChoice(pub(super) Option<Kind>);

impl Value for GateChoice {
    const KIND: param::Kind = param::Kind::OneOf(&["auto", "counter", "flags"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(GateChoice(None)),
            "counter" => Ok(GateChoice(Some(Kind::Counter))),
            "flags" => Ok(GateChoice(Some(Kind::Flags))),
            _ => Err("auto, counter or flags".into()),
        }
    }
}

/// A value of [`LONG_WAY`]; `None` is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongWay(pub(super) Option<Way>);

impl Value for LongWay {
    const KIND: param::Kind = param::Kind::OneOf(&["measured", "pieces", "copies"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "measured" => Ok(LongWay(None)),
            "pieces" => Ok(LongWay(Some(Way::Fragments))),
            "copies" => Ok(LongWay(Some(Way::Copy))),
            _ => Err("measured, pieces or copies".into()),
        }
    }
}

impl LongWay {
    /// The number that rank 0 tells the others.
    pub(super) fn number(self) -> u64 {
        match self.0 {
            None => 0,
            Some(Way::Fragments) => 1,
            Some(Way::Copy) => 2,
        }
    }

    pub(super) fn from_number(number: u64) -> Option<LongWay> {
        let all = [None, Some(Way::Fragments), Some(Way::Copy)].map(LongWay);
        all.into_iter().find(|way| way.number() == number)
    }
}
