//! What state pages and tapes say, for people and tools: pure, so that launchers and libraries share it.
//!
//! `mpirun` uses it for its own jobs; the library that is preloaded into programs of other MPI libraries uses it in the ranks
//! themselves. Nothing here runs, sends or reads memory of other processes.
//!
//! | module | what it is |
//! |---|---|
//! | [`rank_snapshot`] | what a rank was seen doing |
//! | [`hang`] | which rank waits for which, in words |
//! | [`trace`] | the tapes of all ranks as one file |
//! | [`file_names`] | the names of files on a tape |
#![forbid(unsafe_code)]

pub mod file_names;
pub mod hang;
pub mod rank_snapshot;
pub mod trace;

/// Turns a call's number on a state page or a tape into its name.
pub type CallName = fn(u16) -> String;
