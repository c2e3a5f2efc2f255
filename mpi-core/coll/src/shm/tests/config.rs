//! Tests of one-way data: the sender does not wait for the receiver while there are free cells.

use super::super::layout::{MIDDLING, SHORT, depth};
use super::{OCCUPANCIES, job, job_with};
use crate::comm::Comm;
use crate::datatype::{Named, Scratch};
use crate::op::Predefined;
use crate::suite::barrier::{self, Form};
use crate::testing::eventually;
use crate::{Call, CallId, Table};
use mpi_base::cells::{DEEP_AT_FIRST, GROWTH};
use mpi_base::occupancy::Occupancy;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The sender returns from a call in which data go one way before the receiver has begun the call: no rank waits for a reply.
#[test]
fn a_sender_does_not_wait_for_its_receivers() {
    let reductions = [CallId::Reduce, CallId::Scan, CallId::Exscan];
    let calls = [&[CallId::Gather][..], &reductions].concat();
    // Data of one cell, and data in pieces with one piece per cell;
    // the last case is for oversubscribed ranks, of which the last one to arrive does the work of all.
    let lengths = [
        (Occupancy::Dedicated, 8),
        (Occupancy::Dedicated, 128 << 10),
        (Occupancy::Oversubscribed, 8),
    ];
    for (occupancy, bytes) in lengths {
        for &call in &calls {
            let given = AtomicUsize::new(0);
            job_with(2, occupancy, "pieces").run(|engine| {
                let world = engine.world().expect("a world");
                // Rank 1 receives the data: a scan always sends to the last rank, and in the other calls rank 1 is the root.
                let (taker, root) = (world.rank() == 1, 1);
                if taker {
                    let what = format!("the giver's return from {call} of {bytes} bytes");
                    eventually(engine, &what, || given.load(Ordering::SeqCst) > 0);
                }
                let count = bytes / 8;
                let own = Scratch::new(count, &Named::UINT64.into()).expect("room");
                let to = Scratch::new(2 * count, &Named::UINT64.into()).expect("room");
                let words = |word: u64| word.to_ne_bytes().repeat(count as usize);
                own.all().unpack_at(0, &words(u64::from(world.rank()) + 1));
                let (send, recv) = (Some(own.all().as_send()), to.recv(0..count));
                let at_root = taker.then(|| recv.clone());
                let op = Predefined::Sum.into();
                let made = match call {
                    CallId::Gather => Call::Gather {
                        send,
                        recv: at_root,
                        root,
                    },
                    CallId::Reduce => Call::Reduce {
                        send,
                        recv: at_root,
                        op,
                        root,
                    },
                    CallId::Scan => Call::Scan { send, recv, op },
                    _ => Call::Exscan { send, recv, op },
                };
                world.collectives().carry_out(made).expect("a collective");
                given.fetch_add(1, Ordering::SeqCst);
                if taker {
                    let sum = match call {
                        CallId::Gather | CallId::Exscan => 1,
                        _ => 3,
                    };
                    let first = to.send(0..count).to_vec();
                    assert!(first == words(sum), "{call} of {bytes} bytes");
                }
            });
        }
    }
}

/// Makes a call in which rank 0 sends and rank 1 receives `count` words, which are all equal to `word` on the sender.
fn give(world: &Comm, call: CallId, count: i64, word: u64) -> Vec<u8> {
    let (me, taker) = (world.rank(), world.rank() == 1);
    let words = |word: u64| word.to_ne_bytes().repeat(2 * count as usize);
    let scratch = || Scratch::new(2 * count, &Named::UINT64.into()).expect("room");
    let (own, to) = (scratch(), scratch());
    own.all().unpack_at(0, &words(word * u64::from(!taker)));
    let (send, recv) = (Some(own.send(0..count)), to.recv(0..count));
    let op = Predefined::Sum.into();
    let made = match call {
        CallId::Bcast => Call::Bcast {
            buf: if taker { recv } else { own.recv(0..count) },
            root: 0,
        },
        CallId::Scatter => Call::Scatter {
            send: send.filter(|_| !taker),
            recv: Some(recv),
            root: 0,
        },
        CallId::Gather => Call::Gather {
            send,
            recv: taker.then_some(recv),
            root: 1,
        },
        CallId::Reduce => Call::Reduce {
            send,
            recv: taker.then_some(recv),
            op,
            root: 1,
        },
        CallId::Scan => Call::Scan { send, recv, op },
        _ => Call::Exscan { send, recv, op },
    };
    world
        .collectives()
        .carry_out(made)
        .unwrap_or_else(|e| panic!("{call} at rank {me}: {e}"));
    to.send(0..count).to_vec()
}

/// The sender is ahead of the receiver by as many calls as a ring has cells, each call with other data;
/// the long call between two series uses other cells.
#[test]
fn who_gives_short_data_may_be_far_ahead_of_who_takes_them() {
    let moves = [
        CallId::Bcast,
        CallId::Scatter,
        CallId::Gather,
        CallId::Reduce,
    ];
    let scans = [CallId::Scan, CallId::Exscan];
    for occupancy in OCCUPANCIES {
        for (calls, count, cell) in [
            (&[&moves[..], &scans].concat()[..], 1, SHORT),
            (&moves[..], 64, MIDDLING),
        ] {
            // The rings grow during the first calls; `DEEP_AT_FIRST` is the maximum number of cells of a ring that are usable before it has grown.
            let ahead = depth(cell, 2, occupancy).min(DEEP_AT_FIRST);
            for &call in calls {
                let given = AtomicUsize::new(0);
                job(2, occupancy).run(|engine| {
                    let world = engine.world().expect("a world");
                    let taker = world.rank() == 1;
                    // Two series, so that cells are reused.
                    for round in 0..2 {
                        if taker {
                            let what = format!("the giver's return from {ahead} calls of {call}");
                            let all = (round + 1) * ahead as usize;
                            eventually(engine, &what, || given.load(Ordering::SeqCst) >= all);
                        }
                        for i in 1..=ahead {
                            let got = give(&world, call, count, i);
                            given.fetch_add(usize::from(!taker), Ordering::SeqCst);
                            let word = i.to_ne_bytes().repeat(count as usize);
                            assert!(!taker || got == word, "{call} {i} of {count} words");
                        }
                        let long = give(&world, call, 1000, 7);
                        assert!(!taker || long == 7u64.to_ne_bytes().repeat(1000), "{call}");
                        barrier::pass(&world, Form::Blocking, round as u32);
                    }
                });
            }
        }
    }
}

#[test]
fn who_gives_may_be_as_far_ahead_as_a_ring_is_deep_when_it_has_grown() {
    let deep = depth(SHORT, 2, Occupancy::Oversubscribed);
    let given = AtomicUsize::new(0);
    job(2, Occupancy::Oversubscribed).run(|engine| {
        let world = engine.world().expect("a world");
        let taker = world.rank() == 1;
        // When the sender uses the grown ring for the first time, it can be no further ahead of the receiver than before.
        for i in 1..=deep * GROWTH + deep {
            let got = give(&world, CallId::Bcast, 1, i);
            assert!(!taker || got == i.to_ne_bytes(), "{i}");
        }
        barrier::pass(&world, Form::Blocking, 0);
        if taker {
            let what = format!("the giver's return from {deep} broadcasts");
            eventually(engine, &what, || {
                given.load(Ordering::SeqCst) >= deep as usize
            });
        }
        for i in 1..=deep {
            let got = give(&world, CallId::Bcast, 1, i);
            given.fetch_add(usize::from(!taker), Ordering::SeqCst);
            assert!(!taker || got == i.to_ne_bytes(), "{i}");
        }
    });
}

#[test]
fn the_barriers_algorithm_does_not_change_how_data_travel() {
    for occupancy in OCCUPANCIES {
        let explained = |barrier: &str| {
            let job = job(2, occupancy).with("coll_shm_barrier", barrier);
            let explanations = job.run(|engine| {
                let world = engine.world().expect("a world");
                let table = Table::chosen(&world).expect("a table");
                let lines = table.explain(&world.label());
                let by_shm = lines.iter().find_map(|line| line.split_once(": shm does "));
                let (_, calls) = by_shm.expect("shm serves the world");
                let calls = calls.split("; ").map(str::to_owned);
                calls.partition(|call| call.to_lowercase().contains("barrier"))
            });
            let rank_0: (Vec<String>, Vec<String>) =
                explanations.into_iter().next().expect("rank 0");
            rank_0
        };
        let (counter, flags) = (explained("counter"), explained("flags"));
        assert_ne!(counter.0, flags.0, "{occupancy:?}");
        assert_eq!(counter.1, flags.1, "{occupancy:?}");
    }
}
