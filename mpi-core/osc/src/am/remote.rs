//! What a window knows of its members elsewhere.

use super::super::OscError;
use mpi_base::window::Mode;
use std::cell::{Cell, RefCell};

/// What a window knows of its members elsewhere.
pub(in super::super) struct Remote {
    members: Box<[Far]>,
    /// How many members have accesses under way that no flush has completed.
    busy: Cell<u32>,
}

/// A member as messages see it.
#[derive(Default)]
pub(in super::super) struct Far {
    /// How often it has posted and completed.
    pub posts: Cell<u32>,
    pub completions: Cell<u32>,
    /// Whether accesses were sent that no flush has completed.
    pub(super) sent: Cell<bool>,
    /// Flushes that were asked for and answered.
    pub(super) asked: Cell<u32>,
    pub(super) answered: Cell<u32>,
    /// Bytes that it is still to send.
    pub(super) due: Cell<u64>,
    /// How often it has granted its lock.
    pub(super) granted: Cell<u32>,
    pub(super) wanted: Cell<u32>,
    /// The lock of ours that it holds.
    pub(super) holds: Cell<Option<Mode>>,
    /// Why it has refused its lock.
    pub(super) lock_refused: RefCell<Option<OscError>>,
    /// The first access that it has refused since the last flush.
    pub(super) refused: RefCell<Option<OscError>>,
}

impl Remote {
    pub fn new(size: u32) -> Remote {
        Remote {
            members: (0..size).map(|_| Far::default()).collect(),
            busy: Cell::new(0),
        }
    }

    pub fn of(&self, rank: u32) -> &Far {
        &self.members[rank as usize]
    }

    /// Whether no message is under way.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.busy.get() == 0
    }

    /// Something was sent to a member.
    pub(super) fn begins(&self, far: &Far) {
        if !far.sent.replace(true) {
            self.busy.set(self.busy.get() + 1);
        }
    }

    /// It is complete.
    pub(super) fn ends(&self, far: &Far) {
        if far.sent.replace(false) {
            self.busy.set(self.busy.get() - 1);
        }
    }
}
