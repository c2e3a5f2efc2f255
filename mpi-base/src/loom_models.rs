//! Models of the protocols in this crate, checked over all interleavings and memory orders by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p mpi-base --release loom`.
//! Each model names the SYNC POINT it holds up; weaken one of its orderings and the model fails.
#![allow(unsafe_code)]

use loom::sync::Arc;
use loom::thread;

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::bitmap::{Bitmap, ones};
use crate::cells::{self, Cells, Place, Ring, Spot};
use crate::doorbell::{Doorbell, NAP};
use crate::inbox::Inbox;
use crate::ring::{Body, Consumer, Full, Polled, Producer, RingMemory, Shape};
use crate::split_copy::{Helping, Pieces};
use crate::window::{Announced, Line, Lock, Mode};

/// Runs a model with a bound on preemptions, which keeps it at seconds and finds nearly everything
/// (M. Musuvathi, S. Qadeer, "Iterative context bounding for systematic testing", 2007).
pub(crate) fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn ring(cells: u32, bytes: u32) -> (Producer, Consumer) {
    let memory = RingMemory::on_heap(Shape::new(cells, bytes).unwrap());
    // SAFETY: the only two ends of this memory.
    unsafe { (Producer::new(memory.clone()), Consumer::new(memory)) }
}

/// SYNC POINT ring.cell, ring.consumed.
#[test]
fn messages_arrive_whole_and_in_order_though_the_ring_wraps() {
    check(|| {
        let (mut tx, mut rx) = ring(4, 0);
        let producer = thread::spawn(move || {
            for n in 1..=6u64 {
                while tx.push_word(n as u8, [n, n], n) == Err(Full) {
                    thread::yield_now();
                }
            }
        });
        for n in 1..=6u64 {
            loop {
                let seen = rx.pop(|m| match m.body {
                    Body::Here(bytes) => (m.am, m.header, bytes.to_vec()),
                    Body::Elsewhere { .. } => unreachable!("only words are sent"),
                });
                if seen == Polled::Empty {
                    rx.give_back();
                    thread::yield_now();
                } else {
                    assert_eq!(
                        seen,
                        Polled::Got((n as u8, [n, n], n.to_ne_bytes().to_vec()))
                    );
                    break;
                }
            }
        }
        producer.join().unwrap();
    });
}

/// Sends `count` messages of `len` bytes through a ring of four cells and `bytes` bytes; each is the number of its message throughout.
fn each_arrives_whole(bytes: u32, len: usize, count: u8) {
    check(move || {
        let (mut tx, mut rx) = ring(4, bytes);
        let producer = thread::spawn(move || {
            for n in 1..=count {
                while tx.push(n, [0; 2], len, |to| to.fill(n)) == Err(Full) {
                    thread::yield_now();
                }
            }
        });
        for n in 1..=count {
            while rx.pop(|m| match m.body {
                Body::Here(bytes) => assert!(bytes.len() == len && bytes.iter().all(|&b| b == n)),
                Body::Elsewhere { .. } => unreachable!("only bytes are sent"),
            }) == Polled::Empty
            {
                rx.give_back();
                thread::yield_now();
            }
        }
        producer.join().unwrap();
    });
}

/// SYNC POINT ring.cell, ring.consumed for the byte ring, whose lines loom watches for concurrent use.
#[test]
fn bytes_are_never_written_while_they_are_read() {
    each_arrives_whole(1024, 256, 5);
}

/// SYNC POINT ring.cell, ring.consumed for a message that goes on in the next cell: the first cell speaks for both.
#[test]
fn a_spread_message_is_seen_whole_or_not_at_all() {
    each_arrives_whole(0, 96, 3);
}

/// Another thread brings news and rings; `sleep` is how this one waits for them.
fn news_end_every(sleep: impl Fn(&Doorbell, &AtomicU64) + Send + Sync + 'static) {
    check(move || {
        let shared = Arc::new((Doorbell::new(), AtomicU64::new(0)));
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (bell, news) = &*shared;
                news.store(1, Ordering::Release);
                bell.ring();
            })
        };
        let (bell, news) = &*shared;
        while news.load(Ordering::Acquire) == 0 {
            sleep(bell, news);
        }
        sender.join().unwrap();
    });
}

/// SYNC POINT bell.sleep: under loom a sleep has no limit, so a lost wake-up never ends.
#[test]
fn no_wake_up_is_lost() {
    news_end_every(|bell, news| bell.sleep(NAP, || news.load(Ordering::Acquire) != 0));
}

/// SYNC POINT bell.sleep and bell.ear: a sleep in `poll` ends by a ring that goes to where the owner said.
#[test]
fn no_wake_up_of_a_poller_is_lost() {
    news_end_every(|bell, news| {
        let some = || news.load(Ordering::Acquire) != 0;
        bell.sleep_polling(7, NAP, some, |_| {
            while !bell.take_rung(7) {
                thread::yield_now();
            }
        });
    });
}

/// SYNC POINT bell.sleep with a ring as the news, as the sm transport uses it.
#[test]
fn a_sleeper_wakes_for_a_message() {
    check(|| {
        let inbox = Arc::new(Inbox::new());
        let (mut tx, mut rx) = ring(4, 0);
        let sender = {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                assert_eq!(tx.push_word(1, [0; 2], 5), Ok(()));
                inbox.notify_lightly(0);
            })
        };
        while rx.pop(|_| ()) == Polled::Empty {
            inbox.bell().sleep(NAP, || rx.is_ready());
        }
        sender.join().unwrap();
    });
}

/// SYNC POINT bitmap.word: two messages of one sender, of which the second may find the bit still set.
#[test]
fn a_marked_ring_is_never_forgotten() {
    check(|| {
        let shared = Arc::new((Inbox::new(), AtomicU64::new(0)));
        shared.0.bell().ask_for_marks();
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for n in 1..=2 {
                    shared.1.store(n, Ordering::Release);
                    shared.0.notify(1);
                }
            })
        };
        let (inbox, news) = &*shared;
        let mut seen = 0;
        while seen < 2 {
            // The value is looked at only after a mark, as a ring is.
            for _ in ones(inbox.take_news(0)) {
                seen = news.load(Ordering::Acquire);
            }
            if seen < 2 {
                inbox.bell().sleep(NAP, || inbox.any_news(1));
            }
        }
        sender.join().unwrap();
    });
}

/// The change from looking at all rings to marks: what was sent before the wish was seen is found by one more look.
#[test]
fn nothing_is_lost_when_the_owner_begins_to_ask_for_marks() {
    check(|| {
        let shared = Arc::new((Inbox::new(), AtomicU64::new(0)));
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::Release);
                shared.0.notify(1);
            })
        };
        let (inbox, news) = &*shared;
        inbox.bell().ask_for_marks();
        let mut seen = news.load(Ordering::Acquire);
        while seen == 0 {
            for _ in ones(inbox.take_news(0)) {
                seen = news.load(Ordering::Acquire);
            }
            if seen == 0 {
                inbox.bell().sleep(NAP, || inbox.any_news(1));
            }
        }
        sender.join().unwrap();
    });
}

/// SYNC POINT inbox.calls: an announced sender is found by an owner that looks only at the count.
#[test]
fn an_announced_sender_is_found() {
    check(|| {
        let inbox = Arc::new(Inbox::new());
        let sender = {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                inbox.announce(3);
                inbox.notify(3);
            })
        };
        while inbox.calls() == 0 {
            inbox.bell().sleep(NAP, || inbox.calls() != 0);
        }
        assert_eq!(inbox.senders(0), 1 << 3);
        sender.join().unwrap();
    });
}

/// A sender that found no room is rung when there is, whoever looks first.
#[test]
fn a_starving_sender_is_rung_or_sees_the_room() {
    check(|| {
        let owner = Arc::new(Inbox::new());
        let starving = Arc::new(Inbox::new());
        let (mut tx, mut rx) = ring(4, 0);
        for n in 0..4 {
            assert_eq!(tx.push_word(0, [0; 2], n), Ok(()));
        }
        let sender = {
            let (owner, starving) = (Arc::clone(&owner), Arc::clone(&starving));
            thread::spawn(move || {
                while tx.push_word(0, [0; 2], 4) == Err(Full) {
                    starving.bell().sleep(NAP, || {
                        owner.starve(7);
                        owner.notify(7);
                        tx.has_cell()
                    });
                }
                owner.notify(7);
            })
        };
        let (mut calls, mut got) = (0, 0);
        while got < 5 {
            if rx.pop(|_| ()) == Polled::Got(()) {
                got += 1;
                continue;
            }
            rx.give_back();
            if owner.calls() != calls {
                calls = owner.calls();
                for _ in ones(owner.take_starving(0)) {
                    starving.bell().ring();
                }
                continue;
            }
            owner
                .bell()
                .sleep(NAP, || rx.is_ready() || owner.calls() != calls);
        }
        sender.join().unwrap();
    });
}

/// SYNC POINT bitmap.word on its own: what is marked is taken exactly once.
#[test]
fn every_mark_is_taken_once() {
    check(|| {
        let map = Arc::new(Bitmap::new());
        let markers: Vec<_> = (0..2)
            .map(|i| {
                let map = Arc::clone(&map);
                thread::spawn(move || map.mark(i))
            })
            .collect();
        let early = map.take(0);
        for marker in markers {
            marker.join().unwrap();
        }
        let late = map.take(0);
        assert_eq!((early & late, early | late), (0, 3));
    });
}

/// SYNC POINT pieces.taken, pieces.done.
#[test]
fn every_piece_is_taken_by_one_and_the_owner_can_wait_for_its_helper() {
    check(|| {
        let shared = Arc::new((Pieces::new(), Helping::new(), AtomicU64::new(0)));
        let first = 1;
        shared.0.offer(first, 2);
        let helper = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (pieces, helping, work) = &*shared;
                helping.begin(0, first);
                let mut taken = 0;
                while pieces.take_back(first).is_some() {
                    taken += 1;
                    work.store(taken, Ordering::Relaxed);
                }
                helping.end();
                taken
            })
        };
        let (pieces, helping, work) = &*shared;
        let mut mine = 0;
        while pieces.take_front(first, 2).is_some() {
            mine += 1;
        }
        while helping.is_with(0, first) {
            thread::yield_now();
        }
        // Whatever the helper took it has done by now.
        assert_eq!(mine + work.load(Ordering::Relaxed), 2);
        // A second offer, of which the late helper must take nothing.
        pieces.offer(2, 1);
        assert_eq!(pieces.take_front(2, 1), Some(0));
        assert_eq!(mine + helper.join().unwrap(), 2);
    });
}

/// Two rings, of which one has room for two operations and one for one.
const RINGS: [Ring; 2] = [
    Ring {
        cell: cells::LINE,
        depth: 2,
    },
    Ring {
        cell: cells::LINE,
        depth: 1,
    },
];

/// Cells for two members in memory of this process.
fn cells() -> Arc<Vec<AtomicU64>> {
    let words = cells::words(2, &RINGS);
    Arc::new((0..words).map(|_| AtomicU64::new(0)).collect())
}

fn member(memory: &[AtomicU64], me: u32) -> Cells<&[AtomicU64]> {
    Cells::new(memory, me, 2, &RINGS).unwrap()
}

fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

fn read_word(cells: &Cells<&[AtomicU64]>, place: impl Into<Place> + Copy, spot: Spot<'_>) -> u64 {
    let mut word = [0; 8];
    cells.read(place, spot, 0, &mut word);
    u64::from_ne_bytes(word)
}

/// SYNC POINT cells.shown, cells.finished: each shows a number, the other reads that of the same operation.
#[test]
fn a_cell_holds_its_data_until_all_have_read_them() {
    check(|| {
        let memory = cells();
        let run = |memory: Arc<Vec<AtomicU64>>, me: u32| {
            let cells = member(&memory, me);
            for number in 1..=2u64 {
                let tracks = cells::tracks(2, &RINGS);
                let spot = tracks[1].spot(number);
                wait_until(|| cells.has_room(spot));
                cells.show(me, spot, &(10 * number + u64::from(me)).to_ne_bytes());
                cells.fetch_next(spot);
                let other = 1 - me;
                wait_until(|| cells.seen(other, spot));
                let read = read_word(&cells, other, spot);
                assert_eq!(read, 10 * number + u64::from(other));
                cells.finish(number);
            }
        };
        let theirs = memory.clone();
        let other = thread::spawn(move || run(theirs, 1));
        run(memory, 0);
        other.join().unwrap();
    });
}

/// The same where one gives and goes on, in cells that are used again before others are.
#[test]
fn who_runs_ahead_writes_no_cell_that_somebody_still_reads() {
    check(|| {
        let memory = cells();
        // The third shares its cell with the first, and what lies between is in the other ring.
        let track = |number: u64| cells::tracks(2, &RINGS)[usize::from(number == 2)];
        let giver = {
            let memory = memory.clone();
            thread::spawn(move || {
                let cells = member(&memory, 0);
                for number in 1..=3u64 {
                    let track = track(number);
                    let spot = track.spot(number);
                    wait_until(|| cells.has_room(spot));
                    cells.show(0, spot, &(7 * number).to_ne_bytes());
                    cells.finish(number);
                }
            })
        };
        let cells = member(&memory, 1);
        for number in 1..=3u64 {
            let track = track(number);
            let spot = track.spot(number);
            wait_until(|| cells.seen(0, spot));
            assert_eq!(read_word(&cells, 0, spot), 7 * number);
            cells.finish(number);
        }
        giver.join().unwrap();
    });
}

/// SYNC POINT cells.offered: the second goes on from what the first shows, or the first does it for the second, and not both.
#[test]
fn an_offer_is_taken_up_by_one_of_two() {
    check(|| {
        let memory = cells();
        let add = |cells: &Cells<&[AtomicU64]>, spot: Spot<'_>| {
            let before = read_word(cells, 0, spot);
            let sum = read_word(cells, 1, spot) + before;
            cells.show(1, spot, &sum.to_ne_bytes());
        };
        let first = {
            let memory = memory.clone();
            thread::spawn(move || {
                let cells = member(&memory, 0);
                for number in 1..=2u64 {
                    let tracks = cells::tracks(2, &RINGS);
                    let spot = tracks[1].spot(number);
                    wait_until(|| cells.has_room(spot));
                    cells.show(0, spot, &(10 * number).to_ne_bytes());
                    cells.finish(number);
                    fence(Ordering::SeqCst);
                    if cells.claim(1, spot) {
                        add(&cells, spot);
                    }
                }
            })
        };
        let cells = member(&memory, 1);
        for number in 1..=2u64 {
            let tracks = cells::tracks(2, &RINGS);
            let spot = tracks[1].spot(number);
            wait_until(|| cells.has_room(spot));
            cells.fill(1, spot, 0, &number.to_ne_bytes());
            let goes_on = cells.seen(0, spot) || {
                cells.offer(spot);
                cells.seen(0, spot) && cells.claim(1, spot)
            };
            match goes_on {
                true => add(&cells, spot),
                false => wait_until(|| cells.seen(1, spot)),
            }
            assert_eq!(read_word(&cells, 1, spot), 11 * number);
            cells.finish(number);
        }
        first.join().unwrap();
    });
}

/// SYNC POINT cells.arrivals: the last to come works for both, and the count serves the next operation too.
#[test]
fn the_last_to_arrive_has_what_all_show_and_all_have_its_result() {
    check(|| {
        let memory = cells();
        let run = |memory: Arc<Vec<AtomicU64>>, me: u32| {
            let cells = member(&memory, me);
            for number in 1..=2u64 {
                let tracks = cells::tracks(2, &RINGS);
                let spot = tracks[0].spot(number).with_result(&tracks[1]);
                wait_until(|| cells.has_room(spot));
                cells.show(me, spot, &(number << me).to_ne_bytes());
                if cells.arrive(spot) {
                    cells.forget_arrivals(spot);
                    let sum = read_word(&cells, 0, spot) + read_word(&cells, 1, spot);
                    cells.show(Place::Result, spot, &sum.to_ne_bytes());
                } else {
                    wait_until(|| cells.seen(Place::Result, spot));
                }
                assert_eq!(read_word(&cells, Place::Result, spot), 3 * number);
                cells.finish(number);
            }
        };
        let theirs = memory.clone();
        let other = thread::spawn(move || run(theirs, 1));
        run(memory, 0);
        other.join().unwrap();
    });
}

/// Takes a window's lock as a member does, without a bell: it looks until it is let in.
fn enter(lock: &Lock, mode: Mode) {
    let ticket = lock.draw(mode);
    while !lock.admits(ticket) {
        thread::yield_now();
    }
    lock.enter(ticket, 0);
}

/// SYNC POINT window.ticket: what a holder wrote is seen by the next one, and no exclusive holder meets another holder.
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
                    // Relaxed, so that only the lock orders it.
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

/// SYNC POINT window.ticket: a rank that lets others in rings each one that has gone to sleep before.
#[test]
fn nobody_who_waits_for_a_lock_is_left_asleep() {
    check(|| {
        let lock = Arc::new(Lock::new());
        let bell = Arc::new(Doorbell::new());
        let slot = Arc::new(AtomicU64::new(0));
        enter(&lock, Mode::Exclusive);
        let waiter = {
            let (lock, bell, slot) = (lock.clone(), bell.clone(), slot.clone());
            thread::spawn(move || {
                let ticket = lock.draw(Mode::Exclusive);
                slot.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                while !lock.admits(ticket) {
                    bell.sleep(NAP, || lock.admits(ticket));
                }
            })
        };
        if lock.leave(Mode::Exclusive) {
            fence(Ordering::SeqCst);
            if slot.load(Ordering::Relaxed) != 0 {
                bell.ring();
            }
        }
        waiter.join().unwrap();
    });
}

/// SYNC POINT window.all: a flag and an announcement never pass each other unseen.
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
