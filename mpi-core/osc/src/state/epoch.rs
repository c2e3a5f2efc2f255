//! Epochs (MPI 5.0, section 12.5): the accesses that a process may make to a window now.
//!
//! [`crate::sync::active`] and [`crate::sync::passive`] begin and end the epochs.

use mpi_base::window::{AccessOrder, Awaited};
use std::cell::{Cell, RefCell};

/// The assertions of a synchronisation call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assert {
    pub nocheck: bool,
    pub noprecede: bool,
    pub nosucceed: bool,
}

/// The access epoch of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    #[default]
    None,
    /// Between two calls of `MPI_Win_fence`.
    Fence,
    /// Between `MPI_Win_start` and `MPI_Win_complete`.
    Start,
    /// `MPI_Win_lock` has locked this number of members.
    Locks(u32),
    /// Between `MPI_Win_lock_all` and `MPI_Win_unlock_all`.
    LockAll,
}

/// The state of a window's epochs at this process.
#[derive(Default)]
pub(crate) struct Epochs {
    access: Cell<Access>,
    /// True if the epoch allows accesses to every member.
    open: Cell<bool>,
    /// The ranks of the group of `MPI_Win_start`.
    started: RefCell<Vec<u32>>,
    /// The ranks of the group of `MPI_Win_post`, while the window is exposed.
    exposed: RefCell<Option<Vec<u32>>>,
    /// For each rank, the sequence numbers of the next awaited post and completion.
    awaited: RefCell<Vec<Awaited>>,
    /// True while this process's `MPI_Win_lock_all` locks all members on this node by one flag
    /// ([`Control::hold_all`](crate::state::control::Control::hold_all)).
    /// False outside of the epochs of `MPI_Win_lock_all`, and in such an epoch if the call
    /// has locked each member separately or had the assertion `MPI_MODE_NOCHECK`.
    pub(crate) by_flag: Cell<bool>,
    /// The kinds of accesses that the next flush must order.
    pub(crate) order: AccessOrder,
    /// Counts the flushes, unlocks and request-based accesses: some of them poll for messages ([`crate::sync::passive`]).
    pub(crate) flushes: Cell<u32>,
}

impl Epochs {
    #[inline]
    pub fn is_open_to_all(&self) -> bool {
        self.open.get()
    }

    pub fn access(&self) -> Access {
        self.access.get()
    }

    pub fn set(&self, access: Access) {
        self.access.set(access);
        self.open
            .set(matches!(access, Access::Fence | Access::LockAll));
    }

    /// Returns true if request-based accesses and flushes are allowed.
    pub fn is_passive(&self) -> bool {
        matches!(self.access(), Access::Locks(_) | Access::LockAll)
    }

    /// Returns true if the window is exposed by `MPI_Win_post`.
    pub fn is_exposed(&self) -> bool {
        self.exposed.borrow().is_some()
    }

    /// Begins an exposure epoch to these ranks.
    pub fn expose(&self, ranks: Vec<u32>) {
        *self.exposed.borrow_mut() = Some(ranks);
    }

    /// Ends the exposure. Returns the ranks to which the window was exposed.
    pub fn take_exposed(&self) -> Option<Vec<u32>> {
        self.exposed.take()
    }

    /// Begins an access epoch to these ranks, all of which have posted.
    pub fn start(&self, ranks: Vec<u32>) {
        *self.started.borrow_mut() = ranks;
        self.set(Access::Start);
    }

    /// Removes and returns the ranks of the group of `MPI_Win_start`.
    pub fn take_started(&self) -> Vec<u32> {
        self.started.take()
    }

    /// Creates the counters for `members` members at the first call.
    pub fn prepare_counters(&self, members: usize) {
        let mut awaited = self.awaited.borrow_mut();
        if awaited.is_empty() {
            awaited.resize(members, Awaited::default());
        }
    }

    /// Begins to wait for the next post of a member.
    pub fn await_post(&self, rank: u32) {
        self.awaited.borrow_mut()[rank as usize].start();
    }

    /// Returns the awaited post and completion of a member.
    pub fn awaited(&self, rank: u32) -> Awaited {
        self.awaited.borrow()[rank as usize]
    }

    /// Ends an exposure epoch to these ranks; the next epoch awaits their next completions.
    pub fn end_exposure(&self, ranks: &[u32]) {
        let mut awaited = self.awaited.borrow_mut();
        for rank in ranks {
            awaited[*rank as usize].end();
        }
    }

    /// Returns the reason why the window cannot be freed, if an epoch is open.
    pub fn what_is_open(&self) -> Option<&'static str> {
        match self.access() {
            Access::None | Access::Fence if self.is_exposed() => {
                Some("it is exposed: MPI_Win_wait is missing")
            }
            Access::None | Access::Fence => None,
            Access::Start => Some("an access epoch is open: MPI_Win_complete is missing"),
            Access::Locks(_) => Some("it holds locks of MPI_Win_lock: MPI_Win_unlock is missing"),
            Access::LockAll => {
                Some("it holds the locks of MPI_Win_lock_all: MPI_Win_unlock_all is missing")
            }
        }
    }

    /// Describes the current access epoch for the error text of an unlock without its lock.
    pub fn describe_without(&self, lock: &str) -> String {
        let epoch = self.describe();
        match self.access() {
            Access::None | Access::Fence => format!("{epoch}: {lock} is missing"),
            _ => epoch.to_owned(),
        }
    }

    /// Describes the current access epoch for error texts.
    pub fn describe(&self) -> &'static str {
        match self.access() {
            Access::None => "no access epoch is open",
            Access::Fence => "it is between two fences",
            Access::Start => "the epoch that MPI_Win_start began is for other ranks",
            Access::Locks(_) => "it holds locks of other ranks",
            Access::LockAll => "it holds the locks of all",
        }
    }
}
