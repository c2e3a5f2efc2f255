//! Tests of plugins that serve all operations, with ranks as threads.

use super::serving::job;
use super::{Catalogue, Shelf, guests};
use crate::suite::tests::exercise;
use crate::testing::Job;
use crate::{CallId, Table};
use mpi_base::param::Params;

fn every(ranks: u32, defines: &[&str]) -> Job {
    let shelf = Shelf::with_every(defines);
    job(ranks, move || shelf.gather(), &[])
}

/// Returns the first component of a call's chain on `MPI_COMM_WORLD`.
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

#[test]
fn a_component_in_safe_rust_serves_operations() {
    let gather = || Catalogue::gather(&[guests::ADDER], &[], &Params::default(), None);
    for ranks in [1, 4] {
        let job = job(ranks, gather, &[]);
        assert_eq!(first(&job, CallId::Allreduce), "adder");
        assert_ne!(first(&job, CallId::Barrier), "adder");
        exercise(&job, 21);
    }
}

#[test]
fn a_component_in_safe_rust_begins_operations_and_is_tested_until_they_are_complete() {
    let gather = || Catalogue::gather(&[guests::EAGER], &[], &Params::default(), None);
    for ranks in [1, 4] {
        let job = job(ranks, gather, &[]);
        for call in [CallId::Bcast, CallId::Scan, CallId::Gather] {
            assert_eq!(first(&job, call), "eager");
        }
        exercise(&job, 22);
    }
}
