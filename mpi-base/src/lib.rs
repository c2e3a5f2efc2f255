//! Memory, atomics, rings, doorbell, parameters: what the MPI engine stands on

pub mod cpu;
pub mod param;
pub mod state;
