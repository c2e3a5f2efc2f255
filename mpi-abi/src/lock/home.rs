//! The home cores of a rank: its share of the node's cores, on which its threads gather in a crowd.
//!
//! If more threads than cores wait ([`crowd`](super::crowd)), the kernel balances the threads of all ranks over all cores.
//! Then threads of one rank contend for the lock from several cores,
//! and the lock and the engine's cache lines change cores in the middle of a burst of messages.
//! On its home cores a rank has one thread at a time for each of its cores.
//! So a thread in a crowd that is about to yield on another rank's core migrates to a home core.
//! Its affinity mask is unchanged afterwards ([`mpi_base::migrate`]), so the kernel may move it again.
//! If another process computes on a home core, threads stay where the kernel puts them for some time ([`Home::meets_load`]).
//! If the kernel moves the thread back, the pause before its next migration doubles, up to a second ([`Moves`]).

use super::GlobalLock;
use mpi_base::clock::now_ns;
use mpi_base::cpu::{Cores, processors};
use mpi_base::migrate::{self, Moves};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The time in ns without migrations after a yield to a process that computes.
/// The time doubles, up to [`LONGEST_PAUSE`], if another such yield soon follows.
const PAUSE: u64 = 20_000_000;
const LONGEST_PAUSE: u64 = 1_000_000_000;

thread_local! {
    static MOVES: Cell<Moves> = const { Cell::new(Moves::NEW) };
}

/// The home cores of this process; empty if its threads stay where the kernel puts them.
#[derive(Debug)]
pub(super) struct Home {
    cores: OnceLock<Vec<usize>>,
    /// The time in ns before which no thread migrates, because a process computes on a home core.
    /// Only the owner of the lock writes this field and `pause`.
    not_before: AtomicU64,
    pause: AtomicU64,
}

impl Home {
    pub(super) const fn new() -> Self {
        Home {
            cores: OnceLock::new(),
            not_before: AtomicU64::new(0),
            pause: AtomicU64::new(PAUSE),
        }
    }

    /// Sets the home cores; later calls have no effect.
    pub(super) fn set(&self, cores: Vec<usize>) {
        let _ = self.cores.set(cores);
    }

    /// Migrates the calling thread to a home core, if it runs on another core and has not migrated recently.
    #[inline]
    pub(super) fn enter(&self) {
        if let Some(home) = self.cores.get()
            && !home.is_empty()
            && !home.contains(&rustix::thread::sched_getcpu())
        {
            self.migrate_to(home);
        }
    }

    #[cold]
    fn migrate_to(&self, home: &[usize]) {
        let (mut moves, now) = (MOVES.get(), Instant::now());
        if moves.may(now) && self.may_enter(now_ns()) {
            moves.count(now);
            MOVES.set(moves);
            migrate::to_one_of(home);
        }
    }

    /// Returns true if no thread has recently yielded to a process that computes.
    pub(super) fn may_enter(&self, now_ns: u64) -> bool {
        now_ns >= self.not_before.load(Relaxed)
    }

    /// Prevents migrations for some time: another process has computed on this core during a yield.
    /// The caller owns the lock.
    #[cold]
    pub(super) fn meets_load(&self, now_ns: u64) {
        let until = self.not_before.load(Relaxed);
        if now_ns < until {
            return;
        }
        let pause = match now_ns - until < LONGEST_PAUSE {
            true => (2 * self.pause.load(Relaxed)).min(LONGEST_PAUSE),
            false => PAUSE,
        };
        self.pause.store(pause, Relaxed);
        self.not_before.store(now_ns + pause, Relaxed);
    }
}

/// Sets the cores on which this process's threads gather in a crowd; later calls have no effect.
pub fn set_home(lock: &GlobalLock, cores: Vec<usize>) {
    lock.home.set(cores);
}

/// Returns the home cores of the rank with number `rank` among the ranks of its node, of which `ranks` share its cores.
/// Returns none if the rank has all its cores for itself, if the ranks are oversubscribed,
/// or if a quota leaves cores idle, on which a gathered thread could run.
pub fn home_of(cores: Cores, ranks: usize, rank: usize) -> Vec<usize> {
    match cores.limited_by_quota() {
        true => Vec::new(),
        false => share(&processors().unwrap_or_default(), ranks, rank).to_vec(),
    }
}

/// Returns the part of `cores` that belongs to one of the ranks that share them.
fn share(cores: &[usize], ranks: usize, rank: usize) -> &[usize] {
    if ranks < 2 {
        return &[];
    }
    let each = cores.len() / ranks;
    let begin = rank % ranks * each;
    cores.get(begin..begin + each).unwrap_or_default()
}

#[cfg(test)]
impl Home {
    /// Lets the calling thread migrate at once, also after a yield to a process that computes.
    pub(super) fn forget_pauses(&self) {
        MOVES.set(Moves::NEW);
        self.not_before.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ranks_that_share_cores_have_disjoint_homes_of_one_size() {
        let cores = [1, 3, 5, 7, 8];
        let homes = [0, 1, 2, 3].map(|rank| share(&cores, 2, rank));
        assert_eq!(homes, [&[1, 3][..], &[5, 7], &[1, 3], &[5, 7]]);
        let last = share(&cores, 5, 4);
        assert_eq!(last, [8]);
    }

    #[test]
    fn a_rank_with_its_own_cores_and_an_oversubscribed_one_have_no_home() {
        assert!(share(&[0, 1], 1, 0).is_empty());
        assert!(share(&[0, 1], 3, 2).is_empty());
        assert!(share(&[], 2, 1).is_empty());
    }

    #[test]
    fn under_a_quota_a_rank_has_no_home() {
        let cores = |usable| Cores {
            usable,
            affinity: Some(4),
            sharers: None,
        };
        assert!(home_of(cores(2), 2, 0).is_empty());
        let all = processors().unwrap();
        assert_eq!(
            home_of(cores(4), all.len().max(2), 0).len(),
            all.len() / all.len().max(2)
        );
    }

    /// Calls `enter` until it has had an effect. The kernel may move the thread again at once, but not every time.
    fn enters(home: &Home, core: usize) -> bool {
        (0..100).any(|_| {
            home.forget_pauses();
            home.enter();
            rustix::thread::sched_getcpu() == core
        })
    }

    #[test]
    fn a_thread_enters_its_home_and_keeps_its_mask() {
        let cores = processors().unwrap();
        for core in &cores {
            let home = Home::new();
            home.set(vec![*core]);
            assert!(enters(&home, *core), "never on {core}");
        }
        assert_eq!(processors().unwrap(), cores);
    }

    #[test]
    fn a_thread_migrates_at_most_once_in_a_pause() {
        let cores = processors().unwrap();
        let absent = Home::new();
        // No core has this number, so the thread is never at home and each migration fails.
        absent.set(vec![rustix::thread::CpuSet::MAX_CPU + 1]);
        let (begin, before) = (Instant::now(), MOVES.get());
        assert!(before.may(begin));
        absent.enter();
        let after = MOVES.get();
        assert!(!after.may(begin), "a pause has begun");
        // In a pause that lasts for an hour, the next call changes nothing.
        let mut long = Moves::NEW;
        long.count(Instant::now() + Duration::from_secs(3_600));
        MOVES.set(long);
        absent.enter();
        assert_eq!(MOVES.get(), long);
        assert_eq!(processors().unwrap(), cores);
        let none = Home::new();
        none.enter();
        none.set(Vec::new());
        none.enter();
    }

    #[test]
    fn after_yields_to_a_process_that_computes_threads_stay_for_longer_and_longer() {
        let (home, start) = (Home::new(), 5_000_000_000);
        assert!(home.may_enter(start));
        let mut now = start;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            home.meets_load(now);
            // A second thread that yields in this time does not lengthen it.
            home.meets_load(now + 1);
            let until = home.not_before.load(Relaxed);
            assert!(!home.may_enter(until - 1) && home.may_enter(until));
            pauses.push((until - now) / 1_000_000);
            now = until;
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
        now += LONGEST_PAUSE;
        home.meets_load(now);
        assert!(home.may_enter(now + PAUSE));
    }

    #[test]
    fn a_thread_does_not_enter_a_home_beside_load() {
        let cores = processors().unwrap();
        let home = Home::new();
        home.set(vec![rustix::thread::CpuSet::MAX_CPU + 1]);
        home.not_before.store(u64::MAX, Relaxed);
        home.enter();
        assert!(MOVES.get().may(Instant::now()), "it has migrated");
        assert_eq!(processors().unwrap(), cores);
    }
}
