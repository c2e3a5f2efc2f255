//! The control words of a window in shared memory, for all members on one node.
//!
//! Each member has a block in its own arena.
//! The layout of a block depends on the number of members on the node and in the window:
//!
//! ```text
//! lock | announcements of exclusive locks | stripe locks | update mode | update flag
//! | head of the table of attached memory | arrivals of posts and completions
//! | turns of recorded accesses | one cache line per member on the node
//! | slots: the process to wake for each waiting lock ticket
//! ```
//!
//! Guarantee: every word is an atomic.
//! Values that a process reads are compared or checked, never used as pointers.

#![allow(unsafe_code)]

use crate::engine::Engine;
use crate::error::{OscClass, OscError};
use crate::state::access_order::AccessOrder;
use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use mpi_base::inbox::Inbox;
use mpi_base::mem::{Held, Shared};
use mpi_base::node::{Node, ShmBlock, ShmOffset};
use mpi_base::window::{
    Announced, Arrivals, Line, Lock, Mode, Stripe, Ticket, UpdateMode, Updating,
};

/// The number of stripe locks, which limits concurrent locked updates of a member's memory.
pub(crate) const STRIPES: usize = 8;
/// The length in bytes of contiguous memory under one stripe lock.
pub(crate) const STRIPE_BYTES: u64 = 4096;

const LINE: usize = 64;

/// The published location of a member's table of attached memory; see [`crate::access::attach`].
#[repr(C, align(64))]
pub(crate) struct Head {
    /// Odd while the owner changes the other fields.
    pub version: AtomicU64,
    pub place: AtomicU64,
    pub count: AtomicU64,
}

// SAFETY: the struct holds atomics only.
unsafe impl Shared for Head {}

// SAFETY: the struct holds atomics only.
unsafe impl Shared for AccessOrder {}

/// The numbers that determine the length of a block: members on the node, and slots.
#[derive(Clone, Copy)]
struct Parts {
    here: usize,
    slots: usize,
}

impl Parts {
    fn new(here: usize, members: usize) -> Parts {
        Parts {
            here,
            slots: members.next_power_of_two(),
        }
    }

    const ANNOUNCED: usize = LINE;
    const STRIPES_AT: usize = 2 * LINE;
    const UPDATE_MODE: usize = Self::STRIPES_AT + STRIPES * LINE;
    const UPDATING: usize = Self::UPDATE_MODE + LINE;
    const HEAD: usize = Self::UPDATING + LINE;
    const ARRIVALS: usize = Self::HEAD + LINE;
    const TURNS: usize = Self::ARRIVALS + LINE;
    const LINES: usize = Self::TURNS + LINE;

    fn slots_at(self) -> usize {
        Self::LINES + self.here * LINE
    }

    fn len(self) -> usize {
        self.slots_at() + self.slots * size_of::<u32>()
    }
}

/// Allocates a member's block from its arena; zeroed memory is the initial state.
pub(crate) fn take(node: &Node, here: usize, members: usize) -> Option<ShmBlock> {
    node.alloc_large(Parts::new(here, members).len(), LINE)
}

/// The control words of one member.
pub(crate) struct MemberWords {
    pub lock: Held<Lock>,
    announced: Held<Announced>,
    pub stripes: Held<[Stripe]>,
    pub update_mode: Held<UpdateMode>,
    pub updating: Held<Updating>,
    pub head: Held<Head>,
    arrivals: Held<Arrivals>,
    pub access_order: Held<AccessOrder>,
    lines: Held<[Line]>,
    slots: Held<[AtomicU32]>,
    inbox: Held<Inbox>,
    /// The member's rank among the processes of the node.
    pub place: u32,
    /// The member's rank in the window.
    pub rank: u32,
}

impl MemberWords {
    fn find(
        node: &Node,
        at: ShmOffset,
        parts: Parts,
        place: u32,
        rank: u32,
    ) -> Option<MemberWords> {
        let part = |offset: usize| ShmOffset(at.0.wrapping_add(offset as u64));
        Some(MemberWords {
            lock: node.hold(at)?,
            announced: node.hold(part(Parts::ANNOUNCED))?,
            stripes: node.hold_all(part(Parts::STRIPES_AT), STRIPES)?,
            update_mode: node.hold(part(Parts::UPDATE_MODE))?,
            updating: node.hold(part(Parts::UPDATING))?,
            head: node.hold(part(Parts::HEAD))?,
            arrivals: node.hold(part(Parts::ARRIVALS))?,
            access_order: node.hold(part(Parts::TURNS))?,
            lines: node.hold_all(part(Parts::LINES), parts.here)?,
            slots: node.hold_all(part(parts.slots_at()), parts.slots)?,
            inbox: node.inbox(place).ok()?,
            place,
            rank,
        })
    }

    /// Wakes the member if it sleeps.
    pub fn ring(&self) {
        self.inbox.doorbell().ring();
    }

    fn slot(&self, ticket: u32) -> &AtomicU32 {
        // The number of slots is a power of two.
        &self.slots[ticket as usize & (self.slots.len() - 1)]
    }
}

/// The control words of all members on this node.
pub(crate) struct Control {
    /// The control words of each member on this node, by rank.
    here: Vec<MemberWords>,
    /// The index of this process in `here`.
    me: usize,
}

impl Control {
    /// Locates the control words of `members`.
    /// Each has its rank in the window, its rank on the node, and the offset of its block.
    pub fn find(
        engine: &Engine,
        members: &[(u32, u32, ShmOffset)],
        size: usize,
    ) -> Result<Control, OscError> {
        let node = engine.node();
        let parts = Parts::new(members.len(), size);
        let mut here = Vec::with_capacity(members.len());
        for &(rank, place, at) in members {
            let words = MemberWords::find(node, at, parts, place, rank).ok_or_else(|| {
                OscError::new(
                    OscClass::NoMemory,
                    format!("rank {rank} named a place for its window's control words that is outside of the node's memory"),
                )
            })?;
            here.push(words);
        }
        let me = here.iter().position(|words| words.place == node.rank());
        Ok(Control {
            here,
            me: me.unwrap_or(0),
        })
    }

    /// Returns the number of members on this node.
    pub fn count(&self) -> usize {
        self.here.len()
    }

    /// Returns the control words of the member at `index` among the members on this node.
    #[inline]
    pub fn of(&self, index: usize) -> &MemberWords {
        &self.here[index]
    }

    /// Returns the control words of all members on this node.
    pub fn all(&self) -> &[MemberWords] {
        &self.here
    }

    /// Returns this process's own control words.
    #[inline]
    pub fn mine(&self) -> &MemberWords {
        &self.here[self.me]
    }

    /// Notifies member `index` of a post or a completion.
    /// `tell` changes this process's cache line in the control words of the member.
    pub fn tell(&self, index: usize, tell: impl FnOnce(&Line)) {
        let words = &self.here[index];
        tell(&words.lines[self.me]);
        if words.arrivals.arrive() && index != self.me {
            words.ring();
        }
    }

    /// Returns true if all awaited posts or completions have arrived; see [`Arrivals::are_in`].
    pub fn are_in(&self, missing: impl FnOnce() -> u32) -> bool {
        self.mine().arrivals.are_in(missing)
    }

    /// Returns the cache line in this process's control words that member `index` writes.
    pub fn line_from(&self, index: usize) -> &Line {
        &self.mine().lines[index]
    }

    fn announced(&self) -> &Announced {
        &self.here[0].announced
    }

    /// Draws a ticket for the lock of member `index`. The ticket is for this process,
    /// or for a member on another node that requested the lock by a message.
    pub fn draw(&self, index: usize, mode: Mode) -> Ticket {
        if mode == Mode::Exclusive {
            self.announced().announce();
        }
        let words = &self.here[index];
        let ticket = words.lock.draw(mode);
        if !words.lock.admits(ticket) {
            let slot = words.slot(ticket.number());
            slot.store(self.mine().place + 1, Ordering::Relaxed);
            // SYNC POINT window.ticket
            fence(Ordering::SeqCst);
        }
        ticket
    }

    /// Returns true if a ticket may enter: the lock has reached the ticket's number.
    /// An exclusive ticket also requires that no member has raised the flag of `MPI_Win_lock_all`.
    #[inline]
    pub fn admits(&self, index: usize, ticket: Ticket) -> bool {
        self.here[index].lock.admits(ticket)
            && (ticket.mode() == Mode::Shared || !self.any_holds_all())
    }

    #[inline]
    fn any_holds_all(&self) -> bool {
        let mut all = self.here.iter().enumerate();
        all.any(|(index, words)| words.lines[index].holds_all())
    }

    /// Acquires the lock with an admitted ticket.
    #[inline]
    pub fn enter(&self, index: usize, ticket: Ticket) {
        if self.here[index].lock.enter(ticket, self.mine().place) {
            self.ring_waiting(index);
        }
    }

    /// Releases the lock of member `index`.
    #[inline]
    pub fn leave(&self, index: usize, mode: Mode) {
        if self.here[index].lock.leave(mode) {
            self.ring_waiting(index);
        }
        if mode == Mode::Exclusive {
            self.announced().withdraw();
        }
    }

    #[cold]
    fn ring_waiting(&self, index: usize) {
        let words = &self.here[index];
        fence(Ordering::SeqCst);
        for ticket in words.lock.waiting() {
            let place = words.slot(ticket).load(Ordering::Relaxed);
            let found = place
                .checked_sub(1)
                .and_then(|place| self.here.iter().find(|w| w.place == place));
            if let Some(waiter) = found {
                waiter.ring();
            }
        }
    }

    /// Raises the flag of `MPI_Win_lock_all`, which locks all members on this node.
    /// Lowers the flag again and returns false if an exclusive lock is announced.
    #[inline]
    pub fn hold_all(&self) -> bool {
        let holds = self.mine().lines[self.me].hold_all(self.announced());
        if !holds {
            // A waiting member may have polled the flag while it was raised, and must poll again.
            self.here.iter().for_each(MemberWords::ring);
        }
        holds
    }

    /// Lowers the flag that [`Control::hold_all`] has raised.
    #[inline]
    pub fn release_all(&self) {
        if self.mine().lines[self.me].release_all(self.announced()) {
            self.here.iter().for_each(MemberWords::ring);
        }
    }

    /// Returns a member that holds the lock of member `index` exclusively,
    /// or that has raised the flag of `MPI_Win_lock_all`. Only used for reports.
    pub fn holder(&self, index: usize) -> Option<&MemberWords> {
        let exclusive = self.here[index].lock.holder();
        let place = exclusive.and_then(|place| self.here.iter().find(|w| w.place == place));
        let all = || {
            let mut each = self.here.iter().enumerate();
            let found = each.find(|(index, words)| words.lines[*index].holds_all());
            found.map(|(_, words)| words)
        };
        place.or_else(all)
    }
}
