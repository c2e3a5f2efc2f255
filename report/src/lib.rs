//! Reports from state pages and event rings, for people and tools; used by launchers and libraries.
//!
//! `mpirun` uses this package for its own jobs.
//! The library that is preloaded into ranks of other MPI libraries uses this package in the ranks.
//! The package is pure: it runs no programs, sends nothing, and reads no memory of other processes.
//!
//! | module | what it is |
//! |---|---|
//! | [`rank_snapshot`] | the state of a rank at one moment |
//! | [`hang`] | hang reports: which rank waits for which |
//! | [`trace`] | conversion of the event rings of all ranks to one file |
//! | [`exit_skew`] | the time between the first and the last exit from an operation |
//! | [`file_names`] | the names of files in the event ring |
#![forbid(unsafe_code)]

pub mod exit_skew;
pub mod file_names;
pub mod hang;
pub mod rank_snapshot;
pub mod trace;

/// A function that returns an MPI call's name from its number on a state page or event ring.
pub type CallName = fn(u16) -> String;
