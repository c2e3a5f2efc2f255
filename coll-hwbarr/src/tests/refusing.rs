//! Tests of the component's refusals and of their messages.

use super::*;
use mpi_core::comm::SplitKey;

/// Returns rank 0's reason for refusing `MPI_COMM_WORLD` with these parameters.
fn refusal(ranks: u32, set: &[(&str, &str)]) -> String {
    run(ranks, set, |engine| verdict(&world(engine)))
        .remove(0)
        .expect_err("it should have refused")
}

#[test]
fn without_a_port_it_says_so() {
    assert!(refusal(2, &[]).contains("no port is configured"));
}

#[test]
fn a_setting_that_means_nothing_is_named_with_its_value() {
    assert!(refusal(2, &[("port", "lpt1")]).contains("coll_hwbarr_port is \"lpt1\""));
    let timeout = refusal(2, &[("port", "sim"), ("timeout", "soon")]);
    assert!(
        timeout.contains("coll_hwbarr_timeout is \"soon\", but a time such as"),
        "{timeout}"
    );
}

#[test]
fn more_ranks_than_wires_are_refused() {
    let message = refusal(65, &[("port", "sim")]);
    assert!(
        message.contains("there are 65 ranks, and the barrier has at most 64 wires"),
        "{message}"
    );
}

#[test]
fn every_communicator_but_the_world_is_left_to_the_next_component() {
    run(4, &[("port", "sim")], |engine| {
        let world = world(engine);
        assert_eq!(verdict(&world), Ok(()));
        let half = SplitKey {
            color: Some(u64::from(world.rank() % 2)),
            key: 0,
        };
        let half = engine
            .block_on(world.constructors().split(half))
            .expect("a split")
            .expect("a half");
        let copy = engine.block_on(world.constructors().dup()).expect("a copy");
        for comm in [&half, &copy, &engine.process().myself().expect("alone")] {
            let message = verdict(comm).expect_err("it serves the world only");
            assert!(
                message.contains("it belongs to MPI_COMM_WORLD"),
                "{message}"
            );
            blocking(comm);
        }
        blocking(&world);
    });
}

#[test]
fn a_wire_that_floats_is_found_and_its_node_is_named() {
    for late in ["1", "5"] {
        let message = refusal(
            5,
            &[
                ("port", "floating:3"),
                ("self_test", late),
                ("timeout", "1s"),
            ],
        );
        assert!(
            message.contains("node 3: the barrier followed this node's wire"),
            "{message}"
        );
    }
}

#[test]
fn a_wire_that_is_cut_is_found_before_the_program_runs() {
    let message = refusal(4, &[("port", "cut:2"), ("timeout", "300ms")]);
    assert!(
        message.contains("a wire is cut, stuck or inverted"),
        "{message}"
    );
}
