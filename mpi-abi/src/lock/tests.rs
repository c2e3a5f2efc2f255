//! Tests of the lock.

mod panics;

use super::*;
use mpi_core::engine::{Polled, ThreadStep};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Returns a lock that exists until the process ends, as the library's own does.
fn new_lock() -> &'static GlobalLock {
    Box::leak(Box::new(GlobalLock::new(0)))
}

/// The result of a poll by a thread that no longer yields.
fn tired(busy: bool) -> Polled<'static> {
    Polled {
        busy,
        slept: false,
        may_yield: false,
        awaits: None,
    }
}

/// The result of a poll by a thread that may yield.
fn yielding(busy: bool) -> Polled<'static> {
    Polled {
        may_yield: true,
        ..tired(busy)
    }
}

/// Hands the lock over until another thread has acquired and released it.
fn start_waiter(lock: &'static GlobalLock) -> std::thread::JoinHandle<()> {
    let done = Arc::new(AtomicBool::new(false));
    let other = {
        let done = done.clone();
        std::thread::spawn(move || {
            lock.acquire();
            done.store(true, Relaxed);
            lock.release();
        })
    };
    while !done.load(Relaxed) {
        if !lock.yield_to_waiters() {
            std::thread::yield_now();
        }
    }
    other
}

#[test]
fn a_thread_may_take_it_again_and_gives_it_back_as_often() {
    let lock = new_lock();
    lock.acquire();
    lock.acquire();
    lock.release();
    assert_ne!(lock.owner.load(Relaxed), 0);
    lock.release();
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn only_one_thread_is_inside() {
    let (lock, inside) = (new_lock(), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let inside = inside.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    lock.acquire();
                    assert_eq!(inside.fetch_add(1, Relaxed), 0);
                    inside.fetch_sub(1, Relaxed);
                    lock.yield_to_waiters();
                    lock.release();
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
}

#[test]
fn threads_that_come_wait_follow_and_go_all_get_their_turns() {
    const THREADS: u32 = 6;
    let (lock, total) = (new_lock(), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let total = total.clone();
            std::thread::spawn(move || {
                for round in 0..300 {
                    lock.acquire();
                    // Not an atomic increment: only the lock makes this load and store correct.
                    let seen = total.load(Relaxed);
                    if (round + thread) % 3 == 0 {
                        lock.acquire();
                        lock.wait_step(tired(round % 2 == 0));
                        lock.release();
                        lock.yield_to_waiters();
                        total.store(total.load(Relaxed) + 1, Relaxed);
                    } else {
                        total.store(seen + 1, Relaxed);
                    }
                    lock.release();
                    if (round + thread) % 7 == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!(total.load(Relaxed), THREADS * 300);
    assert_eq!(lock.owner.load(Relaxed), 0);
    assert_eq!(
        (lock.waiters.load(Relaxed), lock.followers.load(Relaxed)),
        (0, 0)
    );
}

#[test]
fn followers_wait_outside_until_the_leader_has_news_or_goes() {
    let (lock, done) = (new_lock(), Arc::new(AtomicBool::new(false)));
    lock.acquire();
    let first = lock.wait_step(tired(false));
    assert_eq!(first, ThreadStep::Alone, "the first to wait leads");
    let other = {
        let done = done.clone();
        std::thread::spawn(move || {
            lock.acquire();
            let mut followed = 0;
            while !done.load(Relaxed) {
                followed += u32::from(lock.wait_step(tired(false)) == ThreadStep::Followed);
                lock.yield_to_waiters();
            }
            lock.release();
            followed
        })
    };
    while lock.followers.load(Relaxed) == 0 {
        lock.yield_to_waiters();
        std::thread::yield_now();
    }
    done.store(true, Relaxed);
    let again = lock.wait_step(tired(true));
    assert_eq!(again, ThreadStep::Alone, "the leader stays the leader");
    lock.release();
    assert!(other.join().is_ok_and(|followed| followed > 0));
    assert_eq!(
        (lock.leader.load(Relaxed), lock.followers.load(Relaxed)),
        (0, 0)
    );
}

#[test]
fn the_leader_releases_only_followers_whose_conditions_hold() {
    let (lock, done) = (
        new_lock(),
        Arc::new([AtomicBool::new(false), AtomicBool::new(false)]),
    );
    lock.acquire();
    lock.wait_step(tired(false));
    let threads = [0, 1].map(|thread| {
        let done = done.clone();
        std::thread::spawn(move || {
            lock.acquire();
            while !done[thread].load(Relaxed) {
                let mut is_done = || done[thread].load(Relaxed);
                lock.wait_step(Polled {
                    awaits: Some(&mut is_done),
                    ..tired(false)
                });
            }
            lock.release();
        })
    });
    let wait_for_followers = |number| {
        while lock.followers.load(Relaxed) != number {
            lock.yield_to_waiters();
            std::thread::yield_now();
        }
    };
    wait_for_followers(2);
    done[1].store(true, Relaxed);
    lock.wait_step(tired(true));
    lock.wait_step(tired(false));
    let mut followers = following::complete_and_released(lock);
    followers.sort_unstable();
    assert_eq!(followers, [(false, false), (true, true)]);
    wait_for_followers(1);
    done[0].store(true, Relaxed);
    lock.release();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!(lock.followers.load(Relaxed), 0);
}

#[test]
fn more_waiting_threads_than_cores_yield_without_the_lock() {
    let (lock, done) = (new_lock(), Arc::new(AtomicBool::new(false)));
    lock.set_cores(1);
    lock.acquire();
    let alone = lock.wait_step(yielding(false));
    assert_eq!(alone, ThreadStep::Alone, "one thread on one core");
    let other = {
        let done = done.clone();
        std::thread::spawn(move || {
            lock.acquire();
            while !done.load(Relaxed) {
                lock.wait_step(yielding(false));
            }
            lock.release();
        })
    };
    while lock.waiters.load(Relaxed) + lock.yielding.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    // The other thread polls while this thread yields in its step.
    // The other thread sees the stored value only if it gets the lock then.
    done.store(true, Relaxed);
    let with_another = lock.wait_step(yielding(false));
    assert!(matches!(with_another, ThreadStep::Yielded(_)));
    let busy = lock.wait_step(yielding(true));
    assert_eq!(busy, ThreadStep::Alone, "after news a thread goes on");
    lock.release();
    assert!(other.join().is_ok());
    assert_eq!(lock.yielding.load(Relaxed), 0);
}

/// Returns true if sleeps use heavy fences after this number of sleeps in the period.
fn has_heavy_fences_after(lock: &'static GlobalLock, sleeps: u32) -> bool {
    lock.acquire();
    lock.sleeps.store(sleeps, Relaxed);
    let other = {
        std::thread::spawn(move || {
            lock.acquire();
            let asymmetric = lock.asymmetric.load(Relaxed);
            lock.release();
            asymmetric
        })
    };
    while lock.waiters.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    lock.release();
    other.join().expect("the other thread got the lock")
}

#[test]
fn where_threads_sleep_often_releases_have_a_fence_and_sleeps_no_heavy_one() {
    let lock = new_lock();
    lock.acquire();
    lock.reserve();
    lock.release();
    if !lock.has_heavy_fence.load(Relaxed) {
        return;
    }
    // The other thread may sleep once itself.
    assert!(has_heavy_fences_after(lock, RARE_SLEEPS - 8));
    assert!(!has_heavy_fences_after(lock, RARE_SLEEPS + 1));
    // The next period counts the sleeps from 0.
    lock.period_began
        .store(lock.turns.load(Relaxed).wrapping_sub(PERIOD), Relaxed);
    let inside = lock.lock();
    lock.sleeper_fence();
    drop(inside);
    assert_eq!(lock.sleeps.load(Relaxed), 1);
    assert!(has_heavy_fences_after(lock, 1));
}

#[test]
fn a_crowd_is_remembered_for_a_while_after_it_has_dispersed() {
    let lock = new_lock();
    lock.set_cores(1);
    lock.acquire();
    lock.followers.store(1, Relaxed);
    assert!(lock.is_oversubscribed());
    lock.followers.store(0, Relaxed);
    let polls = (0..).find(|_| !lock.is_oversubscribed());
    assert!(polls.is_some_and(|polls| polls > 10), "{polls:?}");
    lock.release();
}

#[test]
fn a_thread_of_a_crowd_yields_on_a_home_core() {
    for core in mpi_base::cpu::processors().unwrap() {
        let lock = new_lock();
        lock.set_cores(1);
        set_home(lock, vec![core]);
        lock.acquire();
        lock.followers.store(1, Relaxed);
        // The pause after a yield to a process that computes is tested elsewhere.
        lock.home.meets_load(mpi_base::clock::now_ns());
        // The kernel may move the thread again at once, but not every time.
        let is_home = (0..100).any(|_| {
            lock.home.forget_pauses();
            let step = lock.wait_step(yielding(false));
            assert!(matches!(step, ThreadStep::Yielded(_)));
            rustix::thread::sched_getcpu() == core
        });
        lock.followers.store(0, Relaxed);
        lock.release();
        assert!(is_home, "never on {core}");
    }
}

/// In this test, a thread computes on the same core as another process would: it keeps the core for most of a time slice.
#[test]
fn a_long_yield_of_a_thread_of_a_crowd_prevents_migrations() {
    const TRIES: u32 = 20_000;
    let mut one = rustix::thread::CpuSet::new();
    one.set(rustix::thread::sched_getcpu());
    // The computing thread inherits the mask.
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    let lock = new_lock();
    lock.set_cores(1);
    let (computes, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_prevented = std::thread::scope(|threads| {
        threads.spawn(|| {
            computes.store(true, Relaxed);
            while !done.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        while !computes.load(Relaxed) {
            std::thread::yield_now();
        }
        lock.acquire();
        lock.followers.store(1, Relaxed);
        // The first yield with a computing thread is mostly long, but not always.
        let is_prevented = (0..TRIES).any(|_| {
            let begin = mpi_base::clock::now_ns();
            // A panic here would leave the other thread running.
            let has_yielded = matches!(lock.wait_step(yielding(false)), ThreadStep::Yielded(_));
            has_yielded && !lock.home.may_enter(begin)
        });
        lock.followers.store(0, Relaxed);
        lock.release();
        done.store(true, Relaxed);
        is_prevented
    });
    assert!(is_prevented, "no yield was long");
}

/// Oversubscribed threads increment a counter alternately; a lost wake-up would stop the test.
#[test]
fn threads_of_a_crowd_that_tire_follow_lead_and_leave_in_any_order() {
    const THREADS: u32 = 5;
    const ROUNDS: u32 = 60;
    let (lock, turn) = (new_lock(), Arc::new(AtomicU32::new(0)));
    lock.set_cores(2);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let turn = turn.clone();
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    lock.acquire();
                    let mut steps = 0;
                    while turn.load(Relaxed) % THREADS != thread {
                        // The threads stop yielding at different times, some from the start.
                        let polled = match steps < (round + thread) % 4 {
                            true => yielding(false),
                            false => tired(false),
                        };
                        lock.wait_step(polled);
                        lock.yield_to_waiters();
                        steps += 1;
                    }
                    turn.store(turn.load(Relaxed) + 1, Relaxed);
                    lock.release();
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok());
    }
    assert_eq!(turn.load(Relaxed), THREADS * ROUNDS);
    let left = [&lock.yielding, &lock.followers, &lock.waiters];
    assert_eq!(left.map(|count| count.load(Relaxed)), [0; 3]);
}

#[test]
fn a_waiting_thread_lets_the_one_in_that_it_waits_for() {
    let lock = new_lock();
    lock.acquire();
    lock.acquire();
    let other = start_waiter(lock);
    assert_eq!(lock.depth.load(Relaxed), 2);
    lock.release();
    lock.release();
    assert!(other.join().is_ok());
}

#[test]
fn the_first_thread_has_it_reserved_until_another_comes() {
    let lock = new_lock();
    lock.acquire();
    lock.reserve();
    if !lock.is_reserved() {
        // The kernel has no `membarrier`, so there is no reservation to test.
        return lock.release();
    }
    lock.acquire();
    lock.release();
    assert!(lock.is_reserved());
    lock.release();
    assert!(lock.is_reserved(), "no second thread has called");
    let other = {
        std::thread::spawn(move || {
            lock.acquire();
            assert_eq!(lock.owner.load(Relaxed), me());
            lock.release();
        })
    };
    assert!(other.join().is_ok());
    assert!(!lock.is_reserved());
    lock.acquire();
    assert_eq!(
        (lock.owner.load(Relaxed), lock.depth.load(Relaxed)),
        (me(), 1)
    );
    lock.release();
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn the_holder_of_the_reservation_hands_over_at_any_nesting_depth() {
    let lock = new_lock();
    lock.acquire();
    lock.reserve();
    lock.acquire();
    let other = start_waiter(lock);
    assert_eq!(
        (lock.owner.load(Relaxed), lock.depth.load(Relaxed)),
        (me(), 2)
    );
    lock.release();
    lock.release();
    assert!(other.join().is_ok());
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn a_reservation_is_lost_at_any_moment_and_never_lets_two_in() {
    for round in 0..2_000 {
        let (lock, inside) = (new_lock(), AtomicU32::new(0));
        let visit = || {
            lock.acquire();
            assert_eq!(inside.fetch_add(1, Relaxed), 0);
            inside.fetch_sub(1, Relaxed);
            lock.release();
        };
        lock.acquire();
        lock.reserve();
        lock.release();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..2).map(|_| scope.spawn(visit)).collect();
            // The delay increases from 0 to far beyond the arrival of the other threads.
            for _ in 0..round {
                visit();
            }
            for other in others {
                assert!(other.join().is_ok());
            }
        });
        // This thread may have reserved the lock again.
        assert!(lock.is_reserved() || lock.owner.load(Relaxed) == 0);
    }
}

/// Returns true if the lock was reserved within the given number of calls of this thread.
fn is_reserved_within(lock: &'static GlobalLock, calls: u32) -> bool {
    (0..calls).any(|_| {
        lock.acquire();
        lock.release();
        lock.is_reserved()
    })
}

/// Returns a lock that was reserved for this thread, unless the kernel has no `membarrier`.
fn new_reserved_lock() -> Option<&'static GlobalLock> {
    let lock = new_lock();
    lock.acquire();
    lock.reserve();
    lock.release();
    lock.is_reserved().then_some(lock)
}

fn in_another_thread<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(f).join().expect("the thread has ended")
}

#[test]
fn a_thread_that_calls_often_has_it_reserved_again() {
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    let visit = move || {
        lock.acquire();
        let is_reserved = lock.is_reserved();
        lock.release();
        is_reserved
    };
    assert!(!in_another_thread(visit), "one call of the other thread");
    assert!(is_reserved_within(lock, 1000), "many calls of this thread");
    assert!(in_another_thread(move || is_reserved_within(lock, 1000)));
    lock.acquire();
    assert!(
        !lock.is_reserved(),
        "the reservation of a thread that has ended is revoked"
    );
    lock.release();
    assert!(!lock.is_of_one_thread());
}

#[test]
fn calls_of_threads_in_turns_do_not_reserve_it() {
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    let turn = Arc::new(AtomicU32::new(0));
    let threads = [0, 1].map(|thread| {
        let turn = turn.clone();
        std::thread::spawn(move || {
            for _ in 0..200 {
                while turn.load(Ordering::Acquire) % 2 != thread {
                    std::thread::yield_now();
                }
                lock.acquire();
                assert!(!lock.is_reserved());
                lock.release();
                turn.fetch_add(1, Ordering::Release);
            }
        })
    });
    for thread in threads {
        assert!(thread.join().is_ok());
    }
}

#[test]
fn a_reservation_that_another_thread_ends_soon_makes_the_next_one_later() {
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    let calls_until_reserved = || {
        let calls = (1..100_000).find(|_| is_reserved_within(lock, 1));
        calls.expect("many calls reserve the lock")
    };
    // The holder is outside and does not call, so the other thread needs a heavy fence.
    let visit = move || {
        lock.acquire();
        lock.release();
    };
    in_another_thread(visit);
    let first = calls_until_reserved();
    // The reservation has just begun in most of these attempts, even on a loaded machine.
    let grows = (0..50).any(|_| {
        in_another_thread(visit);
        calls_until_reserved() > 2 * first
    });
    assert!(grows);
}

#[test]
fn a_waiting_thread_gives_its_reservation_to_threads_that_yield() {
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    lock.acquire();
    assert_eq!(lock.wait_step(yielding(false)), ThreadStep::Alone);
    assert!(lock.is_reserved(), "no other thread waits");
    lock.yielding.store(1, Relaxed);
    lock.wait_step(yielding(false));
    assert!(!lock.is_reserved());
    lock.yielding.store(0, Relaxed);
    lock.release();
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn it_is_not_reserved_while_a_thread_follows() {
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    in_another_thread(move || {
        lock.acquire();
        lock.release();
    });
    lock.followers.store(1, Relaxed);
    assert!(!is_reserved_within(lock, 1000));
    lock.followers.store(0, Relaxed);
    assert!(is_reserved_within(lock, 1000));
}

/// Threads enter in bursts of random length, wait and nest, so reservations begin and end at all moments.
#[test]
fn reservations_that_change_threads_never_let_two_in() {
    const THREADS: u64 = 3;
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    let (inside, total) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (inside, total) = (inside.clone(), total.clone());
            std::thread::spawn(move || {
                let mut random = thread + 1;
                let mut calls = 0;
                for _ in 0..400 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    for call in 0..(random >> 32) % 60 {
                        lock.acquire();
                        assert_eq!(inside.fetch_add(1, Relaxed), 0);
                        // Not an atomic increment: only the lock makes this load and store correct.
                        let seen = total.load(Relaxed);
                        lock.acquire();
                        total.store(seen + 1, Relaxed);
                        lock.release();
                        inside.fetch_sub(1, Relaxed);
                        if call % 16 == 15 {
                            lock.wait_step(yielding(false));
                            lock.yield_to_waiters();
                        }
                        lock.release();
                        calls += 1;
                    }
                    if (random >> 60) == 0 {
                        std::thread::yield_now();
                    }
                }
                calls
            })
        })
        .collect();
    let calls: u32 = threads
        .into_iter()
        .map(|thread| thread.join().expect("the thread has ended"))
        .sum();
    assert_eq!(total.load(Relaxed), calls);
    lock.acquire();
    assert!(!lock.is_reserved(), "all holders have ended");
    lock.release();
    assert_eq!(lock.owner.load(Relaxed), 0);
}

#[test]
fn a_thread_that_ends_inside_keeps_it() {
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    in_another_thread(move || {
        assert!(is_reserved_within(lock, 100_000));
        lock.acquire();
    });
    assert!(lock.is_reserved());
    assert!(
        !in_another_thread(move || reserved::has_record_of_holder(lock)),
        "no other thread gets the record"
    );
}

/// Calls of a destructor that runs after those of Rust's thread-local values.
#[test]
#[allow(unsafe_code)]
#[cfg_attr(miri, ignore = "Miri has no pthread keys")]
fn a_late_destructor_of_a_thread_may_reserve_it() {
    unsafe extern "C" fn call_often(lock: *mut libc::c_void) {
        // SAFETY: the value is the lock of the test, which is never freed.
        let lock: &'static GlobalLock = unsafe { &*lock.cast() };
        is_reserved_within(lock, 1000);
    }
    let Some(lock) = new_reserved_lock() else {
        return;
    };
    let mut key = 0;
    // SAFETY: the variable receives a key.
    let created = unsafe { libc::pthread_key_create(&raw mut key, Some(call_often)) };
    assert_eq!(created, 0);
    for _ in 0..20 {
        in_another_thread(move || {
            let value = std::ptr::from_ref(lock).cast::<libc::c_void>();
            // SAFETY: the key was created above.
            assert_eq!(unsafe { libc::pthread_setspecific(key, value) }, 0);
        });
        assert!(is_reserved_within(lock, 1_000_000));
    }
}

#[test]
fn a_thread_that_leaves_at_any_depth_lets_others_in_and_returns_at_its_depth() {
    for lock in [Some(new_lock()), new_reserved_lock()]
        .into_iter()
        .flatten()
    {
        assert_eq!(leave_entirely(lock), 0, "the caller is outside");
        lock.acquire();
        lock.acquire();
        assert_eq!(leave_entirely(lock), 2);
        in_another_thread(move || {
            lock.acquire();
            lock.release();
        });
        enter_again(lock, 2);
        lock.release();
        let others = in_another_thread(move || try_acquire(lock));
        assert!(!others, "the caller is inside still");
        lock.release();
        assert_eq!(leave_entirely(lock), 0, "the caller has left");
        let others = in_another_thread(move || try_acquire(lock));
        assert!(others, "no thread is inside");
    }
}
