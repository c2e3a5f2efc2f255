//! The public part of a node's memory (header and control pages), for tools outside of the job.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::control::Control;
use super::error::NodeError;
use super::head::{map, read_head};
use crate::atomic::Ordering;
use crate::mem::{PAGE, Segment};
use crate::state::{StatePage, ThreadWaits};

/// A read-only mapping of a node's public part: which ranks have attached, and their state pages.
#[derive(Debug)]
pub struct Inspection {
    segment: Arc<Segment>,
    nlocal: u32,
}

impl Inspection {
    /// Maps the header and the control pages of the segment `fd` for reading.
    pub fn open(fd: impl AsFd) -> Result<Inspection, NodeError> {
        let layout = read_head(&fd)?;
        let segment = map(&fd, layout.public_len())?;
        Ok(Inspection {
            segment,
            nlocal: layout.nlocal,
        })
    }

    /// Returns the number of ranks for which the node was laid out;
    /// some of them may not have attached.
    pub fn nlocal(&self) -> u32 {
        self.nlocal
    }

    /// Returns the process ID of a rank; `None` until a process has claimed the rank.
    pub fn pid(&self, rank: u32) -> Option<u32> {
        let pid = self.control(rank)?.presence.pid.load(Ordering::Relaxed);
        (pid != 0).then_some(pid)
    }

    /// Returns a rank's state page; `None` if the rank does not exist.
    pub fn state(&self, rank: u32) -> Option<&StatePage> {
        Some(&self.control(rank)?.state)
    }

    /// Returns the waits of a rank's threads; `None` if the rank does not exist.
    pub fn threads(&self, rank: u32) -> Option<&ThreadWaits> {
        Some(&self.control(rank)?.threads)
    }

    fn control(&self, rank: u32) -> Option<&Control> {
        if rank >= self.nlocal {
            return None;
        }
        self.segment.at(PAGE * (1 + rank as usize))
    }
}
