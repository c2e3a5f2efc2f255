//! Spawn requests of a process to its launcher.
//!
//! Programs, arguments and values stay bytes from the caller to the system call that starts the program.

use std::ffi::OsString;

/// One program of a new job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnedApp {
    pub procs: u32,
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Info keys and values for the launcher, such as `wdir` and `host`.
    pub info: Vec<(String, OsString)>,
}

/// A new job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnRequest {
    pub apps: Vec<SpawnedApp>,
    /// Values that the new processes can read under their keys from the start; keys and values consist of letters, digits, `-`, `_` and `:`.
    pub left: Vec<(String, String)>,
}

/// A job that was started but will never connect to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedSpawn {
    /// The name of the job that [`Rte::spawn_job`](super::Rte::spawn_job) has returned.
    pub job: String,
    pub why: String,
}
