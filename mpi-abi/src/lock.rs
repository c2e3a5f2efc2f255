//! The one lock of the library, for `MPI_THREAD_MULTIPLE`.
//!
//! Below that level nobody takes it: asking whether to is one relaxed load.
//! It is re-entrant, because a program's callback may call MPI again, and a thread that waits in the engine lets the others in
//! between two looks ([`Giant::relax`]).
//!
//! Protocol: `owner` and `depth` are changed only under `inside`; `owner` is a number that no two threads share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A re-entrant lock with fair hand-over.
#[derive(Debug)]
pub struct Giant {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside {
    /// The thread that holds the lock, 0 for none.
    owner: usize,
    depth: u32,
    waiting: u32,
    /// Counts acquisitions, so that a thread that stepped aside knows that another had its turn.
    turns: u64,
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
            }),
            changed: Condvar::new(),
        }
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
            if inside.waiting > 0 {
                self.changed.notify_all();
            }
        }
    }

    /// Lets one other thread have its turn, if any is waiting; returns whether one was.
    ///
    /// Only the owner calls it, and only where nothing is borrowed from the state.
    pub fn relax(&self) -> bool {
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
        while inside.owner != 0 {
            inside = self.wait(inside);
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
