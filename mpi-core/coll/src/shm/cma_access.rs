//! Reading and writing the members' memory, and whether all can.
//!
//! Every member tries to read a word of every other when the communicator is made, as the sm transport does,
//! and counts itself in a word of the communicator's block if all tries succeeded.
//! When that is the world, some may still be on their way to the node's memory. They are waited for, as every rank is before the world is made:
//! otherwise the first to come found no rank to read, of four ranks on two cores in three runs of four, and there were no single copies for the whole of those.
//! A rank that may read may write: the system asks for the same right.
//! The members vote on the component after that, so at the first call the count stands still and all see the same.

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

/// A rank that has not come in so long a time is not read; a rank comes within milliseconds of the others unless something is wrong, or a debugger starts it.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct CmaAccess {
    able: Held<AtomicU64>,
    members: u64,
    /// Process numbers by rank, if this process can read all of them.
    pids: Option<Box<[u32]>>,
    all_can: OnceCell<bool>,
}

impl CmaAccess {
    pub fn new(node: &Node, members: &Members, able: Held<AtomicU64>) -> CmaAccess {
        let before = Instant::now() + PATIENCE;
        let pid = |rank| match node.await_attached(rank, before) {
            // Valgrind would take what others write here for uninitialised.
            true => node.readable_pid(rank).filter(|_| !valgrind::is_running()),
            false => None,
        };
        let pids: Option<Box<[u32]>> = members.places().map(pid).collect();
        if pids.is_some() {
            // SYNC POINT shm.able: the vote that follows orders this before every look.
            able.fetch_add(1, Ordering::Release);
        }
        CmaAccess {
            able,
            members: members.count().into(),
            pids,
            all_can: OnceCell::new(),
        }
    }

    /// Whether every member can read every other's memory; the same answer at all of them.
    pub fn all_can(&self) -> bool {
        // SYNC POINT shm.able
        *self
            .all_can
            .get_or_init(|| self.able.load(Ordering::Acquire) >= self.members)
    }

    /// Reads what lies at `at` in a member's memory.
    pub fn read(&self, cx: &Invocation, rank: u32, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let bytes = into.len();
        let read = self.pid(rank).and_then(|pid| cma::read(pid, at, into));
        said(read, cx, rank, Copying::From, bytes)
    }

    /// Writes to `at` in the memory of a member that has asked for it.
    pub fn write(&self, cx: &Invocation, rank: u32, at: u64, data: &[u8]) -> Result<(), Error> {
        let written = self.pid(rank).and_then(|pid| cma::write(pid, at, data));
        said(written, cx, rank, Copying::To, data.len())
    }

    fn pid(&self, rank: u32) -> Result<u32, CmaError> {
        let pid = self.pids.as_ref().and_then(|p| p.get(rank as usize));
        pid.copied().ok_or(CmaError::Forbidden)
    }
}

/// What became of a copy, with both sides' names if it failed.
fn said(
    copied: Result<(), CmaError>,
    cx: &Invocation,
    rank: u32,
    copying: Copying,
    bytes: usize,
) -> Result<(), Error> {
    Ok(copied.map_err(|why| CollError::Unreachable {
        comm: cx.comm().label(),
        me: cx.rank(),
        rank,
        copying,
        bytes,
        why,
    })?)
}
