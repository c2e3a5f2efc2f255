//! The hardware barrier in processes that use another MPI library.
//!
//! It uses the same component as Portcullis ([`coll_hwbarr::TABLE`]).
//! The component calls the services of the plugin ABI.
//! This crate implements these services with functions that every MPI library exports.
//! So the self-test, the members' agreement on stopping the hardware, all ports
//! and the simulator's files are the same on Open MPI and MPICH.
//!
//! # Protocol
//!
//! * Every member calls [`barrier::pass`] for each barrier of `MPI_COMM_WORLD`,
//!   or of a communicator of the same processes in the same order.
//!   In the first call, the members duplicate `MPI_COMM_WORLD` for the component's messages,
//!   and then agree on using the component. If a member refuses, all use software barriers.
//! * The delete callback of an attribute of `MPI_COMM_SELF` closes the component:
//!   `MPI_Finalize` calls it first, while MPI still works.
//!
//! | module | content |
//! |---|---|
//! | `library` | the MPI library of this process, found among the loaded files |
//! | `foreign_comm` | the implementation of the component's communicator |
//! | `messages` | nonblocking messages of the component |
//! | `services` | the C table of services |
//! | `barrier` | the life cycle of the component in this process |
//! | `wire` | the callback that observes this process's wire |
#![deny(unsafe_code)]

pub mod barrier;
mod foreign_comm;
pub mod library;
mod messages;
mod services;
pub mod wire;
