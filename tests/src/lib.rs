//! The integration test harness, which runs real programs under real launchers.
//!
//! The tests make one installation in the target folder, with the code of `cargo xtask install`,
//! compile the C programs in `programs/` with its `mpicc`, and run them under its `mpirun`.
//! Each program checks its own results, and prints a final line if all are right.
//!
//! Every wait has a time limit.
//! After each job the harness checks for leftover processes and files.
//! The functions are for tests: they panic if the expected result does not occur.

#![deny(unsafe_code)]

pub mod document;
pub mod fortran;
pub mod hosts;
pub mod job;
pub mod leftovers;
pub mod machines;
pub mod peers;
pub mod served;
mod setting;
pub mod slurm;

pub use job::{Job, Started};
pub use setting::{
    bare_installation, compile, compile_cpp, compile_source, compile_with, installation, killed_at,
    mpi4py_python, mpich, needs, open_mpi, shipped_installation,
};
pub use xtask::process::Outcome;
