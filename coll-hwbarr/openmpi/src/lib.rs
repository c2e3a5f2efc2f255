//! `mca_coll_hwbarr.so`: the hardware barrier as a collective component of Open MPI 4.1. It serves `MPI_Barrier` on
//! `MPI_COMM_WORLD`. Neither Open MPI nor the program is recompiled, and no header of Open MPI is used.
//!
//! T. Hoefler, J. Squyres, T. Mehlan, F. Mietke, W. Rehm, "Implementing a Hardware-based Barrier in Open MPI",
//! Chemnitzer Informatik-Berichte, 2005: this crate repeats their experiment.
//!
//! # Protocol
//!
//! * Open MPI finds the file in a folder of components, looks up the symbol of `layout::Component`,
//!   and compares the versions in its header.
//! * Open MPI calls `comm_query` for each communicator.
//!   For `MPI_COMM_WORLD`, if `coll_hwbarr_port` is set, the result is a module with one
//!   function, the barrier. Open MPI's own components provide everything else.
//! * The first barrier sets up the hardware (see `coll_hwbarr_foreign`); `MPI_Init` cannot.
//!   If the members do not use the hardware, or stop using it,
//!   the barrier is Open MPI's own, on a duplicate of `MPI_COMM_WORLD`.
//!
//! # The version check
//!
//! The layouts are those of release builds of Open MPI 4.1. The component is active only
//! if the library's version begins with "Open MPI v4.1." and its modules have
//! the size of that layout. Otherwise it prints one line, and Open MPI continues without it.
#![deny(unsafe_code)]

mod component;
mod layout;
