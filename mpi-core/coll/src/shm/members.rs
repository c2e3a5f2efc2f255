//! Which ranks meet in shared memory, and how far one of them has come in a barrier.

pub use mpi_base::cells::LINE;
pub use mpi_engine::NodeMembers as Members;

/// How far a rank has come in a barrier; zero is in front of the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    pub round: u32,
    /// Whether the others have been told about this round.
    pub told: bool,
}
