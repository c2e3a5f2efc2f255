//! Reports for people and tools from state pages and event rings: pure, so that launchers and libraries share them.
//!
//! `mpirun` uses it for its own jobs; the library that is preloaded into programs of other MPI libraries uses it in the ranks
//! themselves. Nothing here runs programs, sends, or reads memory of other processes.
//!
//! | module | what it is |
//! |---|---|
//! | [`rank_snapshot`] | the state of a rank at one moment |
//! | [`hang`] | which rank waits for which, as text |
//! | [`trace`] | the event rings of all ranks as one file |
//! | [`exit_skew`] | how far apart ranks leave an operation |
//! | [`file_names`] | the names of files in the event ring |
#![forbid(unsafe_code)]

pub mod exit_skew;
pub mod file_names;
pub mod hang;
pub mod rank_snapshot;
pub mod trace;

/// Returns the name of a call from its number on a state page or an event ring.
pub type CallName = fn(u16) -> String;
