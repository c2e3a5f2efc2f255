//! MPI's value types: datatypes, operators, groups, topologies, statuses.
//!
//! This package does not communicate: it depends on no transport, so functions that involve another process belong elsewhere.

#![deny(unsafe_code)]

pub mod datatype;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod group;
pub mod op;
pub mod status;
pub mod topo;
