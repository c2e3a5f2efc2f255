//! Tests of `han` with several nodes in one process: each node has its own shared memory, and TCP connects the nodes.

use super::*;
use crate::suite::barrier::{self, Form};
use crate::suite::case::Case;
use crate::suite::tests::exercise;
use crate::testing::Job;
use mpi_base::random::SplitMix64;

fn job(ranks: u32, nodes: u32) -> Job {
    let mut job = Job::of(ranks);
    job.nodes = nodes;
    job
}

#[test]
fn several_nodes_are_served_in_two_levels() {
    job(5, 2).run(|engine| {
        let world = engine.world().expect("a world");
        let table = Table::chosen(&world).expect("a table");
        for call in super::SERVED {
            let first = table.chain(call).next();
            assert_eq!(first, Some("han"), "{:?}", table.explain("the world"));
        }
    });
}

#[test]
fn one_node_and_single_members_have_no_levels() {
    for nodes in [1, 4] {
        job(4, nodes).run(|engine| {
            let world = engine.world().expect("a world");
            let table = Table::chosen(&world).expect("a table");
            assert!(table.chain(CallId::Bcast).all(|name| name != "han"));
        });
    }
}

/// One leader has no context ids left: it cannot create its node's communicator, but joins the leaders' communicator.
#[test]
fn levels_that_cannot_be_made_on_one_node_are_not_used_on_any() {
    job(5, 2).run(|engine| {
        let world = engine.world().expect("a world");
        if engine.me() == 1 {
            engine.context_ids().exhaust();
        }
        let twin = engine
            .block_on(world.constructors().dup())
            .expect("a duplicate");
        let table = Table::chosen(&twin).expect("a table");
        assert!(table.chain(CallId::Barrier).all(|name| name != "han"));
        let why = table.explain("the twin");
        let said = "not han: rank 1: setting up: no communicator was made: rank 1 of the job";
        assert!(why.iter().any(|line| line.contains(said)), "{why:?}");
        twin.collectives()
            .carry_out(Call::Barrier)
            .expect("a barrier");
    });
}

#[test]
fn calls_over_several_nodes_give_what_the_definition_says() {
    for (ranks, nodes) in [(3, 2), (5, 2), (8, 3)] {
        exercise(&job(ranks, nodes), 8);
    }
}

#[test]
fn no_rank_leaves_before_all_have_entered() {
    for (ranks, nodes) in [(3, 2), (8, 3)] {
        let job = job(ranks, nodes);
        barrier::no_rank_leaves_before_all_have_entered(&job, "han", Form::Mixed, 40);
    }
}

#[test]
fn long_and_short_blocks_give_the_same_on_either_side_of_the_limit() {
    for limit in ["0", "1G"] {
        for (ranks, nodes) in [(5, 2), (7, 3)] {
            let job = job(ranks, nodes).with("coll_han_blocks_max", limit);
            exercise(&job, 9);
        }
    }
}

#[test]
fn barriers_in_flight_end_in_the_order_in_which_they_began() {
    barrier::barriers_in_flight_end_in_order(&job(5, 2), "han");
    barrier::a_barrier_does_not_stop_messages(&job(5, 2), "han", Form::Mixed);
}

/// Many calls with different numbers of steps are in progress: the next component gets their steps in the same order on all members.
#[test]
fn calls_that_are_under_way_together_do_not_overtake_each_other() {
    job(7, 3).run(|engine| {
        let world = engine.world().expect("a world");
        let mut shared = SplitMix64(21);
        let mut own = SplitMix64(u64::from(world.rank()));
        for _ in 0..6 {
            let mut under_way = Vec::new();
            for _ in 0..10 {
                let calls = [
                    CallId::Barrier,
                    CallId::Bcast,
                    CallId::Allreduce,
                    CallId::Allgather,
                ];
                let call = calls[shared.below(calls.len() as u64) as usize];
                let case = Case::random(call, world.size(), &mut shared);
                let part = case.part(world.rank());
                let req = world
                    .collectives()
                    .begin(part.call.clone())
                    .expect("a collective");
                under_way.push((case, part, req));
            }
            while !under_way.is_empty() {
                let which = own.below(under_way.len() as u64) as usize;
                let (case, part, req) = under_way.swap_remove(which);
                engine.wait(&req).expect("the end of a collective");
                part.check(&case);
            }
        }
    });
}

/// Rank 1, a leader, does not forward invalid data.
/// The members of its node get an error although their own counts are right.
#[test]
fn another_count_of_a_leader_is_told_to_its_node_and_hangs_nobody() {
    for components in ["han,shm,tuned", "han,tuned"] {
        job(6, 2).with("coll", components).run(|engine| {
            let world = engine.world().expect("a world");
            let me = world.rank();
            let scratch = |count| {
                let memory = crate::algo::bytes(count);
                memory.expect("memory").all()
            };
            let run = |blocking, call: Call| match blocking {
                true => world.collectives().carry_out(call),
                false => engine.wait(&world.collectives().begin(call)?).map(|_| ()),
            };
            for (odd, blocking) in [(0, true), (1, true), (0, false), (1, false)] {
                let count = if me == odd { 8 } else { 16 };
                let outcome = run(
                    blocking,
                    Call::Bcast {
                        buf: scratch(count),
                        root: 0,
                    },
                );
                // Ranks are assigned round robin: one node has the even ranks, the other the odd ranks.
                let is_told = match odd {
                    0 => me != 0,
                    _ => me % 2 == 1,
                };
                assert_eq!(
                    outcome.is_err(),
                    is_told,
                    "{components} {me} {odd}: {outcome:?}"
                );
                let outcome = run(
                    blocking,
                    Call::Reduce {
                        send: Some(scratch(count).as_send()),
                        recv: (me == 0).then(|| scratch(count)),
                        op: crate::op::Predefined::Bxor.into(),
                        root: 0,
                    },
                );
                if me == 0 {
                    assert!(outcome.is_err(), "{components} {odd}");
                }
                engine.block_on(world.internal().fence()).expect("a fence");
            }
        });
    }
}
