//! Access to the memory of the other members by system calls (cross-memory attach), and the test whether every member has this access.
//!
//! When the communicator is created, every member tries to read a word from the memory of every other, as the sm transport does,
//! and if all reads succeed, it increments a counter in the communicator's block.
//! In `MPI_COMM_WORLD` some members may not have attached to the node's memory yet.
//! So the test waits for them; the creation of `MPI_COMM_WORLD` waits for every rank anyway.
//! Measured without this wait: in three of four runs with four ranks on two cores,
//! the first rank could read no other rank's memory, so no single copies were used.
//! A rank that may read another rank's memory may also write to it,
//! because the operating system checks the same permission.
//! The test precedes the members' vote on the component,
//! so at the first call the counter has its final value, and all members read the same value.

use super::members::Members;
use crate::Error;
use crate::{CollError, Copying, Invocation};
use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::cma::{self, CmaError};
use mpi_base::mem::Held;
use mpi_base::node::Node;
use mpi_base::valgrind;
use std::cell::OnceCell;
use std::time::{Duration, Instant};

/// Time limit until a rank has attached to the node's memory. Without a debugger, live ranks attach within milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct CmaAccess {
    able: Held<AtomicU64>,
    members: u64,
    /// Process ids, indexed by rank; `None` if this process cannot read the memory of every member.
    pids: Option<Box<[u32]>>,
    all_can: OnceCell<bool>,
}

impl CmaAccess {
    pub fn new(node: &Node, members: &Members, able: Held<AtomicU64>) -> CmaAccess {
        let before = Instant::now() + PATIENCE;
        let pid = |rank| match node.processes().await_attached(rank, before) {
            // Under Valgrind no single copies are used,
            // since it reports data that other processes have written as uninitialised.
            true => node
                .processes()
                .readable_pid(rank)
                .filter(|_| !valgrind::is_running()),
            false => None,
        };
        let pids: Option<Box<[u32]>> = members.places().map(pid).collect();
        if pids.is_some() {
            // SYNC POINT shm.able: the vote that follows orders this increment before every load of the counter.
            able.fetch_add(1, Ordering::Release);
        }
        CmaAccess {
            able,
            members: members.count().into(),
            pids,
            all_can: OnceCell::new(),
        }
    }

    /// Returns true if every member can read the memory of every other member. All members get the same result.
    pub fn all_can(&self) -> bool {
        // SYNC POINT shm.able
        *self
            .all_can
            .get_or_init(|| self.able.load(Ordering::Acquire) >= self.members)
    }

    /// Reads from address `at` in the memory of the member `rank`.
    pub fn read(
        &self,
        invocation: &Invocation,
        rank: u32,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let bytes = into.len();
        let read = self.pid(rank).and_then(|pid| cma::read(pid, at, into));
        described(read, invocation, rank, Copying::From, bytes)
    }

    /// Writes to address `at` in the memory of the member `rank`, which has requested the data.
    pub fn write(
        &self,
        invocation: &Invocation,
        rank: u32,
        at: u64,
        data: &[u8],
    ) -> Result<(), Error> {
        let written = self.pid(rank).and_then(|pid| cma::write(pid, at, data));
        described(written, invocation, rank, Copying::To, data.len())
    }

    fn pid(&self, rank: u32) -> Result<u32, CmaError> {
        let pid = self.pids.as_ref().and_then(|p| p.get(rank as usize));
        pid.copied().ok_or(CmaError::Forbidden)
    }
}

/// Adds the copying rank and the other rank to the error of a failed copy.
fn described(
    copied: Result<(), CmaError>,
    invocation: &Invocation,
    rank: u32,
    copying: Copying,
    bytes: usize,
) -> Result<(), Error> {
    Ok(copied.map_err(|why| CollError::Unreachable {
        comm: invocation.comm().label(),
        me: invocation.rank(),
        rank,
        copying,
        bytes,
        why,
    })?)
}
