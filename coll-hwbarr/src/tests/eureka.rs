//! Tests of rounds of the eureka line, also with a fault of the line or of its hardware.

use super::served::{served, served_until};
use super::*;
use std::time::Duration;

/// A round in which only rank `finder` raises the line: all ranks see this, and that it was the first.
fn round(comm: &Comm, finder: u32) {
    comm.eureka().begin().expect("a round");
    let is_finder = comm.rank() == finder;
    if is_finder {
        assert!(comm.eureka().raise().expect("raised"));
    }
    while !comm.eureka().test().expect("a look").0 {
        comm.engine().poll_once();
    }
    assert_eq!(comm.eureka().test().expect("a look"), (true, is_finder));
    assert_eq!(comm.eureka().end().expect("an end"), Some(finder));
}

#[test]
fn each_round_is_two_barriers_of_the_hardware_and_those_in_it_are_none() {
    let files = Files::new();
    let report = files.report();
    run(
        4,
        &[("port", "sim"), ("sim_report", text(&report))],
        |engine| {
            let world = world(engine);
            (0..10).for_each(|number| round(&world, number % 4));
            world.eureka().begin().expect("a round");
            (0..7).for_each(|_| blocking(&world));
            assert_eq!(world.eureka().end().expect("an end"), None);
            (0..3).for_each(|_| blocking(&world));
        },
    );
    // The end of the job is one more barrier.
    assert_eq!(files.count("barriers"), 2 * 11 + 3 + 1);
    assert_eq!(files.count("releases"), 2 * 11 + 3 + 1);
}

#[test]
fn a_line_that_is_stuck_at_one_node_leaves_its_rounds_to_the_memory() {
    run(3, &[("port", "line:1")], |engine| {
        let world = world(engine);
        assert_eq!(verdict(&world), Ok(()));
        for number in 0..6 {
            round(&world, number % 3);
            blocking(&world);
        }
    });
}

#[test]
fn a_rank_that_is_late_for_a_round_takes_it_into_the_memory() {
    run(4, &[("port", "sim"), ("timeout", "200ms")], |engine| {
        let world = world(engine);
        round(&world, 2);
        if world.rank() == 3 {
            std::thread::sleep(Duration::from_millis(1000));
        }
        (0..6).for_each(|number| round(&world, number % 4));
        blocking(&world);
    });
}

#[test]
fn rounds_go_over_a_served_line() {
    for ranks in [1, 2, 7] {
        served(ranks as usize, |text| {
            run(ranks, &[("port", text)], |engine| {
                let world = world(engine);
                assert_eq!(verdict(&world), Ok(()));
                (0..20).for_each(|number| round(&world, number % ranks));
            });
        });
    }
}

#[test]
fn a_served_board_that_goes_in_the_middle_of_a_round_leaves_the_later_ones_to_the_memory() {
    served_until(3, |text, end_server| {
        run(3, &[("port", text)], |engine| {
            let world = world(engine);
            round(&world, 1);
            world.eureka().begin().expect("a round");
            blocking(&world);
            if world.rank() == 0 {
                end_server();
            }
            blocking(&world);
            let message = world.eureka().raise().expect_err("no server").to_string();
            assert!(
                message.contains("the eureka line of MPI_COMM_WORLD: component hwbarr: ")
                    && message.contains(text),
                "{message}"
            );
            assert!(world.eureka().test().is_err());
            assert_eq!(world.eureka().end().expect("an end"), None);
            (0..6).for_each(|number| round(&world, number % 3));
        });
    });
}
