//! What goes wrong with partitions, in sentences.

use crate::Error;
use crate::pml::PmlError;
use std::fmt;

/// The other side of a partitioned message, by its rank in the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender(i32),
    Receiver(i32),
}

/// What a program did wrong with a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionError {
    /// A number outside `0..partitions`.
    Number { partition: i64, partitions: u32 },
    /// Marked as ready twice in one start.
    Twice { partition: u32 },
    /// Marked as ready before `MPI_Start`.
    Inactive { partition: u32 },
    /// The receiver has room for less than the partitions of the sender hold; `peer` is the other side.
    Longer {
        sent: u64,
        room: u64,
        peer: Side,
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
            PartitionError::Longer {
                sent,
                room,
                peer: Side::Sender(rank),
                tag,
            } => write!(
                f,
                "rank {rank} sends {sent} bytes in partitions with tag {tag}, but the receive has room for {room}"
            ),
            PartitionError::Longer {
                sent,
                room,
                peer: Side::Receiver(rank),
                tag,
            } => write!(
                f,
                "{sent} bytes are to be sent in partitions with tag {tag} to rank {rank}, which has room for {room}"
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
