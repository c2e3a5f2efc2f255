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
