//! The build and test tasks of this repository: `cargo xtask demo | test | mpi4py | mpich-tests |
//! mpich-fortran | pnetcdf | rsmpi | hpcc | bug-suites | checkpoints | races | gen | install |
//! package | fpga | kit | firmware | nightly-qemu | nightly-verbs | bench`.
//!
//! On a fresh Debian machine with Rust, gcc and git,
//! each task is one command, and prints its result.
//! Missing packages are installed if the user is root;
//! otherwise the command prints how to install them.
//!
//! This is a library so that the tests create their installation with the same code as users.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod bench;
pub mod bug_suites;
pub mod c_interface;
pub mod cargo;
pub mod checkpoints;
pub mod debian_source;
pub mod demo;
pub mod deny;
pub mod fences;
pub mod firmware;
pub mod fpga;
pub mod frames;
#[path = "gen.rs"]
pub mod generate;
pub mod guests;
pub mod hpcc;
pub mod install;
pub mod kit;
mod library;
pub mod licences;
pub mod machines;
pub mod manual;
pub mod mpi4py;
pub mod mpich_tests;
pub mod package;
pub mod packages;
pub mod plugin_tables;
pub mod pnetcdf;
pub mod races;
pub mod regions;
pub mod registers;
pub mod rsmpi;
pub mod test;
pub mod test_installation;
pub mod testplan;
pub mod ui;
pub mod venv;
pub mod verbs;
pub mod workspace;

pub use bounded as process;
