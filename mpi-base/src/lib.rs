//! Memory, atomics, rings, doorbell, parameters: what the MPI engine stands on
