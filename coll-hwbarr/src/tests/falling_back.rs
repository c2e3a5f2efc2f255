//! Tests of the fallback: if a barrier is not released in time, all members continue in software.

use super::*;
use mpi_core::datatype::Scratch;
use mpi_core::pml::Mode;
use mpi_core::pml::Sent;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SOON: [(&str, &str); 2] = [("port", "sim"), ("timeout", "200ms")];

/// A timeout in which every rank enters, even if it waits for a core of a busy machine.
const IN_A_SECOND: [(&str, &str); 2] = [("port", "sim"), ("timeout", "1s")];

/// Sleeps until all other members have stopped using the hardware.
fn oversleep() {
    std::thread::sleep(Duration::from_millis(1000));
}

#[test]
fn a_node_that_is_too_late_still_holds_everyone() {
    // The jobs sleep most of the time, so they run in parallel.
    std::thread::scope(|jobs| {
        for late in [0, 2, 4] {
            for form in [Form::Blocking, Form::Nonblocking] {
                jobs.spawn(move || too_late(late, form));
            }
        }
    });
}

fn too_late(late: u32, form: Form) {
    let (come, files) = (AtomicBool::new(false), Files::new());
    let report = files.report();
    let set = [&IN_A_SECOND[..], &[("sim_report", text(&report))]].concat();
    run(5, &set, |engine| {
        let world = world(engine);
        (0..10).for_each(|round| barrier::pass(&world, form, round));
        if world.rank() == late {
            std::thread::sleep(Duration::from_millis(2500));
            come.store(true, Ordering::SeqCst);
        }
        barrier::pass(&world, form, 10);
        assert!(come.load(Ordering::SeqCst), "rank {late} had not come");
        (11..20).for_each(|round| barrier::pass(&world, form, round));
    });
    assert!((10..=11).contains(&files.count("barriers")));
    assert_eq!(files.count("releases"), files.count("barriers"));
}

#[test]
fn barriers_that_were_started_before_are_ended_in_software_too() {
    run(4, &SOON, |engine| {
        let world = world(engine);
        if world.rank() == 3 {
            oversleep();
        }
        let start = |_| world.collectives().begin(Call::Barrier).expect("started");
        let started: Vec<_> = (0..5).map(start).collect();
        blocking(&world);
        for req in started {
            engine.wait(&req).expect("a barrier");
        }
        (0..10).for_each(|_| blocking(&world));
    });
}

#[test]
fn without_a_limit_it_waits_for_ever() {
    let files = Files::new();
    let report = files.report();
    let set = [
        ("port", "sim"),
        ("timeout", "0"),
        ("sim_report", text(&report)),
    ];
    run(3, &set, |engine| {
        if engine.me() == 1 {
            oversleep();
        }
        blocking(&world(engine));
    });
    assert_eq!(files.count("releases"), 2);
}

/// One member misses a release that all others have seen. The others then wait for its messages,
/// and for each other in barriers of another communicator.
#[test]
fn members_that_were_released_take_part_whatever_they_wait_for() {
    for deaf in [0, 2] {
        let port = format!("deaf:{deaf}");
        run(3, &[("port", &port), ("timeout", "200ms")], |engine| {
            let world = world(engine);
            let twin = engine
                .block_on(world.constructors().dup())
                .expect("a duplicate");
            let (me, size) = (world.rank(), world.size());
            let (next, before) = ((me + 1) % size, (me + size - 1) % size);
            let [out, buffer] = [(); 2].map(|()| Scratch::bytes(8).expect("memory"));
            for round in 0..40 {
                blocking(&world);
                let sent =
                    world
                        .p2p()
                        .isend(out.all().as_send(), next as i32, round, Mode::Standard);
                let received = world.p2p().recv(buffer.all(), before as i32, round);
                assert_eq!(received.expect("a message").bytes, 8);
                if let Sent::Pending(req) = sent.expect("sent") {
                    engine.wait(&req).expect("sent");
                }
                blocking(&twin);
            }
        });
    }
}

#[test]
fn giving_up_at_the_moment_of_the_release_agrees_with_it() {
    // The timeout is close to a barrier's duration: members stop before, during and after a release.
    for limit in ["1us", "20us", "100us", "500us"] {
        let set = [("port", "sim"), ("self_test", "0"), ("timeout", limit)];
        for form in [Form::Blocking, Form::Mixed] {
            let job = job(4, &set);
            barrier::no_rank_leaves_before_all_have_entered(&job, "hwbarr", form, 100);
        }
    }
}
