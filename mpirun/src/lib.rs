//! The tools of the installation: `mpirun`, `mpicc`, `mpi-info`; `mpi-bench` is a package of its own in `bench/`.
//!
//! * [`cli`] parses mpirun's command line into a plan;
//! * `text` reads the files that a user writes for it;
//! * `hosts` determines the hosts and maps ranks to them, [`launch`] runs a plan there;
//! * `foreign` prepares programs that are linked to another MPI library;
//! * `pmi` is the PMI-1 server of the ranks, `rank_environment` what they inherit, `process_tree` the processes below a process;
//! * `checkpoint` is what the command line says of checkpoints;
//! * [`control`] is the control socket of a running mpirun, and `mpi-ctl`;
//! * `frameworks` lists what can be selected, for both programs;
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
