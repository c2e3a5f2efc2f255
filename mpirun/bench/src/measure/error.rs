//! Error type of the measurements.

use std::fmt;

use crate::benchmark::Benchmark;
use crate::cli::Pattern;
use crate::mpi::MpiError;

/// The reason why a measurement failed.
#[derive(Debug)]
pub enum MeasureError {
    /// The benchmark requires another number of ranks.
    Ranks {
        benchmark: Benchmark,
        needed: i32,
        given: i32,
    },
    /// The benchmark requires an even number of ranks.
    Odd { benchmark: Benchmark, given: i32 },
    /// The benchmark requires at least two ranks.
    Alone { benchmark: Benchmark },
    /// The library does not grant `MPI_THREAD_MULTIPLE`.
    Threads,
    /// A file access without MPI failed.
    Plain(std::io::Error),
    /// The data that were read differ from the data written.
    Differs { pattern: Pattern, size: usize },
    /// An MPI function returned an error.
    Mpi(MpiError),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranks {
                benchmark,
                needed,
                given,
            } => write!(
                f,
                "{} measures between exactly {needed} ranks, this job has {given}",
                benchmark.name()
            ),
            Self::Odd { benchmark, given } => write!(
                f,
                "{} measures between pairs of ranks, this job has {given}",
                benchmark.name()
            ),
            Self::Alone { benchmark } => write!(
                f,
                "{} measures between ranks, this job has one: start more with -n",
                benchmark.name()
            ),
            Self::Threads => f.write_str("the library does not grant MPI_THREAD_MULTIPLE"),
            Self::Plain(error) => write!(f, "a plain access failed: {error}"),
            Self::Differs { pattern, size } => write!(
                f,
                "the pattern {pattern:?} with size {size}: what was read is not what was written"
            ),
            Self::Mpi(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MeasureError {}

impl From<MpiError> for MeasureError {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}
