//! The workshop of this repository: `cargo xtask demo | test | mpi4py | mpich-tests | pnetcdf | rsmpi | hpcc | gen | install | fpga | firmware | nightly-qemu | bench`.
//!
//! Promise: one command takes a fresh Debian machine with Rust, gcc and git to a result that is explained on the screen.
//! What is missing is installed when we may, and otherwise named together with the command that installs it.
//!
//! The library half exists so that the tests make their installation with the same code as a user does.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod bench;
pub mod cargo;
pub mod debian_source;
pub mod demo;
pub mod deny;
pub mod firmware;
pub mod fpga;
#[path = "gen.rs"]
pub mod generate;
pub mod guests;
pub mod hpcc;
pub mod install;
mod library;
pub mod licences;
pub mod mpi4py;
pub mod mpich_tests;
pub mod package;
pub mod packages;
pub mod pnetcdf;
pub mod rsmpi;
pub mod test;
pub mod test_installation;
pub mod ui;
pub mod venv;
pub mod workspace;

pub use bounded as process;
