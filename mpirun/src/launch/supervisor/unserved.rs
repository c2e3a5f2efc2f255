//! Jobs of singletons: their ranks have all ended without this library's `MPI_Init`, although they had loaded another MPI library.

use super::Supervisor;
use crate::foreign::{self, loaded, on};
use crate::pmi::{Job, Proc};
use std::path::PathBuf;
use std::time::Instant;

/// The exit status of such a job.
const STATUS: i32 = 1;

/// The other MPI libraries that ranks have loaded.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    watch: loaded::Watch,
    /// The first rank of each job that was found with another MPI library, on whichever host, and the library.
    found: Vec<(Proc, PathBuf)>,
}

impl Unserved {
    /// Stops watching a rank of this host, which has spoken to its PMI server or has ended.
    pub(super) fn is_settled(&mut self, proc: Proc) {
        self.watch.is_settled(proc.0);
    }

    /// Returns when memory maps must be read next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.watch.next()
    }

    /// Records that a rank has loaded another MPI library.
    pub(super) fn note(&mut self, proc: Proc, library: PathBuf) {
        self.found.push((proc, library));
    }

    /// Checks the rank's maps before its output is read: the rank still runs, or has only just ended.
    pub(super) fn before_output(&mut self, proc: Proc) {
        if let Some(library) = self.watch.has_written(proc.0) {
            self.note(proc, library);
        }
    }

    pub(super) fn read_maps(&mut self, now: Instant) {
        for (number, library) in self.watch.read(now) {
            self.note(Proc(number), library);
        }
    }
}

impl Supervisor<'_> {
    /// Begins to watch a rank of this host. A singleton may be a job of its own on any library, and with `--on` the user has
    /// chosen a library.
    pub(super) fn watch_libraries_of(&mut self, proc: Proc) {
        let is_chosen = on::wanted(&self.plan.env).is_some();
        if let Some(rank) = self
            .ranks
            .get(proc)
            .filter(|rank| rank.size > 1 && !is_chosen)
        {
            self.unserved.watch.began(proc.0, rank.pid);
        }
    }

    /// All ranks have ended: reports each job in which no rank has called this library's `MPI_Init`.
    pub(super) fn report_unserved(&mut self) {
        let remedy = match foreign::is_left_alone(&self.plan.env) {
            true => {
                "Without --compat no, the program gets this installation's library in its place."
            }
            false => {
                "Start the program with that library's launcher, or build it with this mpirun's mpicc."
            }
        };
        let mut told: Vec<Job> = Vec::new();
        let mut sentences = Vec::new();
        for (proc, library) in &self.unserved.found {
            let Some(rank) = self.ranks.get(*proc) else {
                continue;
            };
            if told.contains(&rank.job) || self.server.has_initialized_peers(*proc) {
                continue;
            }
            told.push(rank.job);
            sentences.push(format!(
                "all {} ranks of {} ended without calling MPI_Init of this mpirun's library, but rank {} had loaded another MPI library, {}. \
                 This mpirun does not serve that library, so each rank that called its MPI_Init was a job of its own. \
                 {remedy}",
                rank.size,
                rank.program,
                rank.rank,
                library.display()
            ));
        }
        for sentence in sentences {
            self.say(&sentence);
            self.lifecycle.fail(STATUS);
        }
    }
}
