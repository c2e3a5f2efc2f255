//! The central-counter barrier for oversubscribed ranks:
//! every rank increments the counter, and a rank that reads the full count is released.
//!
//! This is the centralised barrier of J. M. Mellor-Crummey, M. L. Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors",
//! ACM TOCS 9(1), 1991, section 3.1, with a monotonic count instead of sense reversal.
//! At most one rank per core accesses the counter at a time,
//! and a rank that is scheduled in needs one load to check whether it is released.
//!
//! The counter counts the arrivals in all barriers; barrier k (from 0) is complete at (k + 1) * members.
//! A rank arrives at barrier k + 1 only after it has left barrier k, so arrivals of different barriers do not mix.

use super::members::{LINE, Members, Stage};
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::mem::Held;
use mpi_base::node::{Node, ShmOffset};

pub struct Counter {
    arrivals: Held<AtomicU64>,
    members: u64,
}

impl Counter {
    pub const LEN: usize = LINE;

    pub fn at(node: &Node, offset: ShmOffset, members: u32) -> Option<Counter> {
        Some(Counter {
            arrivals: node.hold(offset)?,
            members: u64::from(members),
        })
    }

    #[inline]
    pub fn step(&self, members: &Members, number: u64, stage: &mut Stage) -> bool {
        let complete = (number + 1) * self.members;
        if !stage.told {
            stage.told = true;
            // SYNC POINT shm.counter: each arrival releases this rank's earlier writes;
            // the last arrival acquires those of all ranks.
            if self.arrivals.fetch_add(1, Ordering::AcqRel) + 1 == complete {
                members.ring_all();
                return true;
            }
        }
        // SYNC POINT shm.counter
        self.arrivals.load(Ordering::Acquire) >= complete
    }
}
