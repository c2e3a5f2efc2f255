//! Tests of plugins' modules for communicators; the ranks are threads.

use super::{Shelf, guests};
use crate::Engine;
use crate::comm::{Comm, SplitKey};
use crate::datatype::{Named, Scratch};
use crate::plugin::{Catalogue, guest::BuiltIn};
use crate::suite::barrier::{self, Form};
use crate::testing::Job;
use crate::{Call, CallId, Table};
use mpi_base::param::{Params, Source};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Returns a job with the engine's components and those of a catalogue, with these parameter values.
pub(super) fn job(
    ranks: u32,
    gather: impl Fn() -> Catalogue + Send + Sync + 'static,
    set: &[(&str, &str)],
) -> Job {
    let mut params = Params::default();
    for (name, value) in set {
        params.set(name, value, Source::Environment);
    }
    let coll = move || {
        let mut components = crate::built_in();
        components.extend(gather().components());
        components
    };
    Job {
        params,
        coll: Box::new(coll),
        ..Job::of(ranks)
    }
}

fn built_in(table: BuiltIn) -> impl Fn() -> Catalogue + Send + Sync + 'static {
    move || Catalogue::gather(&[table], &[], &Params::default(), None)
}

fn linear(ranks: u32, set: &[(&str, &str)]) -> Job {
    let shelf = Shelf::new().with("coll_linear.so", &[]);
    job(ranks, move || shelf.gather(), set)
}

fn counter(ranks: u32, misbehave: &str) -> Job {
    let set = [("coll_counter_misbehave", misbehave)];
    job(ranks, built_in(guests::COUNTER), &set)
}

fn world(engine: &Engine) -> Comm {
    engine.world().expect("a world")
}

#[test]
fn a_c_plugin_serves_barriers_and_hands_some_down() {
    for hand_down in ["0", "3"] {
        let job = linear(5, &[("coll_linear_hand_down", hand_down)]);
        barrier::no_rank_leaves_before_all_have_entered(&job, "linear", Form::Blocking, 20);
    }
}

#[test]
fn what_a_plugin_does_not_have_the_next_one_serves() {
    // The C plugin `linear.c` has no function `barrier_start`.
    let job = linear(4, &[]);
    barrier::no_rank_leaves_before_all_have_entered(&job, "linear", Form::Mixed, 20);
}

#[test]
fn the_reason_of_a_refusal_is_kept() {
    let job = linear(2, &[("coll_linear_refuse", "MPI_COMM_WORLD")]);
    job.run(|engine| {
        let world = world(engine);
        let table = Table::chosen(&world).expect("chosen");
        assert_ne!(table.chain(CallId::Barrier).next(), Some("linear"));
        let why = table.refused().iter().find(|(name, _)| **name == *"linear");
        let (_, why) = why.expect("refused");
        assert!(
            why.0.contains("it was asked to refuse MPI_COMM_WORLD"),
            "{why}"
        );
    });
}

#[test]
fn a_plugin_follows_communicators_as_they_come_and_go() {
    counter(6, "").run(|engine| {
        let world = world(engine);
        for round in 0..5 {
            let key = SplitKey {
                color: Some(((world.rank() + round) % 2).into()),
                key: 0,
            };
            let half = engine
                .block_on(world.constructors().split(key))
                .expect("a split");
            let half = half.expect("each rank has a colour");
            let table = Table::chosen(&half).expect("chosen");
            assert_eq!(table.chain(CallId::Barrier).next(), Some("counter"));
            for _ in 0..7 {
                half.collectives()
                    .carry_out(Call::Barrier)
                    .expect("a barrier");
            }
        }
    });
}

#[test]
fn a_plugin_of_ours_holds_everyone_in_every_form() {
    for ranks in [1, 2, 7] {
        for form in [Form::Blocking, Form::Nonblocking, Form::Mixed] {
            let job = counter(ranks, "");
            barrier::no_rank_leaves_before_all_have_entered(&job, "counter", form, 30);
        }
    }
    barrier::barriers_in_flight_end_in_order(&counter(4, ""), "counter");
}

#[test]
fn a_blocking_barrier_may_come_between_started_ones() {
    counter(4, "").run(|engine| {
        let world = world(engine);
        let start = || world.collectives().begin(Call::Barrier).expect("started");
        for _ in 0..10 {
            let started = [start(), start()];
            world
                .collectives()
                .carry_out(Call::Barrier)
                .expect("a barrier");
            for req in started.iter().rev() {
                engine.wait(req).expect("ended");
            }
        }
    });
}

/// Returns the members' errors of a nonblocking barrier in which the test component makes the mistake `misbehave`.
fn complaints(misbehave: &str) -> Vec<String> {
    counter(2, misbehave).run(|engine| {
        let req = world(engine)
            .collectives()
            .begin(Call::Barrier)
            .expect("started");
        engine
            .wait(&req)
            .expect_err("it should have failed")
            .to_string()
    })
}

#[test]
fn a_panic_in_a_plugin_is_an_error_with_a_sentence() {
    for said in complaints("panic") {
        assert!(
            said.contains("counter") && said.contains("the counter lost count"),
            "{said}"
        );
    }
}

#[test]
fn a_plugin_cannot_block_inside_progress() {
    for said in complaints("block") {
        assert!(said.contains("inside progress"), "{said}");
    }
}

#[test]
fn a_started_barrier_can_be_handed_down() {
    let job = counter(3, "next");
    barrier::no_rank_leaves_before_all_have_entered(&job, "counter", Form::Mixed, 20);
}

fn waverer(ranks: u32, nodes: u32) -> Job {
    let mut job = job(ranks, built_in(guests::WAVERER), &[]);
    job.nodes = nodes;
    job
}

/// The barrier that was started first is passed down first,
/// although a later barrier could be passed down immediately.
#[test]
fn barriers_that_are_handed_down_late_do_not_overtake_each_other() {
    for nodes in [1, 2] {
        let entered = AtomicU32::new(0);
        waverer(4, nodes).run(|engine| {
            let world = world(engine);
            for round in 1..=5 {
                let first = world.collectives().begin(Call::Barrier).expect("started");
                if world.rank() % 2 == 1 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                entered.fetch_add(1, Ordering::SeqCst);
                world
                    .collectives()
                    .carry_out(Call::Barrier)
                    .expect("a barrier");
                let entered = entered.load(Ordering::SeqCst);
                assert!(entered >= 4 * round, "left when {entered} had entered");
                engine.wait(&first).expect("ended");
            }
        });
    }
}

/// While the barrier waits to be passed down, other calls progress and are not confused with the barrier,
/// even if they are started after it and complete before it.
#[test]
fn a_barrier_that_is_handed_down_late_does_not_mix_with_other_calls() {
    for (ranks, nodes) in [(4, 1), (4, 2), (7, 3)] {
        waverer(ranks, nodes).run(|engine| {
            let world = world(engine);
            for round in 0..10u32 {
                let root = round % world.size();
                let word = Scratch::new(1, &Named::UINT32.into()).expect("memory");
                let said = 4711 * (round + 1);
                if world.rank() == root {
                    word.all().unpack_at(0, &said.to_ne_bytes());
                }
                let bcast = Call::Bcast {
                    buf: word.all(),
                    root,
                };
                let barrier = world.collectives().begin(Call::Barrier).expect("started");
                let bcast = world.collectives().begin(bcast).expect("started");
                engine.wait(&bcast).expect("ended");
                engine.wait(&barrier).expect("ended");
                assert_eq!(word.all().as_send().to_vec(), said.to_ne_bytes());
            }
        });
    }
}

/// Plugins do not get the communicators that `han` creates for its steps.
#[test]
fn what_is_made_for_steps_is_offered_to_no_plugin() {
    waverer(5, 2).run(|engine| {
        let world = world(engine);
        let chain = |comm: &Comm| -> Vec<String> {
            let table = Table::chosen(comm).expect("chosen");
            table.chain(CallId::Barrier).map(str::to_owned).collect()
        };
        assert_eq!(chain(&world)[..2], ["waverer", "han"]);
        let part = engine.block_on(world.constructors().create_for_steps(world.group()));
        let part = part.expect("a part").expect("each rank is in it");
        assert!(!chain(&part).contains(&"waverer".into()));
    });
}
