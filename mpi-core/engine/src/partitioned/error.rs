//! Errors of partitioned communication.

use crate::Failure;
use std::fmt;

/// The other process of a partitioned message, by its rank in the communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender(i32),
    Receiver(i32),
}

/// A program's error in partitioned communication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionError {
    /// The partition number is outside `0..partitions`.
    Number { partition: i64, partitions: u32 },
    /// The program has marked the partition as ready twice after one start.
    Twice { partition: u32 },
    /// The program has marked the partition as ready before `MPI_Start`.
    Inactive { partition: u32 },
    /// The receive buffer is smaller than the sender's message; `peer` is the other process.
    Longer {
        sent: u64,
        space: u64,
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
                space,
                peer: Side::Sender(rank),
                tag,
            } => write!(
                f,
                "rank {rank} sends {sent} bytes in partitions with tag {tag}, but the receive has room for {space}"
            ),
            PartitionError::Longer {
                sent,
                space,
                peer: Side::Receiver(rank),
                tag,
            } => write!(
                f,
                "{sent} bytes are to be sent in partitions with tag {tag} to rank {rank}, which has room for {space}"
            ),
        }
    }
}

impl std::error::Error for PartitionError {}

impl Failure for PartitionError {}
