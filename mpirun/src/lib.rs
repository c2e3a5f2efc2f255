//! Command-line tools: `mpirun`, `mpicc`, `mpi-info`; `mpi-bench` is a separate package.
//!
//! * [`cli`] parses mpirun's command line into a plan;
//! * `text` reads text files that users write for mpirun;
//! * `hosts` determines the hosts and maps ranks to them, [`launch`] runs a plan on the hosts;
//! * `foreign` prepares programs that are linked to another MPI library;
//! * `pmi` is the PMI-1 server, `rank_environment` the ranks' environment,
//!   `process_tree` a process's descendants;
//! * `checkpoint` handles the checkpoint options;
//! * [`control`] is the control socket of a running mpirun, and `mpi-ctl`;
//! * `frameworks` lists frameworks and components, for `mpirun` and `mpi-info`;
//! * [`wrapper`] is `mpicc`, [`info`] is `mpi-info`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod checkpoint;
pub mod cli;
mod components;
pub mod control;
mod foreign;
pub(crate) mod frameworks;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hosts;
pub mod info;
mod io_report;
pub mod launch;
mod ledger;
mod matrix;
pub mod node;
mod params;
mod pmi;
pub mod prefix;
mod process_tree;
mod rank_environment;
mod recording;
mod text;
pub mod wrapper;

use mpi_report::{hang, rank_snapshot, trace};
