//! Synchronisation of RMA windows in shared memory, for the members on one node, without messages.
//!
//! **Locks.** Each member has a [`Lock`]: shared and exclusive requests draw tickets from one counter
//! and are admitted in ticket order; consecutive shared requests are admitted together.
//! A request that waits stores its member's local index in a slot, which the ticket selects.
//! So the rank that admits the request can ring the doorbell of that member.
//! `MPI_Win_lock_all` draws no ticket: the member raises a flag in its line ([`Line`]) and
//! checks whether an exclusive lock is announced ([`Announced`]).
//! If one is announced, the member lowers the flag and draws shared tickets instead.
//! An exclusive lock announces itself and then waits until no flag is raised.
//!
//! **Post, start, complete, wait.** Each ordered pair (writer, reader) has two counters that only
//! increase, in a [`Line`] that the writer alone writes.
//! The reader compares the counters with the values that it expects ([`Awaited`]),
//! so a post or completion that arrives early is counted and never lost.
//!
//! **Updates.** Accumulates on one member's memory use either atomic instructions or stripe locks
//! ([`Stripe`]), depending on the memory's mode ([`UpdateMode`]).
//!
//! SYNC POINT `window.ticket`: a rank stores which tickets may enter, then polls for drawn tickets;
//! a rank that draws a ticket then polls whether the ticket is admitted.
//! SYNC POINT `window.all`: a rank that raises a flag then polls for announced exclusive locks;
//! a rank that announces an exclusive lock then polls the flags.
//! All are sequentially consistent: at least one of the two ranks sees the other's store.

#![allow(unsafe_code)]

#[cfg(all(test, loom))]
mod loom_models;
mod order;
mod pair;
mod update_mode;

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::yield_now::Backoff;
pub use order::AccessOrder;
pub use pair::{Arrivals, Awaited, has_reached};
pub use update_mode::{UpdateMode, Updating, under_each};

/// The mode of a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Several ranks may hold the lock at the same time.
    Shared,
    /// Only one rank may hold the lock.
    Exclusive,
}

/// A ticket: the position of a request in the queue of one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    number: u32,
    mode: Mode,
}

impl Ticket {
    /// Returns the mode for which the ticket was drawn.
    pub fn mode(self) -> Mode {
        self.mode
    }

    /// Returns the ticket's number, which selects the slot of its waiter.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// One member's lock; zeroed memory is a free lock.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Lock {
    /// The number of the next ticket to be drawn.
    next: AtomicU32,
    /// The exclusive holder's local index plus one; used only in diagnostic messages.
    holder: AtomicU32,
    /// The numbers of the tickets that may enter now:
    /// for shared requests in the low half, for exclusive requests in the high half.
    turn: AtomicU64,
}

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Lock {}

/// Adds `shared` and `exclusive` to the two halves of a turn; each half wraps around separately.
fn advanced(turn: u64, shared: u32, exclusive: u32) -> u64 {
    let (low, high) = (turn as u32, (turn >> 32) as u32);
    u64::from(low.wrapping_add(shared)) | u64::from(high.wrapping_add(exclusive)) << 32
}

impl Lock {
    /// Returns a free lock.
    pub fn new() -> Lock {
        Lock::default()
    }

    /// Draws a ticket. The caller stores its local index in the ticket's slot and then polls
    /// [`Lock::admits`] until the ticket is admitted.
    #[inline]
    pub fn draw(&self, mode: Mode) -> Ticket {
        // SYNC POINT window.ticket
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        settle();
        Ticket { number, mode }
    }

    /// Returns the number of the next ticket to be drawn.
    pub fn next(&self) -> u32 {
        self.next.load(Ordering::SeqCst)
    }

    /// Returns true if the ticket is admitted: the rank may enter the lock.
    #[inline]
    pub fn admits(&self, ticket: Ticket) -> bool {
        let turn = self.turn.load(Ordering::SeqCst);
        let number = match ticket.mode {
            Mode::Shared => turn as u32,
            Mode::Exclusive => (turn >> 32) as u32,
        };
        number == ticket.number
    }

    /// Enters the lock with an admitted ticket; `place` is the caller's local index.
    /// Returns true if ranks that wait with the [`Lock::waiting`] tickets may have to be woken.
    #[inline]
    pub fn enter(&self, ticket: Ticket, place: u32) -> bool {
        match ticket.mode {
            Mode::Exclusive => {
                self.holder.store(place + 1, Ordering::Relaxed);
                false
            }
            // The next ticket is admitted too if its request is shared.
            Mode::Shared => self.advance(1, 0),
        }
    }

    /// Leaves the lock; the result has the same meaning as in [`Lock::enter`].
    #[inline]
    pub fn leave(&self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => {
                self.holder.store(0, Ordering::Relaxed);
                self.advance(1, 1)
            }
            Mode::Shared => self.advance(0, 1),
        }
    }

    #[inline]
    fn advance(&self, shared: u32, exclusive: u32) -> bool {
        let mut turn = self.turn.load(Ordering::Relaxed);
        loop {
            let next = advanced(turn, shared, exclusive);
            // SYNC POINT window.ticket
            match self
                .turn
                .compare_exchange_weak(turn, next, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => {
                    settle();
                    return self.next.load(Ordering::SeqCst) != (next >> 32) as u32;
                }
                Err(now) => turn = now,
            }
        }
    }

    /// Returns the tickets that may enter now, for a shared and for an exclusive request;
    /// these tickets may not have been drawn yet.
    pub fn waiting(&self) -> [u32; 2] {
        let turn = self.turn.load(Ordering::SeqCst);
        [turn as u32, (turn >> 32) as u32]
    }

    /// Returns the local index of the exclusive holder, which may already have left.
    pub fn holder(&self) -> Option<u32> {
        self.holder.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// A fence for loom, which orders sequentially consistent fences totally, but not accesses.
/// Processors and the memory model of the language order both.
#[inline(always)]
fn settle() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// The number of exclusive locks of a window that are requested or held on a node,
/// in one cache line of the memory of the node's first member.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Announced(AtomicU32);

#[cfg(not(loom))]
// SAFETY: the field is an atomic, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Announced {}

impl Announced {
    /// Returns a count of zero.
    pub fn new() -> Announced {
        Announced::default()
    }

    /// Announces an exclusive lock; afterwards the caller must poll all flags before it enters.
    #[inline]
    pub fn announce(&self) {
        // SYNC POINT window.all
        self.0.fetch_add(1, Ordering::SeqCst);
        settle();
    }

    /// Withdraws the announcement of an exclusive lock.
    #[inline]
    pub fn withdraw(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Returns true if at least one exclusive lock is announced.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }
}

/// The words that one member, the writer, publishes to another,
/// in one cache line that no other member writes.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Line {
    posted: AtomicU32,
    completed: AtomicU32,
    /// Set while the writer holds a lock of all members; only in the line from a member to itself.
    all: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Line {}

impl Line {
    /// Returns a line without posts, completions or a flag.
    pub fn new() -> Line {
        Line::default()
    }

    /// Counts one more exposure of the writer's window to the reader (writer only).
    #[inline]
    pub fn post(&self) {
        let before = self.posted.load(Ordering::Relaxed);
        self.posted.store(before.wrapping_add(1), Ordering::Release);
    }

    /// Returns the writer's number of posts.
    /// The writer's stores before these posts are then visible to the reader.
    #[inline]
    pub fn posted(&self) -> u32 {
        self.posted.load(Ordering::Acquire)
    }

    /// Counts one more completed access epoch of the writer at the reader's window (writer only).
    #[inline]
    pub fn complete(&self) {
        let before = self.completed.load(Ordering::Relaxed);
        self.completed
            .store(before.wrapping_add(1), Ordering::Release);
    }

    /// Returns the writer's number of completions;
    /// the writer's accesses before these completions are then visible to the reader.
    #[inline]
    pub fn completed(&self) -> u32 {
        self.completed.load(Ordering::Acquire)
    }

    /// Raises the flag of a lock of all members, unless an exclusive lock is announced.
    /// Returns true if the flag is raised (writer only).
    #[inline]
    pub fn hold_all(&self, announced: &Announced) -> bool {
        self.all.store(1, Ordering::Relaxed);
        // SYNC POINT window.all
        fence(Ordering::SeqCst);
        if announced.any() {
            self.all.store(0, Ordering::Release);
            return false;
        }
        true
    }

    /// Lowers the flag of a lock of all members (writer only).
    /// Returns true if a rank that has announced an exclusive lock must be woken.
    #[inline]
    pub fn release_all(&self, announced: &Announced) -> bool {
        self.all.store(0, Ordering::Release);
        fence(Ordering::SeqCst);
        announced.any()
    }

    /// Returns true if the flag of a lock of all members is raised.
    #[inline]
    pub fn holds_all(&self) -> bool {
        self.all.load(Ordering::SeqCst) != 0
    }
}

/// A stripe: a lock of some elements, held briefly for an update that no single instruction makes.
///
/// Zeroed memory is a free stripe.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Stripe {
    /// The holder's local index plus one; 0 if the lock is free.
    holder: AtomicU32,
    /// The number of consecutive short updates under this lock; only holders write it.
    shorts: AtomicU32,
}

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Stripe {}

impl Stripe {
    /// Returns a free stripe.
    pub fn new() -> Stripe {
        Stripe::default()
    }

    /// Runs `update` under the lock, for the process with local index `me`.
    /// After a series of failed attempts the caller yields, because the holder may need the core.
    /// If `has_ended` returns true for the holder, the caller acquires the lock;
    /// a partial update of the ended process is not undone.
    #[inline]
    pub fn with<R>(
        &self,
        me: u32,
        has_ended: impl Fn(u32) -> bool,
        update: impl FnOnce() -> R,
    ) -> R {
        const LOOKS: u32 = 64;
        let mine = me.wrapping_add(1).max(1);
        let take = |from| {
            let taken = (self.holder).compare_exchange_weak(
                from,
                mine,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            taken.is_ok()
        };
        let mut looks = 0;
        let mut backoff = Backoff::new();
        while !take(0) {
            looks += 1;
            if looks % LOOKS != 0 {
                crate::atomic::spin_loop();
                continue;
            }
            backoff.pause();
            let holder = self.holder.load(Ordering::Relaxed);
            if holder.checked_sub(1).is_some_and(&has_ended) && take(holder) {
                break;
            }
        }
        let held = Held(self);
        let result = update();
        drop(held);
        result
    }
}

impl Stripe {
    /// Counts a short update, or resets the count of consecutive short updates (holder only).
    #[inline]
    pub fn note(&self, is_short: bool) {
        let row = match is_short {
            true => self.shorts.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        self.shorts.store(row, Ordering::Relaxed);
    }

    /// Returns the count of consecutive short updates.
    #[inline]
    pub fn shorts(&self) -> u32 {
        self.shorts.load(Ordering::Relaxed)
    }
}

/// A guard that releases a stripe when dropped, also if an update panics.
struct Held<'a>(&'a Stripe);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_whose_holder_has_ended_is_taken_over_and_free_afterwards() {
        let stripe = Stripe {
            holder: AtomicU32::new(4),
            ..Stripe::new()
        };
        assert_eq!(stripe.with(0, |place| place == 3, || 7), 7);
        assert_eq!(stripe.with(1, |_| false, || 8), 8);
    }

    #[test]
    fn requests_enter_in_the_order_of_their_tickets_and_shared_ones_together() {
        let lock = Lock::new();
        let modes = [Mode::Shared, Mode::Shared, Mode::Exclusive, Mode::Shared];
        let tickets = modes.map(|mode| lock.draw(mode));
        let admitted = || tickets.map(|ticket| lock.admits(ticket));
        assert_eq!(admitted(), [true, false, false, false]);
        assert!(lock.enter(tickets[0], 0));
        assert_eq!(admitted(), [false, true, false, false]);
        lock.enter(tickets[1], 1);
        assert_eq!(
            admitted(),
            [false; 4],
            "a shared request passes an exclusive one"
        );
        lock.leave(Mode::Shared);
        assert_eq!(admitted(), [false; 4]);
        assert!(lock.leave(Mode::Shared));
        assert_eq!(admitted(), [false, false, true, false]);
        lock.enter(tickets[2], 5);
        assert_eq!(lock.holder(), Some(5));
        lock.leave(Mode::Exclusive);
        assert_eq!(admitted(), [false, false, false, true]);
        lock.enter(tickets[3], 0);
        assert!(!lock.leave(Mode::Shared), "no rank waits");
    }

    #[test]
    fn tickets_go_on_where_their_numbers_start_again() {
        let lock = Lock::new();
        lock.next.store(u32::MAX, Ordering::Relaxed);
        let turn = u64::from(u32::MAX) << 32 | u64::from(u32::MAX);
        lock.turn.store(turn, Ordering::Relaxed);
        for mode in [Mode::Shared, Mode::Exclusive, Mode::Shared] {
            let ticket = lock.draw(mode);
            assert!(lock.admits(ticket));
            lock.enter(ticket, 0);
            assert!(!lock.leave(mode));
        }
    }

    #[test]
    fn an_announced_exclusive_lock_keeps_locks_of_all_out() {
        let (line, announced) = (Line::new(), Announced::new());
        assert!(line.hold_all(&announced) && line.holds_all());
        announced.announce();
        assert!(
            line.release_all(&announced),
            "the exclusive one is not told"
        );
        assert!(!line.hold_all(&announced) && !line.holds_all());
        announced.withdraw();
        assert!(line.hold_all(&announced));
    }

    #[test]
    fn updates_under_a_stripe_do_not_mix() {
        let (stripe, value) = (Stripe::new(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        stripe.with(
                            0,
                            |_| false,
                            || {
                                let before = value.load(Ordering::Relaxed);
                                value.store(before + 1, Ordering::Relaxed);
                            },
                        );
                    }
                });
            }
        });
        assert_eq!(value.into_inner(), 40_000);
    }
}
