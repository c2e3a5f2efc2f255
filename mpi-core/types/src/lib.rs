//! MPI's values: datatypes, operators, groups, topologies, statuses.
//!
//! Nothing here communicates: the package depends on no transport, so what needs another process has no place in it.

#![deny(unsafe_code)]

pub mod datatype;
pub mod error;
pub mod group;
pub mod op;
pub mod status;
pub mod topo;
