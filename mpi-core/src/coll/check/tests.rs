//! Differences are told, agreement is not noticed, and what is off is not there.

use super::*;
use crate::coll::CallId;
use crate::datatype::{Named, RecvBuf, Scratch};
use crate::engine::testing::Job;
use crate::op::{Op, Predefined};

fn checked(ranks: u32) -> Job {
    Job::of(ranks).with("coll_base_check", "true")
}

fn words(count: i64) -> RecvBuf {
    Scratch::new(count, &Named::INT32.into())
        .expect("memory")
        .all()
}

/// What every rank is told when each makes its own call, blocking or not.
fn told(job: &Job, blocking: bool, call: impl Fn(u32) -> Call + Sync) -> Vec<String> {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let call = call(world.rank());
        let outcome = match blocking {
            true => world.collective(call),
            false => world
                .icollective(call)
                .and_then(|req| engine.wait(&req).map(|_| ())),
        };
        outcome.map_or_else(|e| e.to_string(), |()| "agreed".into())
    })
}

fn differ(ranks: u32, call: impl Fn(u32) -> Call + Sync, sentence: &str) {
    for blocking in [true, false] {
        for said in told(&checked(ranks), blocking, &call) {
            assert_eq!(
                said,
                format!("in collective call 1 on MPI_COMM_WORLD the members differ: {sentence}")
            );
        }
    }
}

fn bcast(count: i64, root: u32) -> Call {
    Call::Bcast {
        buf: words(count),
        root,
    }
}

fn allreduce(op: Predefined) -> Call {
    Call::Allreduce {
        send: None,
        recv: words(2),
        op: Op::from(op),
    }
}

#[test]
fn another_root_is_told() {
    differ(
        5,
        |rank| bcast(4, u32::from(rank == 3)),
        "ranks 0 to 2, 4 call MPI_Bcast from rank 0 of 16 bytes; rank 3 calls MPI_Bcast from rank 1 of 16 bytes",
    );
}

#[test]
fn another_count_is_told() {
    differ(
        2,
        |rank| bcast(4 + i64::from(rank), 0),
        "rank 0 calls MPI_Bcast from rank 0 of 16 bytes; rank 1 calls MPI_Bcast from rank 0 of 20 bytes",
    );
}

#[test]
fn another_operator_is_told() {
    differ(
        3,
        |rank| {
            allreduce(if rank == 0 {
                Predefined::Max
            } else {
                Predefined::Sum
            })
        },
        "rank 0 calls MPI_Allreduce of 8 bytes with MPI_MAX; ranks 1, 2 call MPI_Allreduce of 8 bytes with MPI_SUM",
    );
}

#[test]
fn another_order_is_told() {
    differ(
        2,
        |rank| match rank {
            0 => Call::Barrier,
            _ => allreduce(Predefined::Sum),
        },
        "rank 0 calls MPI_Barrier; rank 1 calls MPI_Allreduce of 8 bytes with MPI_SUM",
    );
}

#[test]
fn other_counts_of_the_same_sum_are_told() {
    let call = |rank: u32| Call::ReduceScatter {
        send: None,
        recv: words(3),
        counts: if rank == 0 { [1, 2] } else { [2, 1] }.into(),
        op: Predefined::Sum.into(),
    };
    for said in told(&checked(2), true, call) {
        assert!(
            said.contains("rank 0 calls MPI_Reduce_scatter of 12 bytes"),
            "{said}"
        );
        assert!(
            said.contains("rank 1 calls MPI_Reduce_scatter of 12 bytes"),
            "{said}"
        );
    }
}

#[test]
fn members_go_on_after_a_difference() {
    let outcomes = checked(4).run(|engine| {
        let world = engine.world().expect("a world");
        let wrong = world.collective(bcast(1, world.rank()));
        let right = world.collective(Call::Barrier);
        (wrong.is_err(), right.is_ok())
    });
    assert!(outcomes.into_iter().all(|o| o == (true, true)));
}

#[test]
fn without_the_parameter_no_call_passes_through_it() {
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        let table = world.coll().expect("a table");
        for call in CallId::ALL {
            assert!(table.chain(call).all(|name| name != "check"));
        }
    });
}
