//! The one lock of the library, for `MPI_THREAD_MULTIPLE`.
//!
//! Below that level nobody takes it: asking whether to is one relaxed load.
//! It is re-entrant, because a program's callback may call MPI again, and a thread that waits in the engine lets the others in
//! between two looks ([`Giant::relax`]).
//!
//! Of several threads that wait in the engine one looks, the leader, and it alone may sleep while it holds the lock;
//! the others follow it without the lock until it has news or has gone ([`Giant::follow`]).
//! A thread that comes and finds the lock taken says so and rings the process's bell, so that a sleeping leader makes way.
//!
//! Protocol: everything in `Inside`, the leader and the followers are changed only under `inside`; `owner` and `leader` are numbers that no two threads share.
//! `wanting` is counted up before the bell is rung and read by the leader between saying that it sleeps and sleeping.

use mpi_base::inbox::Inbox;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a follower waits for may come without a message, through shared memory alone; so it looks for itself now and then.
const OWN_LOOK: Duration = Duration::from_millis(1);

/// A re-entrant lock with fair hand-over.
#[derive(Debug)]
pub struct Giant {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// Tells followers of news.
    news: Condvar,
    /// How many threads wait for the lock.
    wanting: AtomicU32,
    /// The thread that looks for all that wait in the engine, 0 for none; and how many follow it.
    /// The owner may read both without `inside`.
    leader: AtomicUsize,
    followers: AtomicU32,
    /// Whose bell wakes the owner; null while there is none.
    inbox: AtomicPtr<Inbox>,
}

#[derive(Debug)]
struct Inside {
    /// The thread that holds the lock, 0 for none.
    owner: usize,
    depth: u32,
    waiting: u32,
    /// Counts acquisitions, so that a thread that stepped aside knows that another had its turn.
    turns: u64,
    /// Counts what may be news to followers.
    bulletins: u64,
}

thread_local! {
    /// Its address tells threads apart.
    static MARK: u8 = const { 0 };
}

/// A number that no other thread of the process has.
pub fn me() -> usize {
    MARK.with(|m| std::ptr::from_ref(m).addr())
}

impl Giant {
    pub const fn new() -> Self {
        Giant {
            inside: Mutex::new(Inside {
                owner: 0,
                depth: 0,
                waiting: 0,
                turns: 0,
                bulletins: 0,
            }),
            changed: Condvar::new(),
            news: Condvar::new(),
            wanting: AtomicU32::new(0),
            leader: AtomicUsize::new(0),
            followers: AtomicU32::new(0),
            inbox: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// From now on whoever finds the lock taken rings this bell.
    pub fn ring_at(&self, inbox: &'static Inbox) {
        let inbox = std::ptr::from_ref(inbox).cast_mut();
        self.inbox.store(inbox, Ordering::Release);
    }

    /// Whether a thread waits for the lock.
    pub fn is_wanted(&self) -> bool {
        self.wanting.load(Ordering::SeqCst) > 0
    }

    /// Takes the lock, or takes it once more.
    pub fn acquire(&self) {
        let mut inside = self.lock();
        if inside.owner == me() {
            inside.depth += 1;
            return;
        }
        inside = self.take(inside);
        inside.depth = 1;
    }

    /// Gives the lock back, or gives one taking back.
    pub fn release(&self) {
        let mut inside = self.lock();
        inside.depth -= 1;
        if inside.depth == 0 {
            inside.owner = 0;
            if self.leader.load(Relaxed) == me() {
                self.leader.store(0, Relaxed);
            }
            if self.followers.load(Relaxed) > 0 {
                // Whatever this call did may be what one of them waits for, and one of them may have to lead.
                self.publish(&mut inside);
            }
            if inside.waiting > 0 {
                self.changed.notify_all();
            }
        }
    }

    fn publish(&self, inside: &mut Inside) {
        inside.bulletins = inside.bulletins.wrapping_add(1);
        self.news.notify_all();
    }

    /// Between two looks of a wait in the engine: makes the caller the leader and answers no, or, if there is one, waits until that one
    /// has news or has gone, and answers yes.  `news` says that the caller's last look may have found something for others.
    ///
    /// Only the owner calls it, and only where nothing is borrowed from the state.
    pub fn follow(&self, news: bool) -> bool {
        let quiet = !news || self.followers.load(Relaxed) == 0;
        if quiet && self.leader.load(Relaxed) == me() {
            return false;
        }
        let mut inside = self.lock();
        if inside.owner != me() {
            return false;
        }
        let leader = self.leader.load(Relaxed);
        if leader == 0 || leader == me() {
            self.leader.store(me(), Relaxed);
            if !quiet {
                self.publish(&mut inside);
            }
            return false;
        }
        let (depth, seen) = (inside.depth, inside.bulletins);
        inside.owner = 0;
        self.followers.fetch_add(1, Relaxed);
        self.changed.notify_all();
        while inside.bulletins == seen && self.leader.load(Relaxed) != 0 {
            let (again, wait) = self
                .news
                .wait_timeout(inside, OWN_LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            inside = again;
            if wait.timed_out() {
                break;
            }
        }
        self.followers.fetch_sub(1, Relaxed);
        inside = self.take(inside);
        inside.depth = depth;
        true
    }

    /// Lets one other thread have its turn, if any is waiting; returns whether one was.
    ///
    /// Only the owner calls it, and only where nothing is borrowed from the state.
    pub fn relax(&self) -> bool {
        if !self.is_wanted() {
            return false;
        }
        let mut inside = self.lock();
        if inside.waiting == 0 || inside.owner != me() {
            return false;
        }
        let (depth, turn) = (inside.depth, inside.turns);
        inside.owner = 0;
        self.changed.notify_all();
        while inside.turns == turn {
            inside = self.wait(inside);
        }
        inside = self.take(inside);
        inside.depth = depth;
        true
    }

    fn take<'a>(&self, mut inside: MutexGuard<'a, Inside>) -> MutexGuard<'a, Inside> {
        inside.waiting += 1;
        if inside.owner != 0 {
            self.wanting.fetch_add(1, Ordering::SeqCst);
            // SAFETY: null, or an inbox that `ring_at` was given for the rest of the process.
            if let Some(inbox) = unsafe { self.inbox.load(Ordering::Acquire).as_ref() } {
                inbox.bell().ring();
            }
            while inside.owner != 0 {
                inside = self.wait(inside);
            }
            self.wanting.fetch_sub(1, Ordering::SeqCst);
        }
        inside.waiting -= 1;
        inside.owner = me();
        inside.turns = inside.turns.wrapping_add(1);
        // Whoever stepped aside waits for this turn to begin.
        self.changed.notify_all();
        inside
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inside: MutexGuard<'a, Inside>) -> MutexGuard<'a, Inside> {
        self.changed
            .wait(inside)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Giant {
    fn default() -> Self {
        Giant::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    #[test]
    fn a_thread_may_take_it_again_and_gives_it_back_as_often() {
        let giant = Giant::new();
        giant.acquire();
        giant.acquire();
        giant.release();
        assert_ne!(giant.lock().owner, 0);
        giant.release();
        assert_eq!(giant.lock().owner, 0);
    }

    #[test]
    fn only_one_thread_is_inside() {
        let (giant, inside) = (Arc::new(Giant::new()), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (giant, inside) = (giant.clone(), inside.clone());
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        giant.acquire();
                        assert_eq!(inside.fetch_add(1, Relaxed), 0);
                        inside.fetch_sub(1, Relaxed);
                        giant.relax();
                        giant.release();
                    }
                })
            })
            .collect();
        for thread in threads {
            assert!(thread.join().is_ok());
        }
    }

    #[test]
    fn followers_wait_outside_until_the_leader_has_news_or_goes() {
        let (giant, done) = (Arc::new(Giant::new()), Arc::new(AtomicBool::new(false)));
        giant.acquire();
        assert!(!giant.follow(false), "the first to wait leads");
        let other = {
            let (giant, done) = (giant.clone(), done.clone());
            std::thread::spawn(move || {
                giant.acquire();
                let mut followed = 0;
                while !done.load(Relaxed) {
                    followed += u32::from(giant.follow(false));
                    giant.relax();
                }
                giant.release();
                followed
            })
        };
        while giant.followers.load(Relaxed) == 0 {
            giant.relax();
            std::thread::yield_now();
        }
        done.store(true, Relaxed);
        assert!(!giant.follow(true), "the leader stays the leader");
        giant.release();
        assert!(other.join().is_ok_and(|followed| followed > 0));
        assert_eq!(
            (giant.leader.load(Relaxed), giant.followers.load(Relaxed)),
            (0, 0)
        );
    }

    #[test]
    fn a_waiting_thread_lets_the_one_in_that_it_waits_for() {
        let (giant, done) = (Arc::new(Giant::new()), Arc::new(AtomicBool::new(false)));
        giant.acquire();
        giant.acquire();
        let other = {
            let (giant, done) = (giant.clone(), done.clone());
            std::thread::spawn(move || {
                giant.acquire();
                done.store(true, Relaxed);
                giant.release();
            })
        };
        while !done.load(Relaxed) {
            if !giant.relax() {
                std::thread::yield_now();
            }
        }
        assert_eq!(giant.lock().depth, 2);
        giant.release();
        giant.release();
        assert!(other.join().is_ok());
    }
}
