//! The hardware barrier in processes of other MPI libraries.
//!
//! The component is the one that Portcullis has built in ([`coll_hwbarr::TABLE`]), unchanged: it sees the services of the plugin
//! ABI, and these are made here of functions that every MPI library exports. So the self-test, the agreement of all members on
//! leaving the hardware, every port and the simulator's files are the same on Open MPI and MPICH.
//!
//! # Protocol
//!
//! * [`barrier::pass`] is called by every member for each barrier of `MPI_COMM_WORLD`, or of another communicator of the same
//!   processes in the same order. The first call sets up, in software: a duplicate of the world for the component's messages, then
//!   the component, on which all members agree. Where one of them refuses, barriers stay in software everywhere.
//! * An attribute of `MPI_COMM_SELF` ends it all, which `MPI_Finalize` deletes first, while MPI still works.
//!
//! | module | what it is |
//! |---|---|
//! | `library` | the MPI library of this process, found among what is loaded |
//! | `seat` | what stands behind the component's communicator |
//! | `messages` | messages that the component has started |
//! | `services` | the C table of services |
//! | `barrier` | the life of the component in this process |
//! | `wire` | what it tells of its wire |
#![deny(unsafe_code)]

pub mod barrier;
pub mod library;
mod messages;
mod seat;
mod services;
pub mod wire;
