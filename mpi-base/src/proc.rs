//! The identifier of a process within a job.

/// A process's rank in the job: its rank in `MPI_COMM_WORLD` of the launch.
pub type ProcId = u32;
