//! The members of a communicator that share memory, and a rank's progress in a barrier.

pub use mpi_base::cells::LINE;
pub use mpi_engine::NodeMembers as Members;

/// A rank's progress in a barrier; all fields are zero before it has entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    pub round: u32,
    /// True if this rank has already signalled to its partner of this round.
    pub told: bool,
}
