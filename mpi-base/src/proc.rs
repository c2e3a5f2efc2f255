//! The identifier of a process.

/// A process of the job by its rank in the job (`MPI_COMM_WORLD` of one launch).
pub type ProcId = u32;
