//! Yields of a waiting thread, which leaves an oversubscribed core if another may be free.
//!
//! In the first milliseconds of a job the kernel often places two ranks on one core;
//! each rank then waits for the other rank's time slices.
//! Binding every rank to a core, as some launchers do, prevents that.
//! But two jobs on one machine are then bound to the same cores,
//! and all threads of a rank are bound to one core.
//! So if several successive yields return late, the thread moves to another core of its
//! mask, and then restores the mask.
//! If a yield returns only after a whole time slice, another process computes on this core.
//! If another core is idle, the kernel itself moves one of the two processes.
//! If no core is idle, the thread would move to another rank's core,
//! and two ranks on one core need a context switch per message.
//! A rank that shares its core with a foreign process runs at full speed half of the time.
//! Therefore such a thread does not move, and does not yield its core for some time.
//!
//! If late yields continue after a move, the pause before the next move doubles.
//! If every core has two such threads, no move helps ([ADR 12]).
//!
//! Each thread has its own state.
//!
//! [ADR 12]: ../../docs/adr/0012-waiters-step-aside-instead-of-being-bound.md

use crate::migrate::{self, Moves};
use crate::yield_now::yield_now;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Minimum duration of a late yield, during which another thread ran:
/// two context switches take 1.2 to 2 us, a yield without them 0.2 to 0.4 us.
const SHARED: Duration = Duration::from_nanos(1500);

/// The number of successive late yields that causes a move; these yields take about 50 us.
const IN_A_ROW: u32 = 8;

/// Minimum duration of a yield to a process that computes, which uses its whole time slice.
const HOGGED: Duration = Duration::from_micros(500);

/// The time for which a thread does not yield again to such a process. The time doubles, up to
/// `LONGEST_KEEP`, while each next yield lasts as long as [`HOGGED`],
/// so that these yields take less than a hundredth of the thread's time.
const KEEP: Duration = Duration::from_millis(20);
const LONGEST_KEEP: Duration = Duration::from_millis(640);

/// Statistics of a thread's yields, which show whether other threads use its core.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    late: u32,
    moves: Moves,
    keep_until: Option<Instant>,
    /// The time for which the thread will not yield after the next yield of at least [`HOGGED`].
    keep: Duration,
}

impl Crowd {
    const NEW: Crowd = Crowd {
        late: 0,
        moves: Moves::NEW,
        keep_until: None,
        keep: KEEP,
    };

    /// Returns true if the thread must not yield at `now`: a recent yield lasted longer than
    /// [`HOGGED`], so a process that computes would probably use another whole time slice.
    fn keeps(&self, now: Instant) -> bool {
        self.keep_until.is_some_and(|time| now < time)
    }

    /// Records a yield that ended at `now` and lasted `took`;
    /// returns true if the thread should move.
    fn count(&mut self, now: Instant, took: Duration) -> bool {
        if took > HOGGED {
            self.keep_until = Some(now + self.keep);
            self.keep = (2 * self.keep).min(LONGEST_KEEP);
            return false;
        }
        self.keep = KEEP;
        if took < SHARED {
            self.late = 0;
            return false;
        }
        self.late += 1;
        if self.late < IN_A_ROW || !self.moves.may(now) {
            return false;
        }
        self.moves.count(now);
        self.late = 0;
        true
    }
}

thread_local! {
    static CROWD: Cell<Crowd> = const { Cell::new(Crowd::NEW) };
}

/// Yields the core at time `now`, and moves the thread after too many successive late yields.
pub fn yield_core(now: Instant) {
    let mut crowd = CROWD.get();
    if crowd.keeps(now) {
        return;
    }
    yield_now();
    let back = Instant::now();
    let moves = crowd.count(back, back - now);
    CROWD.set(crowd);
    if moves {
        migrate::aside();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::LONGEST;

    const LATE: Duration = SHARED;
    const QUICK: Duration = Duration::from_nanos(300);

    /// Simulates a thread that yields every 10 us, with these durations of yields.
    /// Returns the indices of the yields that cause a move.
    fn moves(crowd: &mut Crowd, mut now: Instant, yields: &[(usize, Duration)]) -> Vec<usize> {
        let took = yields.iter().flat_map(|&(n, took)| vec![took; n]);
        let mut moved = Vec::new();
        for (i, took) in took.enumerate() {
            now += Duration::from_micros(10);
            if crowd.count(now, took) {
                moved.push(i + 1);
            }
        }
        moved
    }

    #[test]
    fn only_late_yields_in_a_row_move_a_thread() {
        let now = Instant::now();
        let calm = [(7, LATE), (1, QUICK), (7, LATE), (1, QUICK)];
        assert!(moves(&mut Crowd { ..Crowd::NEW }, now, &calm).is_empty());
        assert_eq!(moves(&mut Crowd { ..Crowd::NEW }, now, &[(9, LATE)]), [8]);
    }

    #[test]
    fn a_thread_that_finds_no_room_tries_more_and_more_rarely() {
        let mut crowd = Crowd::NEW;
        let moved = moves(&mut crowd, Instant::now(), &[(1600, LATE)]);
        // The pauses between moves are 1, 2, 4 and 8 ms; the yields are 10 us apart.
        assert_eq!(moved, [8, 108, 308, 708, 1508]);
        let later = Instant::now() + 3 * LONGEST;
        let again = moves(&mut crowd, later, &[(1, QUICK), (208, LATE)]);
        assert_eq!(again, [9, 109]);
    }

    #[test]
    fn a_thread_beside_a_computing_one_keeps_its_core_for_a_while() {
        let (mut crowd, start) = (Crowd { ..Crowd::NEW }, Instant::now());
        let hogged = [(50, 2 * HOGGED)];
        assert!(moves(&mut crowd, start, &hogged).is_empty());
        let now = start + 50 * Duration::from_micros(10);
        assert!(crowd.keeps(now) && crowd.keeps(now + KEEP / 2));
        assert!(!crowd.keeps(now + LONGEST_KEEP));
        // A single yield that lasts a time slice does not reset the count of late yields.
        let mixed = [(4, LATE), (1, 2 * HOGGED), (4, LATE)];
        assert_eq!(moves(&mut Crowd { ..Crowd::NEW }, start, &mixed), [9]);
        assert!(!Crowd::NEW.keeps(start));
    }

    #[test]
    fn a_thread_beside_lasting_load_tries_a_yield_more_and_more_rarely() {
        let (mut crowd, start) = (Crowd { ..Crowd::NEW }, Instant::now());
        let mut kept = |took| {
            crowd.count(start, took);
            crowd.keep_until.map(|until| until - start)
        };
        let times: Vec<_> = (0..7).map(|_| kept(2 * HOGGED).unwrap()).collect();
        let millis: Vec<_> = times.iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [20, 40, 80, 160, 320, 640, 640]);
        // The process that computes has ended.
        kept(QUICK);
        assert_eq!(kept(2 * HOGGED), Some(KEEP));
    }
}
