//! The doorbell: one futex word per process (the owner), on which it sleeps until it is woken.
//!
//! Only the owner sets [`SLEEPING`] and [`MARK`], and [`GONE`] when it leaves. Any thread may clear
//! `SLEEPING`, and the thread that clears it calls `futex_wake`.
//! A sender that reads zero does nothing: the owner is awake.
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
//! SYNC POINT `doorbell.sleep`: one of the two fences comes first,
//! so either the sleeper's second poll sees the news, or the sender sees `SLEEPING`.
//! The futex is process-shared, because several processes map the word.
//! An owner that also waits for file descriptors sleeps in `poll`. It sets [`POLLING`] in addition to
//! `SLEEPING` and is woken through a socket ([`crate::descriptor_doorbell`]).
//! One other thread, the watcher, may sleep on the doorbell at the same time.
//! It sets [`WATCHED`] on each doorbell that it watches, sleeps in `poll`, and is woken through its own socket.
//! So it sleeps on several doorbells, and the owner's flags stay the owner's.
//! SYNC POINT `doorbell.socket`: the owner stores its socket's number,
//! and then sets `POLLING` (Release); the watcher does the same with `WATCHED`.
//! The thread that clears the flag (Acquire) loads the number.
//! A sleep ends after at most [`NAP`]; only event sources without a doorbell rely on this limit.
#![allow(unsafe_code)]

use std::time::Duration;

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The owner sleeps, or will sleep after one more poll.
pub const SLEEPING: u32 = 1;
/// Set in addition to [`SLEEPING`]: the owner sleeps in `poll`,
/// because it also waits for file descriptors.
pub const POLLING: u32 = 2;
/// The owner requests that senders also set their bits in its bitmap `news` (see [`crate::inbox`]).
pub const MARK: u32 = 4;

/// The owner has left permanently, and nothing reads messages that are sent to it.
pub const GONE: u32 = 8;

/// Senders must execute their own fence before they read the word.
///
/// An owner that rarely sleeps clears this flag and executes the senders' fences remotely
/// (`membarrier`, [`crate::fence`]) before it sleeps.
/// An owner sets the flag if it often sleeps because its core is oversubscribed.
/// The owner or the watcher sets it if the kernel lacks `membarrier`.
pub const FENCE: u32 = 16;

/// A thread other than the owner sleeps in `poll`, or will sleep after one more poll, and watches this doorbell.
pub const WATCHED: u32 = 32;

/// The flags of which a sender must clear those that are set, to wake the owner and the watcher.
pub const ASLEEP: u32 = SLEEPING | WATCHED;

/// Maximum duration of a sleep that no ring ends.
pub const NAP: Duration = Duration::from_millis(10);

/// The duration to which callers' limits are bounded: [`NAP`], but longer in this crate's tests, where a lost wake-up must not stay unnoticed.
pub(crate) const LONGEST: Duration = match cfg!(test) {
    true => Duration::from_secs(30),
    false => NAP,
};

/// The doorbell of one process, in shared memory.
#[repr(C)]
#[derive(Debug)]
pub struct Doorbell {
    word: AtomicU32,
    /// The number in the name of the owner's wake-up socket, valid while the word has [`POLLING`];
    /// only the owner writes it.
    socket: AtomicU64,
    /// The number of the watcher's wake-up socket, valid while the word has [`WATCHED`];
    /// only the watcher writes it.
    watcher: AtomicU64,
}

#[cfg(not(loom))]
// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Doorbell {}

impl Doorbell {
    /// Returns a doorbell whose owner is awake; zeroed shared memory is such a doorbell.
    pub fn new() -> Doorbell {
        Doorbell {
            word: AtomicU32::new(0),
            socket: AtomicU64::new(0),
            watcher: AtomicU64::new(0),
        }
    }

    /// Returns the owner's requests to senders, or 0 if there are none:
    /// the flags [`SLEEPING`], [`POLLING`], [`WATCHED`], [`MARK`], [`FENCE`] and [`GONE`].
    ///
    /// A sender calls this after its own fence.
    #[inline(always)]
    pub fn wishes(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    /// Requests that senders set their bits in the bitmap `news` from now on (owner only).
    ///
    /// The owner must poll every source once more after the call.
    pub fn ask_for_marks(&self) {
        let before = self.word.fetch_or(MARK, Ordering::Relaxed);
        self.order(before);
    }

    /// Requests that senders execute their own fences from now on (owner only).
    pub fn ask_for_fences(&self) {
        self.word.fetch_or(FENCE, Ordering::Relaxed);
        // After this fence, a sender that has not seen the request
        // has completed its earlier stores.
        crate::fence::heavy();
        fence(Ordering::SeqCst);
    }

    /// Executes the owner's fence. Either every sender's next read of the word sees the owner's
    /// earlier stores, or the owner sees the stores that precede the sender's last read.
    fn order(&self, word: u32) {
        if word & FENCE == 0 && !crate::fence::heavy() {
            self.word.fetch_or(FENCE, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Stores that the owner has left. The caller is the owner,
    /// or the process that detected the owner's death.
    pub fn leave(&self) {
        self.word.fetch_or(GONE, Ordering::Relaxed);
    }

    /// Wakes the owner and the watcher if they sleep. The caller has published its news and executed its fence.
    #[cold]
    pub fn wake(&self) {
        // SYNC POINT doorbell.socket
        let before = self.word.fetch_and(!WATCHED, Ordering::Acquire);
        if before & WATCHED != 0 {
            socket::ring(&self.watcher);
        }
        if before & SLEEPING != 0 {
            self.wake_owner();
        }
    }

    /// Wakes the owner if it sleeps, and not the watcher.
    /// Returns true if the call has woken the owner, which then sees all earlier stores of the caller.
    #[cold]
    pub fn wake_owner(&self) -> bool {
        // SYNC POINT doorbell.socket, watcher.call
        let flags = SLEEPING | POLLING;
        let before = self.word.fetch_and(!flags, Ordering::AcqRel);
        if before & POLLING != 0 {
            socket::ring(&self.socket);
        } else if before & SLEEPING != 0 {
            futex::wake(&self.word);
        }
        before & SLEEPING != 0
    }

    /// Executes a fence and then wakes the owner and the watcher if they sleep, so that they poll their sources.
    #[inline]
    pub fn ring(&self) {
        // SYNC POINT doorbell.sleep
        fence(Ordering::SeqCst);
        if self.wishes() & ASLEEP != 0 {
            self.wake();
        }
    }

    /// Executes a fence and then wakes the owner if it sleeps, because a thread waits for the owner and not for news.
    pub fn ring_owner(&self) {
        // SYNC POINT doorbell.sleep
        fence(Ordering::SeqCst);
        if self.wishes() & SLEEPING != 0 {
            self.wake_owner();
        }
    }

    /// Sleeps until the doorbell is rung, for at most the shorter of `limit` and [`NAP`],
    /// unless `news` returns true (owner only).
    /// Returns true if only the limit has ended the sleep.
    ///
    /// `news` must poll every source that rings this doorbell.
    pub fn sleep(&self, limit: Duration, news: impl FnOnce() -> bool) -> bool {
        let word = self.word.fetch_or(SLEEPING, Ordering::Relaxed) | SLEEPING;
        // SYNC POINT doorbell.sleep
        self.order(word);
        let timed_out = !news() && futex::wait(&self.word, word, limit.min(LONGEST));
        // SYNC POINT watcher.call
        self.word.fetch_and(!SLEEPING, Ordering::Acquire);
        timed_out
    }

    /// As [`Doorbell::sleep`], but the closure `poll` sleeps (owner only).
    /// It returns false when a datagram arrives at `socket`, and true after its time limit, which is then the result.
    /// The caller is also the watcher of other doorbells, and each of them has at most one watcher at a time.
    ///
    /// `news` must poll every source that rings one of the doorbells.
    pub fn sleep_polling(
        &self,
        watched: &[&Doorbell],
        socket: u64,
        news: impl FnOnce() -> bool,
        poll: impl FnOnce() -> bool,
    ) -> bool {
        socket::publish(&self.socket, socket);
        // SYNC POINT doorbell.socket
        let mut words = self.word.fetch_or(SLEEPING | POLLING, Ordering::Release);
        for other in watched {
            socket::publish(&other.watcher, socket);
            // SYNC POINT doorbell.socket
            words &= other.word.fetch_or(WATCHED, Ordering::Release);
        }
        // SYNC POINT doorbell.sleep
        if words & FENCE == 0 && !crate::fence::heavy() {
            for doorbell in watched.iter().chain(&[self]) {
                doorbell.word.fetch_or(FENCE, Ordering::Relaxed);
            }
        }
        fence(Ordering::SeqCst);
        let timed_out = !news() && poll();
        for other in watched {
            other.word.fetch_and(!WATCHED, Ordering::Relaxed);
        }
        // SYNC POINT watcher.call
        self.word
            .fetch_and(!(SLEEPING | POLLING), Ordering::Acquire);
        timed_out
    }

    /// Returns true if a datagram was sent to the socket since the last call of this function;
    /// replaces `poll` under loom.
    #[cfg(loom)]
    pub fn take_rung(&self, socket: u64) -> bool {
        self.socket.swap(socket, Ordering::Acquire) > socket
    }

    /// As [`Doorbell::take_rung`], for the socket of the watcher.
    #[cfg(loom)]
    pub fn take_rung_watcher(&self, socket: u64) -> bool {
        self.watcher.swap(socket, Ordering::Acquire) > socket
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

    use rustix::io::Errno;
    use rustix::thread::futex::{Flags, Timespec};

    use crate::atomic::AtomicU32;

    /// Sleeps while the word has the expected value. Returns true after the limit.
    pub fn wait(word: &AtomicU32, expected: u32, limit: Duration) -> bool {
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // After a signal, a changed word or a timeout the caller polls again.
        let woken = rustix::thread::futex::wait(word, Flags::empty(), expected, Some(&limit));
        woken == Err(Errno::TIMEDOUT)
    }

    pub fn wake(word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(word, Flags::empty(), i32::MAX as u32);
    }
}

/// The futex under loom: a sleep has no timeout, so with a lost wake-up the model does not end,
/// which loom reports as a deadlock.
#[cfg(loom)]
mod futex {
    use std::time::Duration;

    use crate::atomic::{AtomicU32, Ordering};

    pub fn wait(word: &AtomicU32, expected: u32, _limit: Duration) -> bool {
        while word.load(Ordering::Relaxed) == expected {
            loom::thread::yield_now();
        }
        false
    }

    pub fn wake(_word: &AtomicU32) {}
}

#[cfg(not(loom))]
mod socket {
    use crate::atomic::{AtomicU64, Ordering};

    pub fn publish(socket: &AtomicU64, number: u64) {
        socket.store(number, Ordering::Relaxed);
    }

    pub fn ring(socket: &AtomicU64) {
        crate::ring_socket::ring(socket.load(Ordering::Relaxed));
    }
}

/// The socket under loom: a ring adds `RUNG` to the socket's number, as a socket queues a datagram.
#[cfg(loom)]
mod socket {
    use crate::atomic::{AtomicU64, Ordering};

    pub const RUNG: u64 = 1 << 32;

    /// loom orders a plain store and read-modify-write operations of other threads wrongly, so this is a swap.
    pub fn publish(socket: &AtomicU64, number: u64) {
        socket.swap(number, Ordering::Relaxed);
    }

    pub fn ring(socket: &AtomicU64) {
        socket.fetch_add(RUNG, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32 as StdU32};
    use std::time::Instant;

    /// Sleeps by `sleep`, for at most [`LONGEST`] each time, until all numbers up to `rounds` have been published in turn.
    /// Returns false if a ring has not ended a sleep.
    pub fn see_all(
        (news, seen): (&StdU32, &StdU32),
        rounds: u32,
        sleep: impl Fn(&dyn Fn() -> bool) -> bool,
    ) -> bool {
        for round in 1..=rounds {
            let has_news = || news.load(Ordering::Acquire) >= round;
            while !has_news() {
                let begin = Instant::now();
                if sleep(&has_news) || begin.elapsed() >= LONGEST {
                    // The publisher does not wait for this thread any more.
                    seen.store(u32::MAX, Ordering::Release);
                    return false;
                }
            }
            seen.store(round, Ordering::Release);
        }
        true
    }

    /// Publishes the numbers up to `rounds`, each after all threads of `seen` have seen the one before, and rings.
    pub fn publish(news: &StdU32, seen: &[StdU32], rounds: u32, ring: impl Fn(u32)) {
        for round in 1..=rounds {
            std::thread::yield_now();
            news.store(round, Ordering::Release);
            ring(round);
            while seen.iter().any(|seen| seen.load(Ordering::Acquire) < round) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn news_before_the_sleep_keeps_the_owner_awake() {
        let doorbell = Doorbell::new();
        let mut asked = false;
        let timed_out = doorbell.sleep(NAP, || {
            asked = true;
            true
        });
        assert!(asked && !timed_out);
        assert_eq!(doorbell.wishes(), 0);
    }

    #[test]
    fn a_sleep_that_no_ring_ends_reports_its_limit() {
        let doorbell = Doorbell::new();
        assert!(doorbell.sleep(Duration::from_millis(1), || false));
        let rung = || {
            doorbell.ring();
            false
        };
        assert!(!doorbell.sleep(LONGEST, rung));
        assert_eq!(doorbell.wishes() & !FENCE, 0);
    }

    /// The flag is cleared, as by a ring, but the owner is not woken.
    #[test]
    fn a_sleep_whose_wakeup_is_lost_reports_its_limit() {
        /// If the flag is cleared before the owner waits, the owner does not sleep.
        const ATTEMPTS: u32 = 100;
        let doorbell = Doorbell::new();
        let lose_wakeup = |_| {
            let has_slept = AtomicBool::new(false);
            std::thread::scope(|s| {
                let clear = s.spawn(|| {
                    while doorbell.wishes() & SLEEPING == 0 && !has_slept.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    std::thread::sleep(Duration::from_millis(1));
                    doorbell.word.fetch_and(!SLEEPING, Ordering::Relaxed) & SLEEPING != 0
                });
                let timed_out = doorbell.sleep(Duration::from_millis(20), || false);
                has_slept.store(true, Ordering::Relaxed);
                clear.join().unwrap() && timed_out
            })
        };
        assert!((0..ATTEMPTS).any(lose_wakeup));
    }

    #[test]
    fn a_ring_ends_the_sleep_and_keeps_the_owners_other_wishes() {
        const ROUNDS: u32 = 100;
        let doorbell = Doorbell::new();
        doorbell.ask_for_marks();
        let (news, seen) = (StdU32::new(0), [StdU32::new(0)]);
        let all_seen = std::thread::scope(|s| {
            let owner = s.spawn(|| {
                let sleep = |has_news: &dyn Fn() -> bool| doorbell.sleep(LONGEST, has_news);
                see_all((&news, &seen[0]), ROUNDS, sleep)
            });
            publish(&news, &seen, ROUNDS, |_| doorbell.ring());
            owner.join().unwrap()
        });
        assert!(all_seen, "a ring has not ended a sleep");
        assert_eq!(doorbell.wishes() & !FENCE, MARK);
    }
}
