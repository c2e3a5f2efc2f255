//! Several nodes in one test: each has memory of its own, and between them there is tcp.

use super::*;
use crate::coll::suite::barrier::{self, Form};
use crate::coll::suite::tests::exercise;
use crate::engine::testing::Job;

fn job(ranks: u32, nodes: u32) -> Job {
    let mut job = Job::of(ranks);
    job.nodes = nodes;
    job
}

#[test]
fn seats_follow_the_order_of_ranks() {
    let seat = |node, place| Seat { node, place };
    let expected = [seat(0, 0), seat(1, 0), seat(0, 1), seat(2, 0), seat(1, 1)];
    assert_eq!(*seats(&[7, 3, 7, 9, 3]), expected);
}

#[test]
fn several_nodes_are_served_in_two_levels() {
    job(5, 2).run(|engine| {
        let world = engine.world().expect("a world");
        let table = world.coll().expect("a table");
        for call in [CallId::Barrier, CallId::Bcast, CallId::Allreduce] {
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
            let table = world.coll().expect("a table");
            assert!(table.chain(CallId::Bcast).all(|name| name != "han"));
        });
    }
}

#[test]
fn calls_over_several_nodes_give_what_the_definition_says() {
    for (ranks, nodes) in [(3, 2), (5, 2), (8, 3)] {
        exercise(&job(ranks, nodes), 8);
    }
}

#[test]
fn nobody_leaves_before_all_have_entered() {
    for (ranks, nodes) in [(3, 2), (8, 3)] {
        let job = job(ranks, nodes);
        barrier::nobody_leaves_before_all_have_entered(&job, "han", Form::Mixed, 40);
    }
}
