//! The parameters of component `shm`.

use super::barrier::Kind;
use crate::trial::Way;
use mpi_base::occupancy::Occupancy;
use mpi_base::param::{self, Level, Param, Value};

/// The barrier algorithm within a node.
pub static BARRIER: Param<BarrierChoice> = Param::new(
    "coll",
    "shm",
    "barrier",
    "auto",
    Level::TUNER,
    "Barrier in shared memory: counter (central, for oversubscribed ranks), flags (dissemination, for ranks with a core each), or auto (by coll_shm_occupancy); rank 0's value is used",
);

/// Whether cells and protocols are chosen for a core per rank or for oversubscribed ranks.
pub static OCCUPANCY: Param<OccupancyChoice> = Param::new(
    "coll",
    "shm",
    "occupancy",
    "auto",
    Level::TUNER,
    "Occupancy of the cores for which buffers and protocols in shared memory are chosen: dedicated (a core for each rank), oversubscribed (more ranks than cores), or auto (as found); rank 0's value is used",
);

/// Minimum length in bytes of data that are read from another rank's memory in a single copy.
pub static SINGLE_COPY_FROM: Param<usize> = Param::new(
    "coll",
    "shm",
    "single_copy_min",
    "4k",
    Level::TUNER,
    "Minimum size of blocks that may be read from the other ranks' memory in a single copy, if they do not fit a cell; rank 0's value is used",
);

/// Maximum length in bytes of data that are sent through cells in pieces.
pub static PIECES_UP_TO: Param<usize> = Param::new(
    "coll",
    "shm",
    "pieces_max",
    "64M",
    Level::TUNER,
    "Maximum size of the data of a blocking call that travel through shared-memory cells in pieces; rank 0's value is used",
);

/// The protocol for data that can be sent in pieces.
pub static LONG_WAY: Param<LongWay> = Param::new(
    "coll",
    "shm",
    "protocol",
    "measured",
    Level::TUNER,
    "Protocol of blocking collectives that do not fit a cell: pieces (pipelined), copies (single copy), or measured (the faster one); rank 0's value is used",
);

/// The cell size in bytes.
pub static CELL_SIZE: Param<usize> = Param::new(
    "coll",
    "shm",
    "cell_size",
    "0",
    Level::TUNER,
    "Size in bytes of the shared-memory cells for short data; 0: by the number of ranks; rank 0's value is used",
);

/// A value of [`BARRIER`]; `None` is `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierChoice(pub(super) Option<Kind>);

impl Value for BarrierChoice {
    const KIND: param::Kind = param::Kind::OneOf(&["auto", "counter", "flags"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(BarrierChoice(None)),
            "counter" => Ok(BarrierChoice(Some(Kind::Counter))),
            "flags" => Ok(BarrierChoice(Some(Kind::Flags))),
            _ => Err("auto, counter or flags".into()),
        }
    }
}

/// A value of [`OCCUPANCY`]; `None` is `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccupancyChoice(pub(super) Option<Occupancy>);

impl Value for OccupancyChoice {
    const KIND: param::Kind = param::Kind::OneOf(&["auto", "dedicated", "oversubscribed"]);

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(OccupancyChoice(None)),
            "dedicated" => Ok(OccupancyChoice(Some(Occupancy::Dedicated))),
            "oversubscribed" => Ok(OccupancyChoice(Some(Occupancy::Oversubscribed))),
            _ => Err("auto, dedicated or oversubscribed".into()),
        }
    }
}

/// A value of [`LONG_WAY`]; `None` is `measured`.
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
    /// Returns the value's code in rank 0's config blob.
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
