//! Windows over memory of the test's own, among ranks that are threads: mapped where this machine has XPMEM, else copied by the system.

use super::device;
use crate::datatype::{Datatype, Named, RecvBuf, SendBuf};
use crate::engine::Engine;
use crate::op::{Op, Predefined};
use crate::{Assert, Flavor, Hints, Spec, There, Win};
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

/// Each rank counts up a word of each rank, and puts its number to a place of its own there.
fn count(engine: &Engine, memory: &mut [i64]) -> (Vec<u32>, Vec<u32>) {
    const TIMES: i64 = 50;
    let win = window(engine, memory);
    let reached = win.mapped_and_copied();
    let long = Datatype::from(Named::INT64);
    let sum = Op::Predefined(Predefined::Sum);
    let ranks = engine.size();
    win.lock_all(Assert::default()).expect("a lock of all");
    for _ in 0..TIMES {
        for rank in 0..ranks {
            let there = |disp| There {
                rank: rank as i32,
                disp,
                count: 1,
                datatype: &long,
            };
            let (one, me, mut old, mut back) = (1_i64, i64::from(engine.me()), -1_i64, -1_i64);
            // SAFETY: numbers of this loop, which are complete at the flush.
            let send = |value: &i64| unsafe {
                SendBuf::new(std::ptr::from_ref(value).cast(), 1, Named::INT64.into())
            };
            // SAFETY: as above.
            let recv = |value: &mut i64| unsafe {
                RecvBuf::new(std::ptr::from_mut(value).cast(), 1, Named::INT64.into())
            };
            win.fetch_and_op(&send(&one), &mut recv(&mut old), there(700), &sum)
                .expect("an update");
            win.put(&send(&me), there(me)).expect("a put");
            win.flush(rank as i32).expect("a flush");
            let req = win.get(&mut recv(&mut back), there(me)).expect("a get");
            win.give_up(req);
            win.flush(rank as i32).expect("a flush");
            assert!((0..TIMES * i64::from(ranks)).contains(&old), "{old}");
            assert_eq!(back, me);
        }
    }
    win.unlock_all().expect("its end");
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
            match device(engine) {
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
