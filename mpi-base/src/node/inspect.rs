//! The public part of a node's memory (header and control pages), for tools outside of the job.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::control::Control;
use super::error::NodeError;
use super::head::{map, read_head};
use crate::atomic::Ordering;
use crate::mem::{PAGE, Segment};
use crate::state::StatePage;

/// A read-only view of a node's public part: which ranks have attached, and their state pages.
#[derive(Debug)]
pub struct Inspection {
    segment: Arc<Segment>,
    nlocal: u32,
}

impl Inspection {
    /// Maps only the header and the control pages.
    pub fn open(fd: impl AsFd) -> Result<Inspection, NodeError> {
        let layout = read_head(&fd)?;
        let segment = map(&fd, layout.public_len())?;
        Ok(Inspection {
            segment,
            nlocal: layout.nlocal,
        })
    }

    /// Returns the number of ranks for which the node was laid out;
    /// not all of them may have attached.
    pub fn nlocal(&self) -> u32 {
        self.nlocal
    }

    /// Returns the process number of a rank; `None` until a process has claimed the rank.
    pub fn pid(&self, rank: u32) -> Option<u32> {
        let pid = self.control(rank)?.presence.pid.load(Ordering::Relaxed);
        (pid != 0).then_some(pid)
    }

    /// Returns a rank's state page.
    pub fn state(&self, rank: u32) -> Option<&StatePage> {
        Some(&self.control(rank)?.state)
    }

    fn control(&self, rank: u32) -> Option<&Control> {
        if rank >= self.nlocal {
            return None;
        }
        self.segment.at(PAGE * (1 + rank as usize))
    }
}
