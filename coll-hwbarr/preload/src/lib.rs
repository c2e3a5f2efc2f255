//! `libportcullis-preload.so`: the hardware barrier for programs on Open MPI, MPICH, Intel MPI and libraries of the standard ABI,
//! under their own launcher and not compiled again.
//!
//! ```text
//! LD_PRELOAD=libportcullis-preload.so PORTCULLIS_MCA_coll_hwbarr_port=sim:tcp://127.0.0.1:7700 mpirun -n 4 ./a.out
//! ```
//!
//! # Protocol
//!
//! It has the names of `MPI_Barrier` in C and in Fortran and stands in front of the library. A barrier of `MPI_COMM_WORLD`, or of
//! a communicator of the same processes in the same order, goes to the component (`coll_hwbarr_foreign`); all others, and all
//! where no port is set, go on to the library's `PMPI_Barrier`.
//! Of Fortran, libraries differ in which C function their own interface calls, and some call the profiling one. So the Fortran
//! names are here too, and no barrier passes through two of them: what is called below has the profiling name.
#![deny(unsafe_code)]

mod symbols;
