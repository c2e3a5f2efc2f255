//! The members of a shared-memory group, and a rank's progress in a barrier.

pub use mpi_base::cells::LINE;
pub use mpi_engine::NodeMembers as Members;

/// A rank's progress in a barrier; zero before it has entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    pub round: u32,
    /// True if this rank has signalled this round to the others.
    pub told: bool,
}
