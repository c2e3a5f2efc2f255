//! Which jobs are connected (MPI 5.0, section 11.10.4): those whose processes say so, and those that they are connected with in turn.
//!
//! A process says with which other jobs it has a communicator in common, whenever that changes.
//! Two jobs are connected as long as any process of one says so of the other; a process that has left MPI says nothing.
//! A job that was spawned is connected with its parent from the start, until a process of it says something else;
//! the processes of a library that says nothing stay connected to the end.

use super::{Job, Server, Stage};
use mpi_core::rte::wire::{NO_JOBS, WireError};
use mpi_core::universe::job_number;
use std::collections::{BTreeSet, HashMap};

/// The numbers of jobs that a client says it is connected with.
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
    /// The jobs that are connected with one, itself among them.
    pub fn connected(&self, with: Job) -> BTreeSet<usize> {
        let numbers = self.jobs.iter().zip(0..);
        let numbers: HashMap<u64, usize> = numbers
            .map(|(state, job)| (job_number(&state.kvsname), job))
            .collect();
        let mut neighbours = vec![BTreeSet::new(); self.jobs.len()];
        for job in 0..self.jobs.len() {
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

    /// The jobs that the processes of one say they are connected with, or its parent if they say nothing.
    fn named_by(&self, job: usize, numbers: &HashMap<u64, usize>) -> BTreeSet<usize> {
        let state = &self.jobs[job];
        let clients = state.procs.iter().map(|proc| &self.clients[proc.0]);
        let said = clients.filter_map(|client| Some((client.stage, client.connections.as_ref()?)));
        let said: Vec<_> = said.collect();
        if said.is_empty() {
            let parent = state.parent.map(|parent| self.clients[parent.0].job);
            return parent.into_iter().collect();
        }
        let talking = said.iter().filter(|(stage, _)| *stage != Stage::Finalized);
        let named = talking.flat_map(|(_, connections)| connections.iter());
        named
            .filter_map(|number| numbers.get(number).copied())
            .collect()
    }
}
