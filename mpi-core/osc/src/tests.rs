//! Tests of windows among ranks that are threads: on one and two nodes, with `direct` and `am`.
#![allow(unsafe_code)]

use super::OscError;
use super::{Assert, Flavor, Hints, LockMode, OscClass, Spec, TargetArgs, Win};
use crate::Error;
use crate::coll::Call;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::op::{Op, Predefined};
use mpi_base::state::WindowNeed;
use mpi_coll::testing::Job;
use std::cell::Cell;

fn allocate(engine: &Engine, size: u64) -> Win {
    let spec = Spec {
        flavor: Flavor::Allocate,
        base: std::ptr::null_mut(),
        size,
        unit: 8,
        hints: Hints::default(),
    };
    Win::new(&engine.world().expect("a world"), &spec).expect("a window")
}

fn barrier(engine: &Engine) {
    let world = engine.world().expect("a world");
    world
        .collectives()
        .carry_out(Call::Barrier)
        .expect("a barrier");
}

fn target_args(datatype: &Datatype, rank: u32, disp: i64) -> TargetArgs<'_> {
    TargetArgs {
        rank: rank as i32,
        disp,
        count: 1,
        datatype,
    }
}

/// Returns a send buffer for a number, which must live until the access is complete.
fn send(value: &i64) -> SendBuf {
    // SAFETY: the caller's value is borrowed until the access has read it.
    unsafe { SendBuf::new(std::ptr::from_ref(value).cast(), 1, Named::INT64.into()) }
}

fn recv(value: &mut i64) -> RecvBuf {
    // SAFETY: the pointer is to the caller's value, which the test does not read until the access is complete.
    unsafe { RecvBuf::new(std::ptr::from_mut(value).cast(), 1, Named::INT64.into()) }
}

fn add(win: &Win, rank: u32, disp: i64) -> i64 {
    let (one, mut old) = (1, -1);
    let long = Datatype::from(Named::INT64);
    let sum = Op::Predefined(Predefined::Sum);
    win.accumulates()
        .fetch_and_op(
            &send(&one),
            &mut recv(&mut old),
            target_args(&long, rank, disp),
            &sum,
        )
        .expect("an access");
    win.passive().flush(rank as i32).expect("a flush");
    old
}

/// Runs a test on one node, on two nodes, and on one node with messages only.
fn everywhere(ranks: u32, claim: impl Fn(&Engine) + Sync) {
    Job::of(ranks).run(&claim);
    Job {
        nodes: 2,
        ..Job::of(ranks)
    }
    .run(&claim);
    Job::of(ranks).with("osc", "am").run(&claim);
}

#[test]
fn what_was_admitted_once_is_admitted() {
    everywhere(2, |engine| {
        let win = allocate(engine, 8);
        let target = win.target(0).expect("a rank").expect("a member");
        let looks = Cell::new(0);
        let second_look = || {
            looks.set(looks.get() + 1);
            looks.get() == 2
        };
        win.waits()
            .wait_for(("a lock", WindowNeed::Lock), target, second_look)
            .expect("what it waited for");
        win.free().expect("an end");
    });
}

#[test]
fn every_value_of_a_counter_is_fetched_once() {
    const TIMES: usize = 40;
    everywhere(4, |engine| {
        let win = allocate(engine, 64);
        let world = engine.world().expect("a world");
        win.passive()
            .lock_all(Assert::default())
            .expect("a lock of all");
        let mine: Vec<u64> = (0..TIMES).map(|_| add(&win, 0, 3) as u64).collect();
        win.passive().unlock_all().expect("its end");
        let mut all = engine
            .block_on(world.internal().share(&mine))
            .expect("words");
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..TIMES as u64 * 4), "{all:?}");
        win.free().expect("freeing");
    });
}

#[test]
fn an_exclusive_lock_makes_a_read_and_a_write_one_step() {
    everywhere(3, |engine| {
        let win = allocate(engine, 64);
        let long = Datatype::from(Named::INT64);
        for _ in 0..30 {
            win.passive()
                .lock(LockMode::Exclusive, 1, Assert::default())
                .expect("a lock");
            let mut value = 0;
            let req = win
                .accesses()
                .get(&mut recv(&mut value), target_args(&long, 1, 2));
            win.accumulates().give_up(req.expect("a get"));
            win.passive().flush(1).expect("a flush");
            value += 1;
            win.accesses()
                .put(&send(&value), target_args(&long, 1, 2))
                .expect("a put");
            win.passive().unlock(1).expect("its end");
        }
        barrier(engine);
        win.passive()
            .lock(LockMode::Shared, 1, Assert::default())
            .expect("a lock");
        let mut value = 0;
        let req = win
            .accesses()
            .get(&mut recv(&mut value), target_args(&long, 1, 2));
        win.accumulates().give_up(req.expect("a get"));
        win.passive().unlock(1).expect("its end");
        assert_eq!(value, 90);
        win.free().expect("freeing");
    });
}

/// `MPI_Win_lock_all` excludes exclusive locks, whether it locks all members by one flag
/// or takes a shared lock of each member.
#[test]
fn locks_of_all_and_exclusive_locks_take_turns() {
    everywhere(4, |engine| {
        let win = allocate(engine, 64);
        let long = Datatype::from(Named::INT64);
        let me = engine.me();
        for round in 0..40i64 {
            if (round as u32 + me).is_multiple_of(3) {
                // One exclusive lock covers both puts, so other ranks must read equal numbers.
                win.passive()
                    .lock(LockMode::Exclusive, 0, Assert::default())
                    .expect("a lock");
                let value = round * 10 + i64::from(me);
                win.accesses()
                    .put(&send(&value), target_args(&long, 0, 0))
                    .expect("a put");
                win.passive().flush(0).expect("a flush");
                win.accesses()
                    .put(&send(&value), target_args(&long, 0, 1))
                    .expect("a put");
                win.passive().unlock(0).expect("its end");
            } else {
                win.passive()
                    .lock_all(Assert::default())
                    .expect("a lock of all");
                let mut pair = [0; 2];
                for (disp, value) in (0..).zip(&mut pair) {
                    let req = win
                        .accesses()
                        .get(&mut recv(value), target_args(&long, 0, disp));
                    win.accumulates().give_up(req.expect("a get"));
                }
                win.passive().flush_all().expect("a flush");
                assert_eq!(pair[0], pair[1], "a lock of all sees half of a change");
                win.passive().unlock_all().expect("its end");
            }
        }
        win.free().expect("freeing");
    });
}

#[test]
fn posts_that_run_ahead_are_not_lost() {
    everywhere(4, |engine| {
        let win = allocate(engine, 64);
        let long = Datatype::from(Named::INT64);
        let (me, size) = (engine.me(), engine.size());
        let alone = |rank: u32| win.group().include(&[i64::from(rank)]).expect("a group");
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        for round in 0..25 {
            win.active()
                .post(&alone(before), Assert::default())
                .expect("a post");
            win.active()
                .start(&alone(next), Assert::default())
                .expect("a start");
            win.accesses()
                .put(&send(&round), target_args(&long, next, 0))
                .expect("a put");
            win.active().complete().expect("completing");
            win.active().wait().expect("waiting");
            win.passive()
                .lock(LockMode::Shared, me as i32, Assert::default())
                .expect("a lock");
            let mut value = -1;
            let req = win
                .accesses()
                .get(&mut recv(&mut value), target_args(&long, me, 0));
            win.accumulates().give_up(req.expect("a get"));
            win.passive().unlock(me as i32).expect("its end");
            assert_eq!(value, round);
        }
        win.free().expect("freeing");
    });
}

#[test]
fn an_access_in_no_epoch_or_out_of_range_is_an_error_and_nothing_else() {
    everywhere(2, |engine| {
        let win = allocate(engine, 64);
        win.set_name("slate");
        let long = Datatype::from(Named::INT64);
        let class = |outcome: Result<(), Error>| {
            let error = outcome.expect_err("an error");
            let error: &OscError = error.find().expect("an error of a window");
            assert!(error.sentence.contains("slate"), "{error}");
            error.class
        };
        let value = 5;
        let put = |disp| {
            win.accesses()
                .put(&send(&value), target_args(&long, 1, disp))
        };
        assert_eq!(class(put(0)), OscClass::Sync);
        assert_eq!(class(win.passive().unlock(1)), OscClass::Sync);
        win.passive()
            .lock_all(Assert::default())
            .expect("a lock of all");
        assert_eq!(class(put(8)), OscClass::Range);
        assert_eq!(class(put(-1)), OscClass::Range);
        assert_eq!(class(put(i64::MAX)), OscClass::Range);
        assert_eq!(class(win.free()), OscClass::Sync);
        put(7).expect("a put inside");
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
    });
}

#[test]
fn accesses_of_one_rank_that_conflict_are_found_if_somebody_wants_to_know() {
    let conflicts = |engine: &Engine| {
        let win = allocate(engine, 64);
        let (long, int) = (Datatype::from(Named::INT64), Datatype::from(Named::INT32));
        // Each rank accesses a different target.
        let (value, to) = (5, 1 - engine.me());
        let put = |disp| {
            win.accesses()
                .put(&send(&value), target_args(&long, to, disp))
        };
        win.passive()
            .lock_all(Assert::default())
            .expect("a lock of all");
        put(0).expect("a put");
        put(1).expect("a put beside it");
        let second = put(1);
        win.passive().flush(to as i32).expect("a flush");
        put(1).expect("a put after a flush");
        let mut read = 0;
        let get = win
            .accesses()
            .get(&mut recv(&mut read), target_args(&long, to, 1));
        let get = get.map(|req| win.accumulates().give_up(req));
        add(&win, to, 2);
        let sum = Op::Predefined(Predefined::Sum);
        // Two accumulates with different types conflict if no synchronisation separates them.
        let one = 1;
        let long_add = win
            .accumulates()
            .accumulate(&send(&one), target_args(&long, to, 3), &sum);
        long_add.expect("an accumulate");
        let small = 1i32;
        // SAFETY: `small` is a local that lives until the access has read it.
        let small = unsafe { SendBuf::new((&raw const small).cast(), 1, int.clone()) };
        let mixed = win
            .accumulates()
            .accumulate(&small, target_args(&int, to, 3), &sum);
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
        [second, get, mixed].map(|outcome| match outcome {
            Ok(()) => None,
            Err(e) => (e.find()).map(|e: &OscError| (e.class, e.sentence.contains("MPI_"))),
        })
    };
    let found = Job::of(2).with("osc_base_check", "true").run(conflicts);
    assert_eq!(found, [[Some((OscClass::Conflict, true)); 3]; 2]);
    assert_eq!(Job::of(2).run(conflicts), [[None; 3]; 2]);
}

#[test]
fn an_access_after_the_request_of_a_get_has_ended_conflicts_with_nothing() {
    let exchange = |engine: &Engine| {
        let win = allocate(engine, 64);
        let long = Datatype::from(Named::INT64);
        let (value, to) = (5, 1 - engine.me());
        (win.passive().lock_all(Assert::default())).expect("a lock of all");
        let mut read = 0;
        let get = (win.accesses())
            .get_on_request(&mut recv(&mut read), target_args(&long, to, 0))
            .expect("a get");
        if let Some(req) = get {
            engine.wait(&req).expect("the end of the get");
        }
        let put = (win.accesses()).put(&send(&value), target_args(&long, to, 0));
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
        put.is_ok()
    };
    let job = Job::of(2).with("osc_base_check", "true");
    assert_eq!(job.run(exchange), [true; 2]);
}

/// Two origins access the same bytes concurrently, and in sequence with each form of completion.
#[test]
fn accesses_of_two_ranks_that_conflict_are_found_if_somebody_wants_to_know() {
    let conflicts = |engine: &Engine| {
        let win = allocate(engine, 64);
        let long = Datatype::from(Named::INT64);
        let (me, value) = (engine.me(), 5);
        let put = |disp| {
            win.accesses()
                .put(&send(&value), target_args(&long, 0, disp))
        };
        let ordered = |rank: u32, access: &dyn Fn() -> Result<(), Error>| {
            let outcome = if me == rank { access() } else { Ok(()) };
            barrier(engine);
            outcome
        };
        win.passive()
            .lock_all(Assert::default())
            .expect("a lock of all");
        ordered(1, &|| put(0)).expect("the first put");
        let second = ordered(2, &|| put(0));
        ordered(2, &|| put(1)).expect("a put beside it");
        ordered(1, &|| win.passive().flush(0)).expect("a flush");
        ordered(2, &|| put(0)).expect("a put after the flush");
        win.passive().unlock_all().expect("its end");
        barrier(engine);
        // Concurrent accumulates of one type do not conflict.
        win.passive()
            .lock_all(Assert::default())
            .expect("a lock of all");
        add(&win, 0, 2);
        barrier(engine);
        win.passive().unlock_all().expect("its end");
        for _ in 0..20 {
            win.passive()
                .lock(LockMode::Exclusive, 0, Assert::default())
                .expect("a lock");
            put(3).expect("a put under an exclusive lock");
            win.passive().unlock(0).expect("its end");
        }
        win.active().fence(Assert::default()).expect("a fence");
        for round in 0..60 {
            if round % 3 == me {
                put(4).expect("a put of a phase of its own");
            }
            win.active().fence(Assert::default()).expect("a fence");
        }
        win.free().expect("freeing");
        let error = second.err()?;
        let error: &OscError = error.find()?;
        assert!(error.sentence.contains("rank 2"), "{error}");
        assert!(error.sentence.contains("rank 1"), "{error}");
        Some(error.class)
    };
    let job = Job::of(3).with("osc_base_check", "true");
    assert_eq!(job.run(conflicts), [None, None, Some(OscClass::Conflict)]);
    assert_eq!(Job::of(3).run(conflicts), [None; 3]);
}

/// Malformed messages and messages with offsets outside of the window change nothing.
#[test]
fn messages_that_make_no_sense_are_dropped_or_refused() {
    use crate::bml::Route;
    use crate::btl::{Family, Payload};
    Job::of(2).with("osc", "am").run(|engine| {
        let win = allocate(engine, 64);
        barrier(engine);
        if engine.me() == 0 {
            let Route::Via(btl, peer) = engine.pml().bml().route(1) else {
                panic!("no route");
            };
            let id = win.id();
            for index in 0..16 {
                let am = Family::Osc.am(index);
                for header in [[id, u64::MAX], [u64::MAX, 1], [id, 0]] {
                    for payload in [&[][..], &[0xff; 7], &[0xff; 40], &[1; 64]] {
                        while btl.send(peer, am, header, Payload::Bytes(payload)).is_err() {
                            engine.progress();
                        }
                        engine.progress();
                    }
                }
            }
        }
        barrier(engine);
        // The forged messages affect at most `win`; another window must still work.
        let other = allocate(engine, 64);
        other
            .passive()
            .lock_all(Assert::default())
            .expect("a lock of all");
        assert_eq!(add(&other, engine.me(), 1), 0);
        other.passive().unlock_all().expect("its end");
        other.free().expect("freeing");
        win.free().expect("freeing");
    });
}

#[test]
fn windows_come_and_go_without_a_trace() {
    Job::of(2).run(|engine| {
        let node = engine.node();
        let make = |n| {
            for _ in 0..n {
                allocate(engine, 100_000).free().expect("freeing");
            }
            barrier(engine);
            node.longest_free()
        };
        let before = make(5);
        make(200);
        // The memory of a window's communicator is released after both ranks have left it,
        // which on a loaded machine can be later than the return of `free`.
        // The test makes 2000 attempts at both ranks, since window creation is collective.
        let most = (0..2000).map(|_| make(1)).max();
        assert!(
            most >= Some(before),
            "windows keep memory: {most:?} of {before}"
        );
    });
}
