//! Tests of windows over memory outside of the arenas, among ranks that are threads.
//! The memory is mapped on machines with XPMEM and copied by the kernel on others.
//!
//! Tests with the [replacement](super::mapper) run the mapping code on every machine.

use crate::coll::Call;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::direct::mapped::mapper;
use crate::engine::Engine;
use crate::op::{Op, Predefined};
use crate::spec::{Flavor, Hints, Spec};
use crate::{Assert, TargetArgs, Win};
use mpi_coll::testing::Job;

fn window(engine: &Engine, memory: &mut [i64]) -> Win {
    let spec = Spec {
        flavor: Flavor::Create,
        base: memory.as_mut_ptr().cast(),
        size: size_of_val(memory) as u64,
        unit: 8,
        hints: Hints::default(),
    };
    Win::new(&engine.world().expect("a world"), &spec).expect("a window")
}

/// Each rank increments a counter in each rank's window,
/// and puts its own rank into the element of that window whose index is its rank.
fn count(engine: &Engine, memory: &mut [i64]) -> (Vec<u32>, Vec<u32>) {
    const TIMES: i64 = 50;
    let win = window(engine, memory);
    let reached = win.memory().mapped_and_copied();
    let long = Datatype::from(Named::INT64);
    let sum = Op::Predefined(Predefined::Sum);
    let ranks = engine.size();
    win.passive()
        .lock_all(Assert::default())
        .expect("a lock of all");
    for _ in 0..TIMES {
        for rank in 0..ranks {
            let there = |disp| TargetArgs {
                rank: rank as i32,
                disp,
                count: 1,
                datatype: &long,
            };
            let (one, me, mut old, mut back) = (1_i64, i64::from(engine.me()), -1_i64, -1_i64);
            // SAFETY: the values are locals of this iteration; the flush completes the accesses before they go out of scope.
            let send = |value: &i64| unsafe {
                SendBuf::new(std::ptr::from_ref(value).cast(), 1, Named::INT64.into())
            };
            // SAFETY: the value is a local of this iteration; the flush completes the access before it goes out of scope.
            let recv = |value: &mut i64| unsafe {
                RecvBuf::new(std::ptr::from_mut(value).cast(), 1, Named::INT64.into())
            };
            win.accumulates()
                .fetch_and_op(&send(&one), &mut recv(&mut old), there(700), &sum)
                .expect("an update");
            win.accesses().put(&send(&me), there(me)).expect("a put");
            win.passive().flush(rank as i32).expect("a flush");
            let req = win
                .accesses()
                .get(&mut recv(&mut back), there(me))
                .expect("a get");
            win.accumulates().give_up(req);
            win.passive().flush(rank as i32).expect("a flush");
            assert!((0..TIMES * i64::from(ranks)).contains(&old), "{old}");
            assert_eq!(back, me);
        }
    }
    win.passive().unlock_all().expect("its end");
    win.free().expect("freeing");
    let memory = std::hint::black_box(memory);
    assert_eq!(memory[700], TIMES * i64::from(ranks));
    assert!((0..i64::from(ranks)).eq(memory[..ranks as usize].iter().copied()));
    reached
}

#[test]
fn memory_of_the_program_is_mapped_where_it_can_be_and_copied_where_not() {
    for value in ["true", "false"] {
        let job = Job::of(3).with("osc_direct_xpmem", value);
        job.run(|engine| {
            let (mapped, copied) = count(engine, &mut vec![0; 1000]);
            let others: Vec<u32> = (0..3).filter(|rank| *rank != engine.me()).collect();
            let explanation = super::explain(engine);
            match mapper(engine) {
                Ok(_) => {
                    assert_eq!((mapped, copied), (others, Vec::new()));
                    assert!(
                        explanation.contains("is mapped (/dev/xpmem)"),
                        "{explanation}"
                    );
                }
                Err(why) => {
                    assert!(mapped.is_empty());
                    assert!(explanation.ends_with(&why), "{explanation}");
                    if value == "false" {
                        assert_eq!(why, "osc_direct_xpmem is false");
                    }
                }
            }
        });
    }
}

#[test]
fn nothing_is_mapped_where_processes_outlive_others() {
    let job = Job::of(2).with("mpi_ft_enable", "true");
    job.run(|engine| {
        let (mapped, _) = count(engine, &mut vec![0; 1000]);
        assert!(!engine.is_fault_tolerant() || mapped.is_empty());
    });
}

/// Returns a job whose ranks use the replacement mapping, with or without XPMEM on this machine.
fn mapped(ranks: u32) -> Job {
    Job::of(ranks)
        .with("osc_direct_xpmem", "true")
        .with("osc_direct_stand_in", "true")
}

#[test]
fn memory_of_the_program_is_used_as_it_is_where_it_is_mapped() {
    mapped(3).run(|engine| {
        let (mapped, copied) = count(engine, &mut vec![0; 1000]);
        let others: Vec<u32> = (0..3).filter(|rank| *rank != engine.me()).collect();
        assert_eq!((mapped, copied), (others, Vec::new()));
    });
}

#[test]
fn what_one_member_cannot_offer_is_copied_and_the_rest_is_mapped() {
    static CONSTANTS: [i64; 1000] = [7; 1000];
    mapped(3).run(|engine| {
        let mut own = vec![0_i64; 1000];
        let spec = Spec {
            flavor: Flavor::Create,
            base: match engine.me() {
                1 => CONSTANTS.as_ptr().cast_mut().cast(),
                _ => own.as_mut_ptr().cast(),
            },
            size: 8000,
            unit: 8,
            hints: Hints::default(),
        };
        let win = Win::new(&engine.world().expect("a world"), &spec).expect("a window");
        let wanted = match engine.me() {
            0 => (vec![2], vec![1]),
            1 => (vec![0, 2], Vec::new()),
            _ => (vec![0], vec![1]),
        };
        assert_eq!(win.memory().mapped_and_copied(), wanted);
        win.free().expect("freeing");
    });
}

/// Returns a datatype of two numbers, at byte offsets `by` and `by + 16`.
fn moved(by: i64) -> Datatype {
    let pair = Datatype::hindexed(&[1, 1], &[by, by + 16], &Named::INT64.into()).expect("a type");
    pair.commit().expect("its layout");
    pair
}

fn meet(engine: &Engine) {
    let world = engine.world().expect("a world");
    world
        .collectives()
        .carry_out(Call::Barrier)
        .expect("a barrier");
}

/// Each rank accesses numbers of each rank in two adjacent regions.
/// The datatypes begin before or after the displacement that the access passes.
fn access_attached(engine: &Engine) {
    const BLOCK: usize = 8;
    // The number of words before and after the attached memory, which no access may change.
    const MARGIN: usize = 24;
    let (me, ranks) = (engine.me() as usize, engine.size() as usize);
    let words = BLOCK * ranks;
    let mut memory = vec![-1_i64; words + 2 * MARGIN];
    let spec = Spec {
        flavor: Flavor::Dynamic,
        base: std::ptr::null_mut(),
        size: 0,
        unit: 1,
        hints: Hints::default(),
    };
    let world = engine.world().expect("a world");
    let win = Win::new(&world, &spec).expect("a window");
    let base = memory.as_mut_ptr().wrapping_add(MARGIN);
    // The block that rank 1 of 3 accesses extends over both regions.
    let (len, first) = (8 * words as u64, 8 * (words / 2) as u64);
    win.attached().attach(base.cast(), first).expect("a region");
    let second = base.cast::<u8>().wrapping_add(first as usize);
    win.attached()
        .attach(second, len - first)
        .expect("the rest");
    let mine = [base.expose_provenance() as u64];
    let at = engine
        .block_on(world.internal().share(&mine))
        .expect("addresses");
    win.passive()
        .lock_all(Assert::default())
        .expect("a lock of all");
    let sum = Op::Predefined(Predefined::Sum);
    for (target, &start) in at.iter().enumerate() {
        let rank = target as i32;
        for (round, by) in [0, -16, 8, 40, -8, -64].into_iter().enumerate() {
            let pair = moved(by);
            let there = || TargetArgs {
                rank,
                disp: (start as i64) + 8 * (BLOCK * me + 2) as i64 - by,
                count: 1,
                datatype: &pair,
            };
            let values = [10 * round as i64, 100 + me as i64];
            let (fives, mut back, mut old) = ([5_i64, 5], [-1_i64; 2], [-1_i64; 2]);
            // SAFETY: the values are locals of this iteration; the flush completes the accesses before they go out of scope.
            let send = |values: &[i64; 2]| unsafe {
                SendBuf::new(values.as_ptr().cast(), 2, Named::INT64.into())
            };
            // SAFETY: the value is a local of this iteration; the flush completes the access before it goes out of scope.
            let recv = |values: &mut [i64; 2]| unsafe {
                RecvBuf::new(values.as_mut_ptr().cast(), 2, Named::INT64.into())
            };
            win.accesses().put(&send(&values), there()).expect("a put");
            win.passive().flush(rank).expect("a flush");
            win.accumulates()
                .accumulate(&send(&fives), there(), &sum)
                .expect("a sum");
            let req =
                win.accumulates()
                    .get_accumulate(&send(&fives), &mut recv(&mut old), there(), &sum);
            win.accumulates()
                .give_up(req.expect("a sum that brings what was there"));
            win.passive().flush(rank).expect("a flush");
            let req = win
                .accesses()
                .get(&mut recv(&mut back), there())
                .expect("a get");
            win.accumulates().give_up(req);
            win.passive().flush(rank).expect("a flush");
            let later = |by: i64| values.map(|value| value + by);
            assert_eq!((old, back), (later(5), later(10)), "{by} at rank {rank}");
        }
    }
    win.passive().unlock_all().expect("its end");
    meet(engine);
    let memory = std::hint::black_box(&memory);
    let (before, rest) = memory.split_at(MARGIN);
    let (blocks, behind) = rest.split_at(words);
    assert!(before.iter().chain(behind).all(|word| *word == -1));
    for (origin, block) in blocks.chunks(BLOCK).enumerate() {
        let last = 110 + origin as i64;
        assert_eq!(*block, [-1, -1, 60, -1, last, -1, -1, -1], "of {origin}");
    }
    win.attached().detach(base.cast()).expect("the first");
    win.attached().detach(second).expect("the second");
    win.free().expect("freeing");
}

#[test]
fn attached_memory_is_accessed_where_the_data_lie() {
    for job in [Job::of(3), mapped(3), Job::of(3).with("osc", "am")] {
        job.run(access_attached);
    }
}

/// Each rank accesses one word of each of several regions of each rank.
/// The regions are not contiguous, and the words around them are not attached.
fn access_several_regions(engine: &Engine) {
    const ROWS: usize = 5;
    let me = engine.me() as usize;
    let mut rows: Vec<Vec<i64>> = (0..ROWS).map(|_| vec![-1; 40]).collect();
    let spec = Spec {
        flavor: Flavor::Dynamic,
        base: std::ptr::null_mut(),
        size: 0,
        unit: 1,
        hints: Hints::default(),
    };
    let world = engine.world().expect("a world");
    let win = Win::new(&world, &spec).expect("a window");
    let starts: Vec<*mut u8> = rows
        .iter_mut()
        .map(|row| row[10..].as_mut_ptr().cast())
        .collect();
    for start in &starts {
        win.attached().attach(*start, 80).expect("a region");
    }
    let mine: Vec<u64> = starts
        .iter()
        .map(|start| start.expose_provenance() as u64)
        .collect();
    let at = engine
        .block_on(world.internal().share(&mine))
        .expect("addresses");
    win.passive()
        .lock_all(Assert::default())
        .expect("a lock of all");
    let sum = Op::Predefined(Predefined::Sum);
    for (target, starts) in at.chunks(ROWS).enumerate() {
        let rank = target as i32;
        let offsets: Vec<i64> = starts
            .iter()
            .map(|start| *start as i64 + 8 * me as i64)
            .collect();
        let column =
            Datatype::hindexed(&[1; ROWS], &offsets, &Named::INT64.into()).expect("a type");
        column.commit().expect("its layout");
        let there = || TargetArgs {
            rank,
            disp: 0,
            count: 1,
            datatype: &column,
        };
        let values: [i64; ROWS] = std::array::from_fn(|i| (100 * me + i) as i64);
        let (mut old, mut back) = ([-1_i64; ROWS], [-1_i64; ROWS]);
        // SAFETY: the values are locals of this iteration; the flush completes the accesses before they go out of scope.
        let send =
            || unsafe { SendBuf::new(values.as_ptr().cast(), ROWS as i64, Named::INT64.into()) };
        // SAFETY: the values are locals of this iteration; the flush completes the access before they go out of scope.
        let recv = |values: &mut [i64; ROWS]| unsafe {
            RecvBuf::new(values.as_mut_ptr().cast(), ROWS as i64, Named::INT64.into())
        };
        win.accesses().put(&send(), there()).expect("a put");
        win.passive().flush(rank).expect("a flush");
        let req = (win.accumulates()).get_accumulate(&send(), &mut recv(&mut old), there(), &sum);
        win.accumulates().give_up(req.expect("a sum"));
        win.passive().flush(rank).expect("a flush");
        let req = win
            .accesses()
            .get(&mut recv(&mut back), there())
            .expect("a get");
        win.accumulates().give_up(req);
        win.passive().flush(rank).expect("a flush");
        assert_eq!(
            (old, back),
            (values, values.map(|value| 2 * value)),
            "at rank {rank}"
        );
    }
    win.passive().unlock_all().expect("its end");
    meet(engine);
    for (i, row) in std::hint::black_box(&rows).iter().enumerate() {
        let wanted = |r: u32| 2 * (100 * i64::from(r) + i as i64);
        let ranks = engine.size() as usize;
        assert!(
            row[10..][..ranks]
                .iter()
                .copied()
                .eq((0..engine.size()).map(wanted)),
            "{row:?}"
        );
        assert!(
            row[..10]
                .iter()
                .chain(&row[10 + ranks..])
                .all(|word| *word == -1),
            "{row:?}"
        );
    }
    meet(engine);
    win.free().expect("freeing");
}

#[test]
fn one_access_uses_several_mapped_regions() {
    for job in [Job::of(3), mapped(3), Job::of(3).with("osc", "am")] {
        job.run(access_several_regions);
    }
}
