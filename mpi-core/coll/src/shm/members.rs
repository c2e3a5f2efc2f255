//! The members of a shared-memory group, those of them that may sleep, and a rank's progress in a barrier.
//!
//! When oversubscribed, ranks sleep often and a rank that publishes data wakes the others.
//! With a bit for each member that may sleep in this communicator ([`Sleepers`]) it reads one cache line for that, in place of the doorbells of all members.

use mpi_base::atomic::AtomicU64;
pub use mpi_base::cells::LINE;
use mpi_base::mem::Held;
use mpi_base::sleepers::Sleepers;
use mpi_engine::{Engine, NodeMembers};
use std::cell::{Cell, OnceCell};
use std::ops::Deref;

use crate::group::Group;

/// A communicator's members, all on one node.
pub struct Members {
    node: NodeMembers,
    /// Unset if publishers read all doorbells; the same on all members.
    sleepers: OnceCell<Sleepers<Held<[AtomicU64]>>>,
    /// True once this rank's bit stays set.
    always: Cell<bool>,
}

impl Deref for Members {
    type Target = NodeMembers;

    #[inline(always)]
    fn deref(&self) -> &NodeMembers {
        &self.node
    }
}

/// A rank's announcement that it may sleep; ends when dropped.
#[must_use]
pub struct Announced<'a>(Option<&'a Members>);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(members) = self.0
            && let Some(sleepers) = members.sleepers.get()
        {
            sleepers.withdraw(members.node.me());
        }
    }
}

impl Members {
    /// The members of a group in which this process has rank `me`; the error names a rank that is on another node.
    pub fn of(engine: &Engine, group: &Group, me: u32) -> Result<Members, String> {
        Ok(Members {
            node: NodeMembers::of(engine, group, me)?,
            sleepers: OnceCell::new(),
            always: Cell::new(false),
        })
    }

    /// Uses the bits in `words`, if there are enough.
    pub fn use_bits(&self, words: Held<[AtomicU64]>) {
        if let Some(sleepers) = Sleepers::new(words, self.node.count()) {
            let _ = self.sleepers.set(sleepers);
        }
    }

    /// Announces that this rank may sleep while it waits for the others.
    pub fn announce(&self) -> Announced<'_> {
        match self.sleepers.get() {
            Some(sleepers) if !self.always.get() => {
                sleepers.announce(self.node.me());
                Announced(Some(self))
            }
            _ => Announced(None),
        }
    }

    /// Announces that this rank may sleep at any time from now on, as one with requests may.
    #[inline]
    pub fn announce_always(&self) {
        if let (Some(sleepers), false) = (self.sleepers.get(), self.always.get()) {
            self.always.set(true);
            sleepers.announce(self.node.me());
        }
    }

    /// Wakes all other members that sleep; the data they wait for has been published before.
    #[inline]
    pub fn ring_all(&self) {
        match self.sleepers.get() {
            Some(sleepers) => sleepers.ring_each(|rank| {
                if rank != self.node.me() {
                    self.node.ring(rank);
                }
            }),
            None => self.node.ring_all(),
        }
    }
}

/// A rank's progress in a barrier; zero before it has entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    pub round: u32,
    /// True if this rank has signalled this round to the others.
    pub told: bool,
}
