//! MPI's value types: datatypes, operators, groups, topologies, statuses.
//!
//! This package does not communicate and depends on no transport.
//! Functions that involve another process are in other packages.

#![deny(unsafe_code)]

pub mod datatype;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod group;
pub mod op;
pub mod status;
pub mod topo;
