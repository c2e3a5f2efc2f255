//! Why an operation of a communicator could not even be started.

use crate::btl::ProcId;
use crate::pml::Context;
use mpi_transport::universe::Name;
use std::fmt;

/// Why a leader does not reach the other leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderError {
    /// A number of the caller's own, which comes back at all members: its class of the error.
    pub code: i32,
    /// A sentence.
    pub why: String,
}

/// Why a communicator could not even start an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommError {
    /// A rank that is not in the communicator.
    Rank { rank: i64, size: u32, comm: String },
    /// The two groups of an intercommunicator to be share a process.
    Overlap { proc: ProcId },
    /// A communicator was to be made of a group with a member, by its rank there and in the job, that is not in the whole of which it is to be a part.
    Outsider {
        rank: u32,
        proc: ProcId,
        whole: &'static str,
        size: u32,
    },
    /// The engine of this process was given no collective components.
    NoComponents,
    /// The process that was to number a communicator has no number left.
    NoNumber { leader: ProcId },
    /// A communicator was to be made out of a group alone that has members of other jobs.
    Strangers,
    /// A process was named that this process has never heard of.
    Unknown { name: u64 },
    /// This process cannot be reached from other jobs.
    Unreachable { why: String },
    /// The leader of a group was told a wrong way to the other group.
    LeaderError { leader: ProcId, astray: LeaderError },
    /// The other leader announced a message of this many words; no operation of this library sends one as long.
    Strange { words: u64 },
    /// A message of the library is shorter than its receiver expects; `source` is a rank of the communicator.
    Short { source: i32, bytes: u64, due: u64 },
    /// An intercommunicator where only an intracommunicator will do, or the other way round.
    Kind {
        operation: &'static str,
        inter: bool,
    },
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommError::Rank { rank, size, comm } => {
                write!(
                    f,
                    "rank {rank} is not in {comm}, which has ranks 0 to {}",
                    size.saturating_sub(1)
                )
            }
            CommError::Overlap { proc } => {
                write!(
                    f,
                    "the two groups share a process, number {proc} of the job"
                )
            }
            CommError::Outsider {
                rank,
                proc,
                whole,
                size,
            } => {
                write!(
                    f,
                    "no communicator was made: rank {rank} of the group given, which is rank {proc} of the job, is not among the {size} members of {whole}"
                )
            }
            CommError::NoComponents => write!(
                f,
                "this process's engine was given no collective components, so no communicator can be made"
            ),
            CommError::NoNumber { leader } => {
                write!(
                    f,
                    "no communicator was made: rank {leader} of the job was to number it, but has led {} since it began and cannot number another",
                    Context::LAST_SERIAL
                )
            }
            CommError::Strangers => f.write_str(
                "no communicator was made: the group has processes of other jobs, which can only be found by way of a communicator that connects them with this job",
            ),
            CommError::Unknown { name } => {
                let name = Name(*name);
                write!(
                    f,
                    "no communicator was made: rank {} of the job with the number {:x} is a process that this one has never heard of",
                    name.rank(),
                    name.job()
                )
            }
            CommError::Unreachable { why } => {
                write!(f, "processes of other jobs cannot be reached: {why}")
            }
            CommError::LeaderError { leader, astray } => {
                write!(
                    f,
                    "no intercommunicator was made: rank {leader} of the job, the leader of its group, does not reach the other group: {}",
                    astray.why
                )
            }
            CommError::Short { source, bytes, due } => write!(
                f,
                "rank {source} sends {bytes} bytes where all members send {due}; all ranks of a job need the same library"
            ),
            CommError::Strange { words } => {
                write!(
                    f,
                    "no intercommunicator was made: the leader of the other group answered with {words} words, which is no answer; do both groups call the same operation?"
                )
            }
            CommError::Kind {
                operation,
                inter: true,
            } => {
                write!(f, "{operation} is not defined on an intercommunicator")
            }
            CommError::Kind {
                operation,
                inter: false,
            } => {
                write!(f, "{operation} needs an intercommunicator")
            }
        }
    }
}

impl std::error::Error for CommError {}

impl crate::Failure for CommError {}
