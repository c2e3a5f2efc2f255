//! Real programs under real launchers: what holds the whole of Portcullis to its claims.
//!
//! The tests make one installation in the target folder, with the code of `cargo xtask install`, compile the C programs in `programs/` with its `mpicc`, and run them under its `mpirun`.
//! Each program checks its own claims and ends with a line that says so.
//!
//! Promise: a test never waits longer than its limit, and after each job the harness looks for processes and files that were left behind.
//!
//! Being tests, the functions here panic where a claim does not hold.

#![deny(unsafe_code)]

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
    bare_installation, compile, compile_cpp, compile_with, installation, mpi4py_python, mpich,
    needs, open_mpi, shipped_installation,
};
pub use xtask::process::Outcome;
