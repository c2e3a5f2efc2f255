//! Unserved jobs: a rank loaded another MPI library, and no rank called this library's `MPI_Init`.

use super::jobs::Jobs;
use crate::foreign;
use crate::launch::program::Plan;
use crate::pmi::{Job, Proc, Server};
use std::path::PathBuf;

/// The exit status of an unserved job.
pub(super) const STATUS: i32 = 1;

/// For each job the first rank that was found with another MPI library, and the library's path.
#[derive(Debug, Default)]
pub(super) struct Unserved(Vec<(Proc, PathBuf)>);

impl Unserved {
    /// Records that a rank has loaded another MPI library.
    pub(super) fn note(&mut self, proc: Proc, library: PathBuf) {
        self.0.push((proc, library));
    }

    /// After the end of all ranks, returns a message for each job that did not call `MPI_Init`.
    pub(super) fn sentences(&self, plan: &Plan, jobs: &Jobs<'_>, server: &Server) -> Vec<String> {
        let remedy = match foreign::is_left_alone(&plan.env) {
            true => {
                "Without --compat no, the program gets this installation's library in its place."
            }
            false => {
                "Start the program with that library's launcher, or build it with this mpirun's mpicc."
            }
        };
        let mut reported: Vec<Job> = Vec::new();
        let mut sentences = Vec::new();
        for (proc, library) in &self.0 {
            let Some(rank) = jobs.get(*proc) else {
                continue;
            };
            if reported.contains(&rank.job) || server.has_initialized_peers(*proc) {
                continue;
            }
            reported.push(rank.job);
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
        sentences
    }
}
