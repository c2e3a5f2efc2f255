//! The public part of a node's memory, for tools outside the job: header and control pages.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::control::Control;
use super::error::NodeError;
use super::head::{map, read_head};
use crate::atomic::Ordering;
use crate::mem::{PAGE, Segment};
use crate::state::StatePage;

/// A node's public part as a tool outside the job sees it: which ranks are there and what each is doing.
#[derive(Debug)]
pub struct Inspection {
    segment: Arc<Segment>,
    nlocal: u32,
}

impl Inspection {
    /// Maps header and control pages only.
    pub fn open(fd: impl AsFd) -> Result<Inspection, NodeError> {
        let layout = read_head(&fd)?;
        let segment = map(&fd, layout.public_len())?;
        Ok(Inspection {
            segment,
            nlocal: layout.nlocal,
        })
    }

    /// How many ranks the node was laid out for, whether they have come or not.
    pub fn nlocal(&self) -> u32 {
        self.nlocal
    }

    /// The process number of a rank, once it has attached.
    pub fn pid(&self, rank: u32) -> Option<u32> {
        let pid = self.control(rank)?.presence.pid.load(Ordering::Relaxed);
        (pid != 0).then_some(pid)
    }

    /// A rank's state page.
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
