//! What is forced is taken, what cannot be is refused with the choices.

use super::*;
use crate::engine::testing::Job;
use mpi_base::param::Source;

fn refusals(job: &Job) -> Vec<Vec<(String, Refusal)>> {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        world.coll().expect("a table").refused().to_vec()
    })
}

#[test]
fn an_unknown_algorithm_is_refused_with_the_names_there_are() {
    let mut job = Job::of(2);
    job.params
        .set("coll_tuned_bcast_algorithm", "magic", Source::Environment);
    for refused in refusals(&job) {
        let why = &refused
            .iter()
            .find(|(name, _)| name == "tuned")
            .expect("a refusal")
            .1
            .0;
        assert!(
            why.contains("coll_tuned_bcast_algorithm is \"magic\""),
            "{why}"
        );
        assert!(
            why.contains("binomial, knomial, chain, scatter_allgather"),
            "{why}"
        );
    }
}

#[test]
fn a_table_that_cannot_be_read_is_refused_with_its_name() {
    let mut job = Job::of(2);
    job.params
        .set("coll_tuned_rules", "/no/such/table", Source::Environment);
    for refused in refusals(&job) {
        let why = &refused
            .iter()
            .find(|(name, _)| name == "tuned")
            .expect("a refusal")
            .1
            .0;
        assert!(why.contains("/no/such/table"), "{why}");
    }
}

#[test]
fn reordering_algorithms_are_passed_over_where_operands_must_keep_their_order() {
    let rules = Rules::parse("allreduce 1 0 any recursive_doubling\nallreduce 1 4 any ring");
    let rules = Rc::new(rules.expect("a table"));
    let steps = CallId::ALL.map(|call| {
        rules.steps(
            call,
            Setting {
                ranks: 8,
                crowded: false,
            },
        )
    });
    let module = TunedModule {
        rules,
        forced: [None; CallId::ALL.len()],
        plan: steps.into(),
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
