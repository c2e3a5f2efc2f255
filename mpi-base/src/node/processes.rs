//! The processes of a node's ranks: their IDs, whether their memory can be read,
//! and whether they have attached or ended.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::Node;
use super::control::Control;
use crate::atomic::Ordering;
use crate::cma;

/// The processes of a node's ranks, as seen by one rank ([`Node::processes`]).
#[derive(Clone, Copy, Debug)]
pub struct Processes<'a>(pub(super) &'a Node);

impl Processes<'_> {
    /// Returns the process ID that a rank published when it claimed its rank.
    /// The ID is that of the rank's own PID namespace.
    pub fn pid(self, rank: u32) -> Option<u32> {
        let pid = self.0.control(rank)?.presence.pid.load(Ordering::Relaxed);
        (pid != 0).then_some(pid)
    }

    /// Returns the process ID of a rank if its memory can be read from this process.
    /// A failed probe is repeated at the next call; a success is cached,
    /// because the kernel does not revoke the permission, and every new communicator queries it.
    pub fn readable_pid(self, rank: u32) -> Option<u32> {
        let known = self.0.0.readable.get(rank as usize)?;
        if let Some(pid) = known.get() {
            return Some(*pid);
        }
        let pid = self.try_to_read(rank)?;
        Some(*known.get_or_init(|| pid))
    }

    /// Returns true if the process of a rank has ended; false if this is not certain.
    /// Checks only ranks whose memory has been read under their process ID,
    /// because otherwise the ID may denote another process, or none, in this namespace.
    pub fn has_ended(self, rank: u32) -> bool {
        let known = self.0.0.readable.get(rank as usize).and_then(OnceLock::get);
        let pid = known.and_then(|pid| i32::try_from(*pid).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| {
            rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        })
    }

    /// Returns true if a rank has attached, so its memory can be read if the kernel permits it.
    fn is_attached(self, rank: u32) -> bool {
        // SYNC POINT node.ready
        let ready = |c: &Control| c.presence.ready.load(Ordering::Acquire) != 0;
        self.0.control(rank).is_some_and(ready)
    }

    /// Waits until a rank has attached; attaching does not depend on any other process.
    /// Returns false if the rank has not attached by the time `before`.
    pub fn await_attached(self, rank: u32, before: Instant) -> bool {
        /// Time between two polls. Polling is necessary: a rank that attaches wakes no process.
        /// Attaching takes milliseconds.
        const NAP: Duration = Duration::from_micros(50);
        while !self.is_attached(rank) {
            if Instant::now() >= before {
                return false;
            }
            std::thread::sleep(NAP);
        }
        true
    }

    fn try_to_read(self, rank: u32) -> Option<u32> {
        if !self.is_attached(rank) {
            return None;
        }
        let presence = &self.0.control(rank)?.presence;
        let pid = presence.pid.load(Ordering::Relaxed);
        let address = presence.address.load(Ordering::Relaxed);
        let word = presence.word.load(Ordering::Relaxed);
        cma::probe(pid, address, word).then_some(pid)
    }
}
