//! The gate for ranks that share cores: every rank adds one, and a rank that sees the sum complete is through.
//!
//! The centralised barrier of J. M. Mellor-Crummey, M. L. Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors",
//! ACM TOCS 9(1), 1991, section 3.1, with a count that never turns back instead of a sense that is reversed.
//! Only as many ranks as there are cores ever touch the word at the same time,
//! and a rank that is switched in learns from one load whether it may go on.
//!
//! The word: how many arrivals there have been in all barriers; barrier k is complete at (k + 1) times the number of members.
//! No rank arrives at barrier k + 1 before it has left barrier k, so arrivals of different barriers do not mix.

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

    pub fn at(node: &Node, place: ShmOffset, members: u32) -> Option<Counter> {
        Some(Counter {
            arrivals: node.hold(place)?,
            members: u64::from(members),
        })
    }

    #[inline]
    pub fn step(&self, members: &Members, number: u64, stage: &mut Stage) -> bool {
        let complete = (number + 1) * self.members;
        if !stage.told {
            stage.told = true;
            // SYNC POINT shm.counter: each arrival releases what its rank did before; the last one collects it all.
            if self.arrivals.fetch_add(1, Ordering::AcqRel) + 1 == complete {
                members.ring_all();
                return true;
            }
        }
        // SYNC POINT shm.counter
        self.arrivals.load(Ordering::Acquire) >= complete
    }
}
