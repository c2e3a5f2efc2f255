//! Errors of communicator operations that cannot be carried out.

use crate::btl::ProcId;
use crate::pml::Context;
use mpi_transport::universe::Name;
use std::fmt;

/// The reason why a leader cannot reach the other group's leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderError {
    /// The error class from the caller, which all members return.
    pub code: i32,
    /// The error text.
    pub why: String,
}

/// The reason why a communicator operation cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommError {
    /// A rank is not in the communicator.
    Rank { rank: i64, size: u32, comm: String },
    /// The two groups of a new intercommunicator have a process in common.
    Overlap { proc: ProcId },
    /// A member of a new communicator's group (given by its rank in that group and in the job) is not in the group of the parent communicator.
    Outsider {
        rank: u32,
        proc: ProcId,
        whole: &'static str,
        size: u32,
    },
    /// The engine has no collective components.
    NoComponents,
    /// The process that chooses a new communicator's context id has none left.
    NoNumber { leader: ProcId },
    /// `MPI_Comm_create_from_group` was called with a group that has members of other jobs.
    Strangers,
    /// This process does not know the named process.
    Unknown { name: u64 },
    /// This process cannot be reached from other jobs.
    Unreachable { why: String },
    /// The leader of a group got invalid arguments for the remote group from the program.
    LeaderError { leader: ProcId, error: LeaderError },
    /// The other leader announced a message of `words` words of 8 bytes,
    /// a length that no operation of this library sends.
    Strange { words: u64 },
    /// This rank exchanged words for one collective call, and `rank` made another collective call.
    Unpaired { rank: u32 },
    /// An internal message is shorter than its receiver expects; `source` is a rank of the communicator.
    Short { source: i32, bytes: u64, due: u64 },
    /// An intercommunicator was passed where an intracommunicator is required (`inter` is true), or the other way round.
    Kind {
        operation: &'static str,
        inter: bool,
    },
}

/// Returns the name of a constant of `mpi.h` that a program has passed as a rank.
pub fn name_of_constant(rank: i64) -> Option<&'static str> {
    let names = [
        (-1, "MPI_ANY_SOURCE"),
        (-2, "MPI_ANY_TAG"),
        (-3, "MPI_PROC_NULL"),
        (-4, "MPI_ROOT"),
        (-32766, "MPI_UNDEFINED"),
    ];
    let found = names.iter().find(|(value, _)| *value == rank);
    found.map(|(_, name)| *name)
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommError::Rank { rank, size, comm } => {
                let name = name_of_constant(*rank).map(|name| format!(" ({name})"));
                write!(
                    f,
                    "rank {rank}{} is not in {comm}, which has ranks 0 to {}",
                    name.unwrap_or_default(),
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
            CommError::LeaderError { leader, error } => {
                write!(
                    f,
                    "no intercommunicator was made: rank {leader} of the job, the leader of its group, failed: {}",
                    error.why
                )
            }
            CommError::Short { source, bytes, due } => write!(
                f,
                "rank {source} sends {bytes} bytes where all members send {due}; all ranks of a job need the same library"
            ),
            CommError::Unpaired { rank } => write!(
                f,
                "this rank duplicated a communicator (as MPI_Comm_dup and the functions that create windows, files and persistent collectives do) or called a collective function of a window or file, but rank {rank} made another collective call on it"
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
