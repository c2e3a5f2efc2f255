//! The doorbell: one futex word per process, on which the process sleeps and is woken.
//!
//! Which side writes what: only the owner sets [`SLEEPING`] and [`MARK`], and [`GONE`] when it leaves; any thread may clear `SLEEPING`, and the thread that clears it calls `futex_wake`.
//! A sender that reads zero, as it does while the owner is awake, has nothing more to do.
//!
//! The protocol is Dekker's, one fence on each side ([`FENCE`] selects the kind of fence):
//!
//! ```text
//! sender                              sleeper
//!   publish news (release)              word |= SLEEPING
//!   fence(SeqCst)                       fence(SeqCst)
//!   if word has SLEEPING:               if there is news: word &= !SLEEPING, stay awake
//!     if it clears it: futex_wake       else futex_wait(word)
//! ```
//!
//! SYNC POINT `doorbell.sleep`: one of the two fences comes first; either the sleeper's recheck sees the news or the sender sees `SLEEPING`.
//! The futex is a shared one, because the word is in memory of several processes.
//! An owner that also waits for descriptors sleeps in `poll` instead, sets [`POLLING`] in addition to `SLEEPING`, and is woken through a socket ([`crate::descriptor_doorbell`]).
//! SYNC POINT `doorbell.socket`: the owner stores its socket's number before it sets `POLLING` (Release); the thread that clears `POLLING` (Acquire) reads the number.
//! A sleep ends after [`NAP`] at the latest; only services that have no doorbell rely on that.
#![allow(unsafe_code)]

use std::time::Duration;

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The owner sleeps, or is about to and will poll once more.
pub const SLEEPING: u32 = 1;
/// In addition to [`SLEEPING`]: the owner sleeps in `poll`, because it also waits for descriptors.
pub const POLLING: u32 = 2;
/// The owner asks senders to set their bits in its bitmap `news` too (see [`crate::inbox`]).
pub const MARK: u32 = 4;

/// The owner has left permanently; messages sent to it are not read.
pub const GONE: u32 = 8;

/// Senders must execute a fence of their own before they read the word.
///
/// An owner that rarely sleeps leaves it unset and executes the senders' fences remotely when it does ([`crate::fence`]);
/// an owner that sleeps often, because its core is oversubscribed, or whose system lacks that call, sets it.
pub const FENCE: u32 = 16;

/// The longest uninterrupted sleep.
pub const NAP: Duration = Duration::from_millis(10);

/// One process's doorbell.
#[repr(C)]
#[derive(Debug)]
pub struct Doorbell {
    word: AtomicU32,
    /// The number of the owner's socket while it is [`POLLING`]; written by the owner.
    socket: AtomicU64,
}

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Doorbell {}

impl Doorbell {
    /// Returns a doorbell whose owner is awake, which is what zeroed shared memory holds.
    pub fn new() -> Doorbell {
        Doorbell {
            word: AtomicU32::new(0),
            socket: AtomicU64::new(0),
        }
    }

    /// Returns the owner's requests to senders: zero, or some of [`SLEEPING`], [`POLLING`], [`MARK`], [`FENCE`] and [`GONE`].
    ///
    /// A sender calls it after its fence.
    #[inline(always)]
    pub fn wishes(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    /// Asks senders to set their bits from now on (owner only).
    ///
    /// The owner must poll every source once more after the call.
    pub fn ask_for_marks(&self) {
        let before = self.word.fetch_or(MARK, Ordering::Relaxed);
        self.order(before);
    }

    /// Asks senders to execute fences of their own from now on (owner only).
    pub fn ask_for_fences(&self) {
        self.word.fetch_or(FENCE, Ordering::Relaxed);
        // A sender that has not seen the request yet has at least completed its earlier stores.
        crate::fence::heavy();
        fence(Ordering::SeqCst);
    }

    /// The owner's fence: either every sender's next read of the word sees the owner's earlier stores, or the owner sees what the senders stored before their last read.
    fn order(&self, word: u32) {
        if word & FENCE == 0 && !crate::fence::heavy() {
            self.word.fetch_or(FENCE, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Marks that the owner has left; called by the owner, or on its behalf by the process that detected its death.
    pub fn leave(&self) {
        self.word.fetch_or(GONE, Ordering::Relaxed);
    }

    /// Wakes the owner if it sleeps; the caller has published its news and executed its fence.
    #[cold]
    pub fn wake(&self) {
        // SYNC POINT doorbell.socket
        let before = self
            .word
            .fetch_and(!(SLEEPING | POLLING), Ordering::Acquire);
        if before & POLLING != 0 {
            socket::ring(&self.socket);
        } else if before & SLEEPING != 0 {
            futex::wake(&self.word);
        }
    }

    /// Executes a fence, reads the word and wakes the owner if it sleeps, so that the owner polls; publishes nothing itself.
    #[inline]
    pub fn ring(&self) {
        // SYNC POINT doorbell.sleep
        fence(Ordering::SeqCst);
        if self.wishes() & SLEEPING != 0 {
            self.wake();
        }
    }

    /// Sleeps until rung, at most for the shorter of `limit` and [`NAP`], unless `news` returns true (owner only).
    ///
    /// `news` must poll every source that rings this doorbell.
    pub fn sleep(&self, limit: Duration, news: impl FnOnce() -> bool) {
        let word = self.word.fetch_or(SLEEPING, Ordering::Relaxed) | SLEEPING;
        // SYNC POINT doorbell.sleep
        self.order(word);
        if !news() {
            futex::wait(&self.word, word, limit.min(NAP));
        }
        self.word.fetch_and(!SLEEPING, Ordering::Relaxed);
    }

    /// Sleeps as [`Doorbell::sleep`], but in `poll`, which returns when a datagram arrives at `socket` or after the time that it is given (owner only).
    pub fn sleep_polling(
        &self,
        socket: u64,
        limit: Duration,
        news: impl FnOnce() -> bool,
        poll: impl FnOnce(Duration),
    ) {
        self.socket.store(socket, Ordering::Relaxed);
        // SYNC POINT doorbell.socket
        let word = self.word.fetch_or(SLEEPING | POLLING, Ordering::Release);
        // SYNC POINT doorbell.sleep
        self.order(word);
        if !news() {
            poll(limit.min(NAP));
        }
        self.word
            .fetch_and(!(SLEEPING | POLLING), Ordering::Relaxed);
    }

    /// Returns true if the socket was rung since the last call, which `poll` would detect.
    #[cfg(loom)]
    pub fn take_rung(&self, socket: u64) -> bool {
        self.socket.swap(socket, Ordering::Acquire) == socket + socket::RUNG
    }
}

impl Default for Doorbell {
    fn default() -> Doorbell {
        Doorbell::new()
    }
}

#[cfg(not(loom))]
mod futex {
    use std::time::Duration;

    use rustix::thread::futex::{Flags, Timespec};

    use crate::atomic::AtomicU32;

    pub fn wait(word: &AtomicU32, expected: u32, limit: Duration) {
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // After a signal, a changed word or a timeout the caller polls again.
        let _ = rustix::thread::futex::wait(word, Flags::empty(), expected, Some(&limit));
    }

    pub fn wake(word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(word, Flags::empty(), i32::MAX as u32);
    }
}

/// Under loom a sleep has no timeout, so a lost wake-up is a model that does not end, which loom reports.
#[cfg(loom)]
mod futex {
    use std::time::Duration;

    use crate::atomic::{AtomicU32, Ordering};

    pub fn wait(word: &AtomicU32, expected: u32, _limit: Duration) {
        while word.load(Ordering::Relaxed) == expected {
            loom::thread::yield_now();
        }
    }

    pub fn wake(_word: &AtomicU32) {}
}

#[cfg(not(loom))]
mod socket {
    use crate::atomic::{AtomicU64, Ordering};

    pub fn ring(socket: &AtomicU64) {
        crate::ring_socket::ring(socket.load(Ordering::Relaxed));
    }
}

/// Under loom the ring is kept in the socket's number, as a datagram is queued in its socket.
#[cfg(loom)]
mod socket {
    use crate::atomic::{AtomicU64, Ordering};

    pub const RUNG: u64 = 1 << 32;

    pub fn ring(socket: &AtomicU64) {
        socket.fetch_add(RUNG, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32 as StdU32;

    #[test]
    fn news_before_the_sleep_keeps_the_owner_awake() {
        let doorbell = Doorbell::new();
        let mut asked = false;
        doorbell.sleep(NAP, || {
            asked = true;
            true
        });
        assert!(asked);
        assert_eq!(doorbell.wishes(), 0);
    }

    #[test]
    fn a_ring_ends_the_sleep_and_keeps_the_owners_other_wishes() {
        let doorbell = Doorbell::new();
        doorbell.ask_for_marks();
        let news = StdU32::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                while news.load(Ordering::Acquire) == 0 {
                    doorbell.sleep(NAP, || news.load(Ordering::Acquire) != 0);
                }
            });
            news.store(1, Ordering::Release);
            doorbell.ring();
        });
        assert_eq!(doorbell.wishes(), MARK);
    }
}
