//! What goes wrong with partitions, in sentences.

use crate::Error;
use crate::pml::PmlError;
use std::fmt;

/// What a program did wrong with a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionError {
    /// A number outside `0..partitions`.
    Number { partition: i64, partitions: u32 },
    /// Marked as ready twice in one start.
    Twice { partition: u32 },
    /// Marked as ready before `MPI_Start`.
    Inactive { partition: u32 },
    /// The two sides do not agree on the length of the message.
    Lengths {
        sent: u64,
        expected: u64,
        source: i32,
        tag: i32,
    },
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionError::Number {
                partition,
                partitions,
            } => write!(
                f,
                "partition {partition} does not exist, there are 0 to {}",
                partitions.saturating_sub(1)
            ),
            PartitionError::Twice { partition } => {
                write!(f, "partition {partition} has been marked as ready already")
            }
            PartitionError::Inactive { partition } => write!(
                f,
                "partition {partition} cannot be marked as ready, the operation has not been started"
            ),
            PartitionError::Lengths {
                sent,
                expected,
                source,
                tag,
            } => write!(
                f,
                "rank {source} sends {sent} bytes in partitions with tag {tag}, but {expected} are expected"
            ),
        }
    }
}

impl std::error::Error for PartitionError {}

impl From<PartitionError> for PmlError {
    fn from(e: PartitionError) -> PmlError {
        PmlError::Partition(e)
    }
}

impl From<PartitionError> for Error {
    #[cold]
    fn from(e: PartitionError) -> Error {
        PmlError::from(e).into()
    }
}
