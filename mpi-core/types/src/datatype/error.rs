//! Errors of datatype constructors and of commit.

use std::fmt;

use super::normalise::MAX_RUNS;

/// The reason why a datatype cannot be created or committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeError {
    /// A count or block length below zero.
    Negative { what: &'static str, value: i64 },
    /// Arrays of one call that must have equal lengths and do not.
    Lengths {
        what: &'static str,
        len: usize,
        other: &'static str,
        other_len: usize,
    },
    /// An address or size beyond 63 bits.
    Overflow { combiner: &'static str },
    /// Inconsistent arguments of a subarray or darray.
    Array {
        dimension: usize,
        what: &'static str,
        value: i64,
        limit: i64,
    },
    /// The size of the process grid of a darray differs from the size of its group.
    Grid { processes: i64, grid: i64 },
    /// The rank given to a darray is not one of its processes.
    Rank { rank: i64, processes: i64 },
    /// Fortran has no kind with the requested digits or range.
    NoKind {
        combiner: &'static str,
        asked: String,
    },
    /// The normal form would have too many runs.
    TooManyRuns,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TypeError::*;
        match self {
            Negative { what, value } => {
                write!(f, "the {what} of a datatype is {value}, below zero")
            }
            Lengths {
                what,
                len,
                other,
                other_len,
            } => write!(
                f,
                "a datatype was given {len} {what} but {other_len} {other}"
            ),
            Overflow { combiner } => write!(
                f,
                "the {combiner} type would reach beyond the 63 bits of an address"
            ),
            Array {
                dimension,
                what,
                value,
                limit,
            } => write!(
                f,
                "in dimension {dimension} of an array type the {what} is {value}, its limit {limit}"
            ),
            Grid { processes, grid } => write!(
                f,
                "the process grid of a distributed array has {grid} places for {processes} processes"
            ),
            Rank { rank, processes } => write!(
                f,
                "a distributed array over {processes} processes has no part for rank {rank}"
            ),
            NoKind { combiner, asked } => {
                write!(
                    f,
                    "no kind of Fortran has what the {combiner} type asks for: {asked}"
                )
            }
            TooManyRuns => write!(
                f,
                "the datatype breaks into more than {MAX_RUNS} separate runs of memory"
            ),
        }
    }
}

impl std::error::Error for TypeError {}
