//! The state of a window for members that this process accesses by messages or by the network:
//! counters of requests and replies.

use crate::error::OscError;
use mpi_base::window::Mode;
use std::cell::{Cell, RefCell};

/// The states of the members that this process accesses by messages or by the network.
pub(crate) struct RemoteMembers {
    members: Box<[RemoteMember]>,
    /// The number of members with accesses that no flush has completed yet.
    busy: Cell<u32>,
}

/// The state of network accesses to one member.
#[derive(Default)]
pub(crate) struct ByNetwork {
    /// True if this process has accessed the member since the last flush.
    pub is_used: Cell<bool>,
    /// The number of network accesses to the member that have not ended.
    pub active: Cell<u32>,
    /// True if a put has ended whose data may not have reached the target's memory.
    pub has_put: Cell<bool>,
}

/// The state of one member that this process accesses by messages or by the network.
#[derive(Default)]
pub(crate) struct RemoteMember {
    /// The numbers of posts and of completions that have arrived from the member.
    pub posts: Cell<u32>,
    pub completions: Cell<u32>,
    /// True if this process has accessed the member since the last flush.
    pub(crate) sent: Cell<bool>,
    /// True if this process has accessed the member by messages since the last flush.
    pub(crate) by_message: Cell<bool>,
    pub(crate) network: ByNetwork,
    /// The sequence numbers of the last requested flush and of the last answered flush.
    pub(crate) asked: Cell<u32>,
    pub(crate) answered: Cell<u32>,
    /// The number of requested bytes that have not arrived yet.
    pub(crate) due: Cell<u64>,
    /// The counts of locks that the member has granted to this process,
    /// and of locks that this process has requested.
    pub(crate) granted: Cell<u32>,
    pub(crate) wanted: Cell<u32>,
    /// The lock mode in which the member holds this process's lock.
    pub(crate) holds: Cell<Option<Mode>>,
    /// The error with which the member refused this process's lock request.
    pub(crate) lock_refused: RefCell<Option<OscError>>,
    /// The first error with which the member refused an access since the last flush.
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

    /// Returns true if no member has accesses that a flush must complete.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.busy.get() == 0
    }

    /// Records that a member has incomplete accesses by messages.
    pub(crate) fn begins(&self, remote: &RemoteMember) {
        remote.by_message.set(true);
        self.is_busy(remote);
    }

    /// Records that a network access to a member has started.
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

    /// Records that all accesses to a member are complete.
    pub(crate) fn ends(&self, remote: &RemoteMember) {
        if remote.sent.replace(false) {
            self.busy.set(self.busy.get() - 1);
        }
    }
}
