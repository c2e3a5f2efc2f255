//! Every algorithm and every component against the plain definition of each call.

use super::case::{Case, Part, Random};
use crate::coll::CallId;
use crate::coll::algo::Algorithm;
use crate::comm::Comm;
use crate::engine::testing::Job;
use mpi_base::param::Source;

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
fn all_components_together_serve_everything_in_any_order_of_waiting() {
    for size in SIZES {
        exercise(&job(size, ""), 2);
    }
}
