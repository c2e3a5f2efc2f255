//! Requests of a process to its launcher to spawn jobs.
//!
//! Programs, arguments and values are bytes without a fixed encoding, from the caller to the system call that starts the program.

use std::ffi::OsString;

/// One program of a job to be spawned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnedApp {
    pub procs: u32,
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Info keys and values for the launcher, such as `wdir` and `host`.
    pub info: Vec<(String, OsString)>,
}

/// A job to be spawned, with all its programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnRequest {
    pub apps: Vec<SpawnedApp>,
    /// Values that the new processes can read under the given keys from the start. Keys and values consist of letters, digits, `-`, `_` and `:`.
    pub left: Vec<(String, String)>,
}

/// A job that was spawned but failed before it connected to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedSpawn {
    /// The name of the failed job, which [`Rte::spawn_job`](super::Rte::spawn_job) has returned.
    pub job: String,
    pub why: String,
}
