//! The tools around the library: `mpirun`, `mpicc`, `mpi-info`; `mpi-bench` is a package of its own in `bench/`.
//!
//! * [`cli`] reads mpirun's command line into a plan;
//! * `text` are the files a user writes for it;
//! * `hosts` says where ranks may run, [`launch`] runs a plan there;
//! * `foreign` sees programs that are linked to another MPI library;
//! * `pmi` is the PMI-1 server that the ranks talk to;
//! * [`wrapper`] is `mpicc`, [`info`] is `mpi-info`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod cli;
mod components;
mod foreign;
mod hosts;
pub mod info;
mod io_report;
pub mod launch;
mod ledger;
pub mod node;
mod params;
mod pmi;
pub mod prefix;
mod recording;
mod text;
pub mod wrapper;

use mpi_report::{hang, rank_snapshot, trace};
