//! Every algorithm and every component against the plain definition of each call.

use super::barrier::{self, Form};
use super::case::{Case, Part, Random};
use crate::coll::algo::Algorithm;
use crate::coll::{Call, CallId, CallSet, Component, Cx, Module, Refusal, Running};
use crate::comm::Comm;
use crate::engine::testing::Job;
use mpi_base::param::Source;
use std::rc::Rc;

const SIZES: std::ops::RangeInclusive<u32> = 1..=17;

/// Runs `algorithm` on random cases of `call`, at once and as a request.
fn force(world: &Comm, call: CallId, algorithm: Algorithm, random: &mut Random) {
    const CASES: u32 = 4;
    let engine = world.engine();
    for number in 0..CASES {
        let case = Case::random(call, world.size(), random);
        let part = case.part(world.rank());
        if !algorithm.suits(&part.call) {
            continue;
        }
        let (cx, call) = (world.hidden(), part.call.clone());
        let running = async move { algorithm.run(&cx, call).await };
        if number % 2 == 0 {
            engine.block_on(running).expect("a collective");
        } else {
            let req = engine.spawn(Box::pin(running));
            engine.wait(&req).expect("the end of a collective");
        }
        part.check(&(algorithm, world.size(), &case));
    }
}

#[test]
fn every_algorithm_gives_what_the_definition_says() {
    for size in SIZES {
        Job::of(size).run(|engine| {
            let world = engine.world().expect("a world");
            let mut random = Random(u64::from(size));
            for call in CallId::ALL {
                for algorithm in Algorithm::serving(call) {
                    force(&world, call, algorithm, &mut random);
                }
            }
        });
    }
}

/// Runs random calls through whatever serves them in `job`: now one at a time, now several under way and waited for in any order.
fn exercise(job: &Job, seed: u64) {
    const LAPS: u32 = 12;
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let (me, size) = (world.rank(), world.size());
        // Decisions that all ranks share, and those that each makes for itself.
        let mut shared = Random(seed ^ u64::from(size));
        let mut own = Random(seed ^ u64::from(me) << 32);
        for _ in 0..LAPS {
            let mut flight: Vec<(Case, Part, _)> = Vec::new();
            for _ in 0..1 + shared.below(6) {
                let call = CallId::ALL[shared.below(CallId::ALL.len() as u64) as usize];
                let case = Case::random(call, size, &mut shared);
                let part = case.part(me);
                if shared.below(3) == 0 {
                    world.collective(part.call.clone()).expect("a collective");
                    part.check(&(size, &case));
                } else {
                    let req = world.icollective(part.call.clone()).expect("a collective");
                    flight.push((case, part, req));
                }
                if own.below(4) == 0 {
                    std::thread::yield_now();
                }
            }
            while !flight.is_empty() {
                let (case, part, req) = flight.swap_remove(own.below(flight.len() as u64) as usize);
                engine.wait(&req).expect("the end of a collective");
                part.check(&(size, &case));
            }
        }
        assert_eq!(engine.pml().requests().live(), 0);
    });
}

/// A job in which these components are asked, in the order of their priorities.
fn job(ranks: u32, coll: &str) -> Job {
    let mut job = Job::of(ranks);
    job.params.set("coll", coll, Source::Environment);
    job
}

#[test]
fn basic_serves_everything_in_any_order_of_waiting() {
    for size in SIZES {
        exercise(&job(size, "basic"), 1);
    }
}

#[test]
fn tuned_serves_everything_in_any_order_of_waiting() {
    for size in SIZES {
        exercise(&job(size, "tuned"), 3);
    }
}

#[test]
fn all_components_together_serve_everything_in_any_order_of_waiting() {
    for size in SIZES {
        exercise(&job(size, ""), 2);
    }
}

/// Blocking calls one after another, by ranks that are now ahead of each other and now behind.
fn one_after_another(job: &Job, seed: u64, calls: u32) {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let (me, size) = (world.rank(), world.size());
        let mut shared = Random(seed ^ u64::from(size));
        let mut own = Random(seed ^ u64::from(me) << 32);
        let mut call = CallId::Bcast;
        for _ in 0..calls {
            // Runs of one call, since what is kept from one to the next is what can go wrong.
            if shared.below(4) == 0 {
                call = CallId::ALL[shared.below(CallId::ALL.len() as u64) as usize];
            }
            let case = Case::random(call, size, &mut shared);
            let part = case.part(me);
            world.collective(part.call.clone()).expect("a collective");
            part.check(&(size, &case));
            for _ in 0..own.below(3) {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn short_calls_in_shared_memory_do_not_mix() {
    for gate in ["flags", "counter"] {
        for size in [2, 3, 5, 9, 17] {
            let mut job = job(size, "");
            job.params.set("coll_shm_gate", gate, Source::Environment);
            one_after_another(&job, 4, 400);
        }
    }
}

#[test]
fn calls_in_single_copies_do_not_mix() {
    // Every length goes through the others' memory, or only what is long, beside short calls in cells.
    for (from, gate) in [("0", "flags"), ("0", "counter"), ("2k", "flags")] {
        for size in [2, 3, 5, 9, 17] {
            let mut job = job(size, "");
            job.params.set("coll_shm_gate", gate, Source::Environment);
            let from_parameter = "coll_shm_single_copy_from";
            job.params.set(from_parameter, from, Source::Environment);
            one_after_another(&job, 5, 200);
        }
    }
}

#[test]
fn dissemination_holds_what_every_barrier_promises() {
    for ranks in [2, 3, 8, 17] {
        let job = job(ranks, "basic");
        barrier::nobody_leaves_before_all_have_entered(&job, "basic", Form::Mixed, 60);
    }
    barrier::a_late_rank_holds_everyone(&job(4, "basic"), "basic", Form::Mixed);
    barrier::barriers_in_flight_end_in_order(&job(5, "basic"), "basic");
    barrier::a_barrier_does_not_stop_messages(&job(5, "basic"), "basic", Form::Mixed);
}

#[test]
fn every_algorithm_for_barriers_holds_what_every_barrier_promises() {
    for algorithm in Algorithm::serving(CallId::Barrier) {
        for ranks in [2, 3, 8, 17] {
            let mut job = job(ranks, "tuned");
            job.params.set(
                "coll_tuned_barrier_algorithm",
                algorithm.name(),
                Source::Environment,
            );
            barrier::nobody_leaves_before_all_have_entered(&job, "tuned", Form::Mixed, 40);
        }
    }
}

/// A component whose barrier lets everybody through at once.
struct Open;

impl Component for Open {
    fn name(&self) -> &str {
        "open"
    }
    fn priority(&self) -> i32 {
        90
    }
    fn query(&self, _: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        Ok(Rc::new(Open))
    }
}

impl Module for Open {
    fn serves(&self) -> CallSet {
        CallSet::NONE.with(CallId::Barrier)
    }
    fn start(&self, _: Cx, _: Call) -> Running {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
#[should_panic(expected = "left barrier")]
fn a_barrier_that_holds_nobody_is_found_out() {
    let mut job = Job::of(4);
    job.coll = Box::new(|| vec![Box::new(Open)]);
    barrier::nobody_leaves_before_all_have_entered(&job, "open", Form::Mixed, 200);
}
