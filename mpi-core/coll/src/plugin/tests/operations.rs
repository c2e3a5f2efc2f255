//! Tests of plugins that carry out all operations; the ranks are threads.

use super::serving::job;
use super::{Catalogue, Shelf, guests};
use crate::datatype::{Named, RecvBytes};
use crate::op::{DenseOp, Predefined};
use crate::suite::fast_calls::{Form, have_the_results_of_the_general_form};
use crate::suite::tests::exercise;
use crate::testing::Job;
use crate::{CallId, FastCall, Table};
use mpi_base::param::Params;

fn every(ranks: u32, defines: &[&str]) -> Job {
    let shelf = Shelf::with_every(defines);
    job(ranks, move || shelf.gather(), &[])
}

/// Returns the name of the first component for a collective on `MPI_COMM_WORLD`.
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

/// Either all members or no member make a fast call, since the plugin passes other calls to the next component.
#[test]
fn fast_calls_of_each_kind_reach_the_function_of_their_operation_with_their_arguments() {
    for ranks in [1, 3] {
        let shelf = Shelf::with_dense(&[]);
        let job = job(ranks, move || shelf.gather(), &[]);
        assert_eq!(first(&job, CallId::Exscan), "dense");
        // Plugins have no fast function for an allgatherv.
        let form = |_, _, call| match call {
            CallId::Allgatherv => Form::General,
            _ => Form::Fast,
        };
        have_the_results_of_the_general_form(&job, ranks, form);
        job.run(|engine| {
            let world = engine.world().expect("a world");
            let taken = world.collectives().try_fast_call(&FastCall::Barrier);
            taken.expect("a fast barrier").expect("a barrier");
            let request = world.collectives().try_fast_request(FastCall::Barrier);
            assert!(request.is_none(), "plugins start requests by general calls");
        });
    }
}

#[test]
fn a_fast_call_that_answers_next_is_an_error_of_the_component() {
    let shelf = Shelf::with_dense(&["-DANSWER=PORTCULLIS_NEXT"]);
    let job = job(2, move || shelf.gather(), &[]);
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let op = DenseOp::new(&Predefined::Sum.into(), &Named::UINT64.into()).expect("a loop");
        let (send, recv) = (&[][..], RecvBytes::empty());
        let call = FastCall::Allreduce { send, recv, op };
        let taken = world.collectives().try_fast_call(&call).expect("fast");
        let said = taken.expect_err("an error").to_string();
        let sentence = "component dense: its function dense answered NEXT";
        assert!(said.contains(sentence), "{said}");
    });
}
