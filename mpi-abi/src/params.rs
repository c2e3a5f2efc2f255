//! Parameters that concern the library as a whole.

use mpi_base::param::{Level, Param};

/// Enables warnings about unknown parameters ([`unknown_params`](crate::unknown_params)).
pub static TELL_MISSPELT: Param<bool> = Param::new(
    "mca",
    "base",
    "tell_misspelt",
    "true",
    Level::USER,
    "Whether rank 0, and mpirun itself, warn about settings of unknown parameters",
);

/// The number of lanes of each process (module `lanes`).
pub static LANES: Param<usize> = Param::new(
    "threads",
    "",
    "lanes",
    "1",
    Level::USER,
    "Number of lanes, up to 8, in which threads at MPI_THREAD_MULTIPLE exchange messages at the same time: each communicator within a node belongs to one; for processes with several cores; the same on all ranks",
);
