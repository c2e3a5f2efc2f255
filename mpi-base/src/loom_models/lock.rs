//! Models of a window's lock: an exclusive holder is alone, and each admitted rank is woken.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering, fence};
use crate::doorbell::{Doorbell, NAP};
use crate::window::{Announced, Line, Lock, Mode};

/// Acquires a window's lock as a member does, but polls until it is admitted instead of sleeping.
fn enter(lock: &Lock, mode: Mode) {
    let ticket = lock.draw(mode);
    while !lock.admits(ticket) {
        thread::yield_now();
    }
    lock.enter(ticket, 0);
}

/// SYNC POINT window.ticket: each holder sees the values that the previous holder wrote,
/// and an exclusive holder is the only holder.
#[test]
fn an_exclusive_lock_excludes_all_others() {
    for mode in [Mode::Exclusive, Mode::Shared] {
        check(move || {
            let words = Arc::new((Lock::new(), AtomicU64::new(0)));
            let other = {
                let words = words.clone();
                thread::spawn(move || {
                    let (lock, value) = &*words;
                    enter(lock, mode);
                    // The accesses are relaxed, so only the lock can order them.
                    let before = value.load(Ordering::Relaxed);
                    thread::yield_now();
                    if mode == Mode::Exclusive {
                        value.store(before + 1, Ordering::Relaxed);
                    } else {
                        assert_eq!(value.load(Ordering::Relaxed), before);
                    }
                    lock.leave(mode);
                })
            };
            let (lock, value) = &*words;
            enter(lock, Mode::Exclusive);
            let before = value.load(Ordering::Relaxed);
            value.store(before + 1, Ordering::Relaxed);
            lock.leave(Mode::Exclusive);
            other.join().unwrap();
            let added = if mode == Mode::Exclusive { 2 } else { 1 };
            assert_eq!(value.load(Ordering::Relaxed), added);
        });
    }
}

/// SYNC POINT window.ticket: a rank that admits other ranks wakes each of them that sleeps.
#[test]
fn no_waiter_for_a_lock_is_left_asleep() {
    check(|| {
        let lock = Arc::new(Lock::new());
        let doorbell = Arc::new(Doorbell::new());
        let slot = Arc::new(AtomicU64::new(0));
        enter(&lock, Mode::Exclusive);
        let waiter = {
            let (lock, doorbell, slot) = (lock.clone(), doorbell.clone(), slot.clone());
            thread::spawn(move || {
                let ticket = lock.draw(Mode::Exclusive);
                slot.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                while !lock.admits(ticket) {
                    doorbell.sleep(NAP, || lock.admits(ticket));
                }
            })
        };
        if lock.leave(Mode::Exclusive) {
            fence(Ordering::SeqCst);
            if slot.load(Ordering::Relaxed) != 0 {
                doorbell.ring();
            }
        }
        waiter.join().unwrap();
    });
}

/// SYNC POINT window.all: of a rank that locks all and a rank that locks exclusively, at least one
/// sees the flag or announcement of the other.
#[test]
fn a_lock_of_all_and_an_exclusive_lock_exclude_each_other() {
    check(|| {
        let words = Arc::new((Line::new(), Announced::new(), AtomicU64::new(0)));
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                let (line, announced, value) = &*words;
                if line.hold_all(announced) {
                    let before = value.load(Ordering::Relaxed);
                    value.store(before + 1, Ordering::Relaxed);
                    line.release_all(announced);
                    return 1;
                }
                0
            })
        };
        let (line, announced, value) = &*words;
        announced.announce();
        while line.holds_all() {
            thread::yield_now();
        }
        let before = value.load(Ordering::Relaxed);
        value.store(before + 1, Ordering::Relaxed);
        announced.withdraw();
        let added = other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 1 + added);
    });
}
