//! Tests of concurrent accumulates on the same elements,
//! by atomic instructions and by plain loads and stores under stripe locks.
//! The ranks are threads.
#![allow(unsafe_code)]

use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::op::{Op, Predefined};
use crate::{Assert, Flavor, Hints, LockMode, Spec, TargetArgs, Win};
use mpi_coll::testing::Job;

/// The number of elements of each window; they span more than three times `BLOCK` bytes.
const ELEMENTS: usize = 7000;

fn window(engine: &Engine) -> Win {
    let spec = Spec {
        flavor: Flavor::Allocate,
        base: std::ptr::null_mut(),
        size: 8 * ELEMENTS as u64,
        unit: 8,
        hints: Hints::default(),
    };
    Win::new(&engine.world().expect("a world"), &spec).expect("a window")
}

fn barrier(engine: &Engine) {
    let world = engine.world().expect("a world");
    let call = crate::coll::Call::Barrier;
    world.collectives().carry_out(call).expect("a barrier");
}

fn there(datatype: &Datatype, count: i64, disp: i64) -> TargetArgs<'_> {
    TargetArgs {
        rank: 0,
        disp,
        count,
        datatype,
    }
}

fn double() -> Datatype {
    Named::DOUBLE.into()
}

/// Returns a send buffer of `count` elements of a type in a slice.
fn send(from: &[f64], count: i64, datatype: &Datatype) -> SendBuf {
    let span = datatype.span(count);
    assert!(span.start >= 0 && span.end <= 8 * from.len() as i64);
    // SAFETY: the slice holds the elements, and the caller keeps it until the access has read them.
    unsafe { SendBuf::new(from.as_ptr().cast(), count, datatype.clone()) }
}

/// Returns a receive buffer of `count` elements of a type in a slice.
fn recv(to: &mut [f64], count: i64, datatype: &Datatype) -> RecvBuf {
    let span = datatype.span(count);
    assert!(span.start >= 0 && span.end <= 8 * to.len() as i64);
    // SAFETY: the slice holds the elements, and the caller does not use it before the access is complete.
    unsafe { RecvBuf::new(to.as_mut_ptr().cast(), count, datatype.clone()) }
}

const SUM: Op = Op::Predefined(Predefined::Sum);

/// Adds `values` to the first elements of rank 0.
fn add(win: &Win, values: &[f64]) {
    let (count, double) = (values.len() as i64, double());
    let origin = send(values, count, &double);
    win.accumulates()
        .accumulate(&origin, there(&double, count, 0), &SUM)
        .expect("an accumulate");
}

/// Adds 1 to an element of rank 0 by the fast path, or if that does not apply, by the general path.
/// Returns the old value.
fn add_one(win: &Win, at: i64) -> f64 {
    let (one, mut old) = ([1.0], [0.0]);
    let (from, to) = (one.as_ptr().cast(), old.as_mut_ptr().cast());
    // SAFETY: both pointers point to a double.
    let plain = unsafe {
        win.accumulates()
            .fetch_and_op_plain(from, to, Named::DOUBLE, Predefined::Sum, 0, at)
    };
    if !plain {
        let double = double();
        let (origin, mut result) = (send(&one, 1, &double), recv(&mut old, 1, &double));
        let args = there(&double, 1, at);
        win.accumulates()
            .fetch_and_op(&origin, &mut result, args, &SUM)
            .expect("a fetch");
        win.passive().flush(0).expect("a flush");
    }
    old[0]
}

fn add_hundred_times(win: &Win) {
    for _ in 0..100 {
        add_one(win, 3);
    }
}

/// Returns all elements of rank 0 by one get.
fn all(win: &Win) -> Vec<f64> {
    let (double, mut all) = (double(), vec![-1.0; ELEMENTS]);
    let count = ELEMENTS as i64;
    let mut to = recv(&mut all, count, &double);
    let req = win.accesses().get(&mut to, there(&double, count, 0));
    win.accumulates().give_up(req.expect("a get"));
    win.passive().flush(0).expect("a flush");
    all
}

#[test]
fn long_and_short_accumulates_of_all_members_lose_nothing() {
    const RANKS: u32 = 4;
    const ROUNDS: usize = 6;
    // The number of consecutive short updates, which is greater than `SHORTS_BEFORE_ATOMICS`.
    const SHORTS: usize = 150;
    let claim = |engine: &Engine| {
        let win = window(engine);
        win.passive().lock_all(Assert::default()).expect("a lock");
        let ones = vec![1.0; ELEMENTS];
        let mut fetched = Vec::new();
        for round in 0..ROUNDS {
            add(&win, &ones[..600 + round]);
            fetched.extend((0..SHORTS).map(|_| add_one(&win, 5)));
            add(&win, &ones);
            for short in 0..SHORTS {
                add_one(&win, 10 + short as i64);
            }
        }
        win.passive().flush(0).expect("a flush");
        let rises = fetched.windows(2).all(|two| two[0] < two[1]);
        assert!(rises, "an old value came twice");
        barrier(engine);
        let rounds = ROUNDS as f64 * f64::from(RANKS);
        for (at, value) in all(&win).into_iter().enumerate() {
            let short_rounds = (0..ROUNDS).filter(|round| at < 600 + round).count() as f64;
            let shorts = match at {
                5 => SHORTS as f64,
                _ if (10..10 + SHORTS).contains(&at) => 1.0,
                _ => 0.0,
            };
            let wanted = rounds * (1.0 + shorts) + short_rounds * f64::from(RANKS);
            assert_eq!(value, wanted, "element {at}");
        }
        barrier(engine);
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
    };
    Job::of(RANKS).run(claim);
    Job {
        nodes: 2,
        ..Job::of(RANKS)
    }
    .run(claim);
}

#[test]
fn a_long_accumulate_changes_the_mode_and_short_ones_change_it_back() {
    Job::of(2).run(|engine| {
        let win = window(engine);
        win.passive().lock_all(Assert::default()).expect("a lock");
        if engine.world().expect("a world").rank() == 0 && mpi_base::fence::register() {
            let is_stripes = || win.state().control().of(0).update_mode.is_stripes();
            add(&win, &[1.0; 100]);
            assert!(!is_stripes(), "a hundred elements pay for no change");
            add(&win, &[1.0; 600]);
            assert!(is_stripes());
            add_hundred_times(&win);
            assert!(is_stripes(), "a hundred short updates pay for no change");
            add_hundred_times(&win);
            assert!(!is_stripes());
            assert_eq!(add_one(&win, 3), 202.0);
        }
        barrier(engine);
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
    });
}

#[test]
fn a_compare_and_swap_and_a_pass_exclude_each_other() {
    const ROUNDS: i64 = 40;
    Job::of(3).run(|engine| {
        let win = window(engine);
        let long = Datatype::from(Named::INT64);
        win.passive().lock_all(Assert::default()).expect("a lock");
        let ones = [1_i64; 700];
        for _ in 0..ROUNDS {
            // SAFETY: the array holds 700 numbers and is only read.
            let origin = unsafe { SendBuf::new(ones.as_ptr().cast(), 700, long.clone()) };
            win.accumulates()
                .accumulate(&origin, there(&long, 700, 0), &SUM)
                .expect("an accumulate");
            let mut expected = 0_i64;
            loop {
                let mut old = [0; 8];
                let next = (expected + 1).to_ne_bytes();
                let both = [&next[..], &expected.to_ne_bytes()[..]];
                let plain =
                    (win.accumulates()).compare_and_swap_plain(Named::INT64, both, &mut old, 0, 1);
                assert!(plain, "the window is mapped");
                let old = i64::from_ne_bytes(old);
                if old == expected {
                    break;
                }
                expected = old;
            }
        }
        barrier(engine);
        let values = all(&win);
        let values = values[..700]
            .iter()
            .map(|value| value.to_bits() as i64)
            .enumerate();
        for (at, value) in values {
            let swaps = if at == 1 { 3 * ROUNDS } else { 0 };
            assert_eq!(value, 3 * ROUNDS + swaps, "element {at}");
        }
        barrier(engine);
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
    });
}

/// Runs get-accumulates between buffers with and without gaps, shorter and longer than a piece.
/// Checks every element after each of them.
fn gaps(win: &Win) {
    let double = double();
    for n in [1, 3, 40, 3000_usize] {
        let vector = Datatype::vector(n as i64, 1, 2, &double).expect("a type");
        vector.commit().expect("committed");
        for form in 0..8 {
            let [origin_gaps, target_gaps, result_gaps] = [1, 2, 4].map(|bit| form & bit != 0);
            let side = |gaps| match gaps {
                true => (1, vector.clone(), 2),
                false => (n as i64, double.clone(), 1),
            };
            let before = all(win);
            let values: Vec<f64> = (0..2 * n).map(|i| i as f64 + 0.5).collect();
            let mut old = vec![-1.0; 2 * n];
            let (count, datatype, step) = side(origin_gaps);
            let origin = send(&values, count, &datatype);
            let (count, datatype, result_step) = side(result_gaps);
            let mut result = recv(&mut old, count, &datatype);
            let (count, datatype, target_step) = side(target_gaps);
            let args = there(&datatype, count, 3);
            let req = win
                .accumulates()
                .get_accumulate(&origin, &mut result, args, &SUM);
            assert!(req.expect("an access").is_none(), "the window is mapped");
            let after = all(win);
            let mut wanted = before.clone();
            for i in 0..n {
                let at = 3 + i * target_step;
                assert_eq!(
                    old[i * result_step],
                    before[at],
                    "{n} elements, form {form}"
                );
                wanted[at] += values[i * step];
            }
            assert!(after == wanted, "{n} elements, form {form}");
            if result_gaps {
                assert_eq!(old[1], -1.0, "a gap of the result was written");
            }
        }
    }
}

#[test]
fn elements_with_gaps_are_updated_as_those_without() {
    Job::of(1).run(|engine| {
        let win = window(engine);
        win.passive().lock_all(Assert::default()).expect("a lock");
        gaps(&win);
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
    });
    Job::of(2).run(|engine| {
        let win = window(engine);
        let me = engine.world().expect("a world").rank();
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            if me == 1 {
                win.passive()
                    .lock(mode, 0, Assert::default())
                    .expect("a lock");
                gaps(&win);
                win.passive().unlock(0).expect("its end");
            }
            barrier(engine);
        }
        win.free().expect("freeing");
    });
}

#[test]
fn memory_of_the_window_is_added_to_itself() {
    Job::of(1).run(|engine| {
        let win = window(engine);
        win.passive().lock_all(Assert::default()).expect("a lock");
        add(&win, &[1.0; 64]);
        // SAFETY: the window has more than 64 doubles.
        let own = unsafe { SendBuf::new(win.memory().base(), 64, double()) };
        let double = double();
        win.accumulates()
            .accumulate(&own, there(&double, 64, 0), &SUM)
            .expect("an accumulate");
        assert_eq!(all(&win)[..65], [&[2.0; 64][..], &[0.0][..]].concat()[..]);
        win.passive().unlock_all().expect("its end");
        win.free().expect("freeing");
    });
}
