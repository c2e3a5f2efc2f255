//! The state of a window for its members on other nodes: counters of requests and replies.

use crate::error::OscError;
use mpi_base::window::Mode;
use std::cell::{Cell, RefCell};

/// The state of a window for its members on other nodes.
pub(crate) struct RemoteMembers {
    members: Box<[RemoteMember]>,
    /// The number of members with accesses that no flush has completed.
    busy: Cell<u32>,
}

/// The state of accesses to one member by the network.
#[derive(Default)]
pub(crate) struct ByNetwork {
    /// Whether there were accesses that no flush has completed.
    pub is_used: Cell<bool>,
    /// The number of accesses that have not ended.
    pub active: Cell<u32>,
    /// Whether a put has ended whose data may not be in place.
    pub has_put: Cell<bool>,
}

/// The state of one member that is reached by messages.
#[derive(Default)]
pub(crate) struct RemoteMember {
    /// The number of its posts and completions.
    pub posts: Cell<u32>,
    pub completions: Cell<u32>,
    /// Whether there were accesses that no flush has completed.
    pub(crate) sent: Cell<bool>,
    /// Whether one of them was a message.
    pub(crate) by_message: Cell<bool>,
    pub(crate) network: ByNetwork,
    /// The numbers of the last flush that was requested and of the last that was answered.
    pub(crate) asked: Cell<u32>,
    pub(crate) answered: Cell<u32>,
    /// Bytes of replies that it still owes.
    pub(crate) due: Cell<u64>,
    /// The number of locks that it has granted, and that were requested.
    pub(crate) granted: Cell<u32>,
    pub(crate) wanted: Cell<u32>,
    /// The lock of this process that it holds.
    pub(crate) holds: Cell<Option<Mode>>,
    /// The error with which it refused its lock.
    pub(crate) lock_refused: RefCell<Option<OscError>>,
    /// The first access that it has refused since the last flush.
    pub(crate) refused: RefCell<Option<OscError>>,
}

impl RemoteMembers {
    pub fn new(size: u32) -> RemoteMembers {
        RemoteMembers {
            members: (0..size).map(|_| RemoteMember::default()).collect(),
            busy: Cell::new(0),
        }
    }

    pub fn of(&self, rank: u32) -> &RemoteMember {
        &self.members[rank as usize]
    }

    /// Returns true if no member has incomplete accesses by messages.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.busy.get() == 0
    }

    /// Marks a member as having incomplete accesses by messages.
    pub(crate) fn begins(&self, remote: &RemoteMember) {
        remote.by_message.set(true);
        self.is_busy(remote);
    }

    /// Counts an access by the network.
    pub(crate) fn begins_by_network(&self, remote: &RemoteMember) {
        remote.network.is_used.set(true);
        remote.network.active.set(remote.network.active.get() + 1);
        self.is_busy(remote);
    }

    fn is_busy(&self, remote: &RemoteMember) {
        if !remote.sent.replace(true) {
            self.busy.set(self.busy.get() + 1);
        }
    }

    /// Marks the accesses to a member as complete.
    pub(crate) fn ends(&self, remote: &RemoteMember) {
        if remote.sent.replace(false) {
            self.busy.set(self.busy.get() - 1);
        }
    }
}
