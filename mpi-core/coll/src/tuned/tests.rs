//! Tests of `tuned`: forced algorithms are used; unknown names are rejected with a list of the known ones.

use super::*;
use crate::algo;
use crate::datatype::{Named, RecvBuf};
use crate::op::Predefined;
use crate::testing::Job;
use mpi_base::occupancy::Occupancy;
use mpi_base::param::Source;

fn complaint(parameter: &str, value: &str) -> String {
    let mut params = Params::default();
    params.set(parameter, value, Source::Environment);
    Tuned::default().verify(&params).expect_err("a complaint")
}

#[test]
fn an_unknown_algorithm_is_refused_with_the_names_there_are() {
    assert_eq!(
        complaint("coll_tuned_bcast_algorithm", "magic"),
        "coll_tuned_bcast_algorithm is \"magic\", but one of binomial, knomial, chain, scatter_allgather as the algorithm of bcast is expected"
    );
}

#[test]
fn a_table_that_cannot_be_read_is_refused_with_its_name() {
    let why = complaint("coll_tuned_rules", "/no/such/table");
    assert!(why.contains("the decision table /no/such/table: "), "{why}");
}

#[test]
#[should_panic(expected = "coll_tuned_reduce_algorithm is \"fast\"")]
fn a_job_does_not_start_with_an_unknown_algorithm() {
    Job::of(2)
        .with("coll_tuned_reduce_algorithm", "fast")
        .run(|_| ());
}

#[test]
fn a_rank_with_another_table_than_rank_0_refuses() {
    let rows = ["bcast 1 0 any chain", "bcast 1 0 any knomial"];
    let prints = rows.map(|row| {
        let rules = Rules::parse(row).expect("a table");
        Choices::new(rules, [None; CallId::ALL.len()], false).fingerprint
    });
    assert_ne!(prints[0], prints[1]);
}

/// Returns every rank's result of `call`, a sum whose rounding depends on the order of additions.
fn sum(job: &Job, call: impl Fn(RecvBuf, u32) -> Call + Sync) -> Vec<Vec<u8>> {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let buf = algo::elements(COUNT, &Named::DOUBLE.into()).expect("memory");
        let mine = (0..COUNT).map(|i| operand(world.rank(), i).to_ne_bytes());
        buf.all().unpack_at(0, &mine.flatten().collect::<Vec<u8>>());
        world
            .collectives()
            .carry_out(call(buf.all(), world.rank()))
            .expect("a sum");
        buf.all().as_send().to_vec()
    })
}

const COUNT: i64 = 3000;

fn operand(rank: u32, i: i64) -> f64 {
    let magnitude = [1e16, 1.0, 1e-3, -1e16, 3.7][(i + i64::from(rank) * 3) as usize % 5];
    magnitude / f64::from(rank + 1) + i as f64
}

/// Returns the bytes of a0 + (a1 + (a2 + ...)).
fn expected(ranks: u32) -> Vec<u8> {
    let sum = |i| {
        let last = operand(ranks - 1, i);
        (0..ranks - 1)
            .rev()
            .fold(last, |acc, rank| operand(rank, i) + acc)
    };
    (0..COUNT).flat_map(|i| sum(i).to_ne_bytes()).collect()
}

fn allreduce(recv: RecvBuf, _: u32) -> Call {
    Call::Allreduce {
        send: None,
        recv,
        op: Predefined::Sum.into(),
    }
}

#[test]
fn reproducible_sums_are_the_same_to_the_bit_wherever_their_ranks_lie() {
    let places = [
        ("coll", "basic"),
        ("coll", "tuned"),
        ("coll_tuned_allreduce_algorithm", "rabenseifner"),
        ("coll_shm_barrier", "flags"),
        ("coll_shm_barrier", "counter"),
        ("coll_shm_cell_size", "64"),
        ("coll_shm_single_copy_min", "1G"),
    ];
    for (name, value) in places {
        for ranks in [2, 5, 8] {
            let job = Job::of(ranks)
                .with("coll_base_reproducible", "true")
                .with(name, value);
            for result in sum(&job, allreduce) {
                assert!(result == expected(ranks), "{name} {value}, {ranks} ranks");
            }
            let root = ranks - 1;
            let reduce = |buf: RecvBuf, me| Call::Reduce {
                send: (me != root).then(|| buf.as_send()),
                recv: (me == root).then(|| buf.clone()),
                op: Predefined::Sum.into(),
                root,
            };
            let results = sum(&job, reduce);
            assert!(results[root as usize] == expected(ranks), "{name} {value}");
        }
    }
}

#[test]
fn without_the_parameter_algorithms_differ_in_the_last_bits() {
    let job = Job::of(5).with("coll_tuned_allreduce_algorithm", "ring");
    let job = job.with("coll", "tuned");
    assert!(sum(&job, allreduce).iter().any(|r| *r != expected(5)));
}

#[test]
fn reordering_algorithms_are_passed_over_where_operands_must_keep_their_order() {
    let rules = Rules::parse("allreduce 1 0 any recursive_doubling\nallreduce 1 4 any ring");
    let rules = rules.expect("a table");
    let choices = Choices::new(rules, [None; CallId::ALL.len()], false);
    let plan = choices.plan(Setting {
        ranks: 8,
        occupancy: Occupancy::Dedicated,
    });
    let module = TunedModule {
        choices,
        plan: plan.into(),
    };
    let chosen = |commutes| {
        let recv = algo::bytes(100).expect("memory").all();
        let op = crate::op::Op::user(|_, _, _, _| {}, commutes);
        let call = Call::Allreduce {
            send: None,
            recv,
            op,
        };
        module.choose(&call, 8).map(Algorithm::name)
    };
    assert_eq!(chosen(true), Some("ring"));
    assert_eq!(chosen(false), Some("recursive_doubling"));
}

#[test]
fn the_explanation_lists_the_steps_that_are_taken() {
    let told = |call, table: &str, ranks| {
        let occupancy = Occupancy::Dedicated;
        let rules = Rules::parse(table).expect("a table");
        shown(&rules.steps(call, Setting { ranks, occupancy }), call)
    };
    let built_in = |call, ranks| told(call, rules::BUILT_IN, ranks);
    assert_eq!(built_in(CallId::Bcast, 2), "binomial");
    assert_eq!(
        built_in(CallId::Alltoall, 8),
        "bruck, from 256 bytes linear, from 32768 bytes pairwise"
    );
    assert_eq!(
        built_in(CallId::ReduceScatter, 2),
        "halving, from 262144 bytes pairwise (reduce if the operator does not commute)"
    );
    // A table whose first row begins above 0 bytes, and an empty table.
    assert_eq!(
        told(CallId::Bcast, "bcast 1 4k any chain", 2),
        "binomial, from 4096 bytes chain"
    );
    assert_eq!(told(CallId::Bcast, "", 2), "binomial");
}
