//! The tools around the library: `mpirun`, `mpicc`, `mpi-info`; `mpi-bench` stands on its own in `src/bin`.
//!
//! * [`cli`] reads mpirun's command line into a plan;
//! * [`text`] are the files a user writes for it;
//! * [`hosts`] says where ranks may run, [`launch`] runs a plan there;
//! * [`pmi`] is the PMI-1 server that the ranks talk to;
//! * [`wrapper`] is `mpicc`, [`info`] is `mpi-info`.

pub mod cli;
pub mod glimpse;
pub mod hang;
pub mod hosts;
pub mod info;
pub mod launch;
pub mod node;
pub mod pmi;
pub mod prefix;
pub mod recording;
pub mod text;
pub mod trace;
pub mod wrapper;
