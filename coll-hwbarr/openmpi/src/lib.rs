//! `mca_coll_hwbarr.so`: the hardware barrier as a collective component of Open MPI 4.1, which takes `MPI_Barrier` of
//! `MPI_COMM_WORLD` from the board. Neither Open MPI nor the program is compiled again, and none of Open MPI's headers is used.
//!
//! T. Hoefler, J. Squyres, T. Mehlan, F. Mietke, W. Rehm, "Implementing a Hardware-based Barrier in Open MPI",
//! Chemnitzer Informatik-Berichte, 2005: this is their experiment.
//!
//! # Protocol
//!
//! * Open MPI finds the file in a folder of components, looks up [`layout::Component`] by name, and compares the versions in its head.
//! * For each communicator it asks `comm_query`. For the world, where `coll_hwbarr_port` is set, the answer is a module with one
//!   function, the barrier; all others come from Open MPI's own components, as does everything of other communicators.
//! * The first barrier brings the hardware up (see `coll_hwbarr_foreign`), which cannot be done inside `MPI_Init`.
//!   Where it is refused or left, the barrier is Open MPI's own, of a duplicate of the world.
//!
//! # The guard
//!
//! Layouts are those of release builds of 4.1. The component answers only in a library that says "v4.1" and whose modules have
//! the size of that layout; in all others it says so in one line, and Open MPI goes on without it.
#![deny(unsafe_code)]

mod component;
mod layout;
