//! `libportcullis-preload.so`: the hardware barrier, the hang report and traces for programs on Open MPI, MPICH, Intel MPI and
//! libraries of the standard ABI, under their own launcher and not compiled again.
//!
//! ```text
//! LD_PRELOAD=libportcullis-preload.so PORTCULLIS_MCA_coll_hwbarr_port=sim:tcp://127.0.0.1:7700 mpirun -n 4 ./a.out
//! LD_PRELOAD=libportcullis-preload.so PORTCULLIS_HANG=30 PORTCULLIS_TRACE=trace.json mpirun -n 4 ./a.out
//! ```
//!
//! # Protocol
//!
//! It has names of MPI functions in C and in Fortran and stands in front of the library. What is called goes on, unchanged, to the
//! function of the same name that the loader finds next, which is the library's or that of a profiler ([`next`]).
//! A barrier of `MPI_COMM_WORLD`, or of a communicator of the same processes in the same order, goes to the hardware's component
//! (`coll_hwbarr_foreign`) where a port is set. Where a trace or a report is wanted, each call is written down first ([`watch`]).
//! Of Fortran, libraries differ in which C function their own interface calls, and some call the profiling one. So the Fortran
//! names are here too, and a call that comes from inside a call is handed on and neither counted nor written down.
//!
//! | module | what it is |
//! |---|---|
//! | [`next`] | the function behind the one here |
//! | [`lifecycle`] | `MPI_Init` and `MPI_Finalize` |
//! | [`draft`] | whether a library of the standard ABI has the standard's numbers |
//! | [`barrier`] | `MPI_Barrier` |
//! | [`entries`] | all others, written by the build |
//! | [`names`] | names and numbers of all of them |
//! | [`watch`] | what is written down of them, the report and the trace |
#![deny(unsafe_code)]

mod barrier;
mod draft;
mod entries;
mod lifecycle;
mod names;
mod next;
mod watch;
