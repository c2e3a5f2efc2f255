//! Tests of plugins that serve all operations, with ranks as threads.

use super::Shelf;
use super::serving::job;
use crate::suite::tests::exercise;
use crate::testing::Job;
use crate::{CallId, Table};

fn every(ranks: u32, defines: &[&str]) -> Job {
    let shelf = Shelf::with_every(defines);
    job(ranks, move || shelf.gather(), &[])
}

/// The first component of each operation's chain on the world.
fn first(job: &Job, call: CallId) -> String {
    let all = job.run(|engine| {
        let world = engine.world().expect("a world");
        let table = Table::chosen(&world).expect("chosen");
        table.chain(call).next().unwrap_or_default().to_owned()
    });
    all[0].clone()
}

#[test]
fn a_c_plugin_serves_every_operation_in_every_form() {
    for ranks in [1, 2, 5] {
        let job = every(ranks, &[]);
        for call in [
            CallId::Barrier,
            CallId::Allreduce,
            CallId::NeighborAlltoallw,
        ] {
            assert_eq!(first(&job, call), "every");
        }
        exercise(&job, 17);
    }
}

#[test]
fn without_a_blocking_function_the_nonblocking_one_serves_blocking_calls() {
    exercise(&every(4, &["-DONLY_STARTED"]), 18);
}

#[test]
fn calls_beyond_the_limit_and_the_flags_go_to_the_next_component() {
    exercise(
        &every(3, &["-DLIMIT=64", "-DFLAGS=PORTCULLIS_COMMUTATIVE"]),
        19,
    );
    exercise(&every(3, &["-DFLAGS=PORTCULLIS_PREDEFINED"]), 20);
}
