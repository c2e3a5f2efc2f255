//! Reports about ranks for users and tools, from state pages and event rings;
//! used by launchers and libraries.
//!
//! `mpirun` uses this package for its own jobs.
//! The preloaded library for ranks of other MPI libraries uses this package inside the ranks.
//! The package only converts data: it runs no programs,
//! sends nothing, and reads no other process's memory.
//!
//! | module | what it is |
//! |---|---|
//! | [`rank_snapshot`] | the state of a rank at one moment |
//! | [`hang`] | hang reports: which rank waits for which |
//! | [`trace`] | conversion of the event rings of all ranks to one file |
//! | [`exit_skew`] | the time between the first and the last exit from an operation |
//! | [`file_names`] | the names of the files in an event ring |
#![forbid(unsafe_code)]

pub mod exit_skew;
pub mod file_names;
pub mod hang;
pub mod rank_snapshot;
pub mod trace;

/// A function that returns an MPI call's name from its number on a state page or event ring.
pub type CallName = fn(u16) -> String;
