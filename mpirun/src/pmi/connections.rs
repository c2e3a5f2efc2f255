//! Connected sets of jobs (MPI 5.0, section 11.10.4): transitive closure of the processes' reports.
//!
//! * A process reports the jobs with which it shares a communicator, at each change
//!   ([`CONNECTIONS`](mpi_core::rte::wire::CONNECTIONS)).
//! * Two jobs are connected while a process of one reports the other.
//!   Reports of processes that have called `MPI_Finalize` do not count.
//! * A spawned job is connected with its parent until one of its processes sends a report;
//!   with a library that sends no reports it stays connected.

use super::{Job, Server, Stage};
use mpi_core::rte::wire::{NO_JOBS, WireError};
use mpi_core::universe::job_number;
use std::collections::{BTreeSet, HashMap};

/// Parses the job numbers in a client's report of connected jobs.
pub(super) fn read(text: &str) -> Result<Vec<u64>, WireError> {
    if text == NO_JOBS {
        return Ok(Vec::new());
    }
    let number = |word: &str| {
        word.parse().map_err(|_| WireError::NotANumber {
            key: "jobs".into(),
            value: word.into(),
        })
    };
    text.split(',').map(number).collect()
}

impl Server {
    /// Returns the jobs that are connected with a job, including the job itself.
    pub fn connected(&self, with: Job) -> BTreeSet<usize> {
        let jobs = self.jobs.iter();
        let numbers: HashMap<u64, usize> = jobs
            .map(|(job, state)| (job_number(&state.kvsname), job))
            .collect();
        let mut neighbours = vec![BTreeSet::new(); self.jobs.next()];
        for (job, _) in self.jobs.iter() {
            for other in self.named_by(job, &numbers) {
                neighbours[job].insert(other);
                neighbours[other].insert(job);
            }
        }
        let mut found = BTreeSet::new();
        let mut open = vec![with.0];
        while let Some(job) = open.pop() {
            if found.insert(job) {
                open.extend(&neighbours[job]);
            }
        }
        found
    }

    /// Returns the jobs that a job's processes report as connected; without any report, its parent.
    fn named_by(&self, job: usize, numbers: &HashMap<u64, usize>) -> BTreeSet<usize> {
        let state = &self.jobs[job];
        let clients = state.procs.iter().map(|proc| &self.clients[proc.0]);
        let said = clients.filter_map(|client| Some((client.stage, client.connections.as_ref()?)));
        let said: Vec<_> = said.collect();
        if said.is_empty() {
            let parent = state.parent.and_then(|parent| self.clients.get(parent.0));
            let parent = parent.map(|parent| parent.job);
            return parent.into_iter().collect();
        }
        let talking = said.iter().filter(|(stage, _)| *stage == Stage::Talking);
        let named = talking.flat_map(|(_, connections)| connections.iter());
        named
            .filter_map(|number| numbers.get(number).copied())
            .collect()
    }
}
