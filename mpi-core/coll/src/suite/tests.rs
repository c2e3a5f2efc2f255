//! Tests of every algorithm and every component against the definition of each call.

use super::barrier::{self, Form};
use super::case::{Case, Part};
use crate::algo::Algorithm;
use crate::comm::{Comm, SplitKey};
use crate::engine::Engine;
use crate::request::Req;
use crate::testing::Job;
use crate::{Call, CallId, CallSet, Component, Invocation, Module, Refusal, Running};
use mpi_base::param::Source;
use mpi_base::random::SplitMix64;
use mpi_engine::buffered::Buffer;
use mpi_engine::persistent::{Operation, Persistent};
use std::rc::Rc;
use std::time::Duration;

const SIZES: std::ops::RangeInclusive<u32> = 1..=17;

/// Sizes at which trees or numbers of rounds change: powers of two, their neighbours, and odd numbers.
/// The long tests use all of [`SIZES`].
const TYPICAL: [u32; 6] = [1, 2, 3, 5, 8, 9];

/// Numbers of ranks for long series of calls in shared memory.
const FEW: [u32; 3] = [2, 5, 9];
const MORE: [u32; 5] = [2, 3, 5, 9, 17];

/// Runs `algorithm` on random cases of `call`, alternately as a blocking call and as a request.
fn force(world: &Comm, call: CallId, algorithm: Algorithm, random: &mut SplitMix64) {
    const CASES: u32 = 4;
    let engine = world.engine();
    for number in 0..CASES {
        let case = Case::random(call, world.size(), random);
        let part = case.part(world.rank());
        if !algorithm.suits(&part.call) {
            continue;
        }
        let (invocation, call) = (
            Invocation::from(&world.internal().conversation()),
            part.call.clone(),
        );
        let running = async move { algorithm.run(&invocation, &call).await };
        if number % 2 == 0 {
            engine.block_on(running).expect("a collective");
        } else {
            let req = engine.operations().start(Box::pin(running));
            engine.wait(&req).expect("the end of a collective");
        }
        part.check(&(algorithm, world.size(), &case));
    }
}

#[test]
fn every_algorithm_gives_what_the_definition_says() {
    algorithms(&[1, 2, 3, 4, 5, 7, 8]);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn every_algorithm_gives_what_the_definition_says_at_all_sizes() {
    algorithms(&SIZES.collect::<Vec<_>>());
}

fn algorithms(sizes: &[u32]) {
    for &size in sizes {
        Job::of(size).run(|engine| {
            let world = engine.world().expect("a world");
            let mut random = SplitMix64(u64::from(size));
            for call in CallId::ALL {
                for algorithm in Algorithm::serving(call) {
                    force(&world, call, algorithm, &mut random);
                }
            }
        });
    }
}

enum Flight {
    Nonblocking(Req),
    Persistent(Box<Persistent>),
}

impl Flight {
    fn land(self, engine: &Engine) {
        match self {
            Flight::Nonblocking(req) => {
                engine.wait(&req).expect("the end of a collective");
            }
            Flight::Persistent(mut persistent) => {
                engine.wait_until(|| persistent.is_complete());
                persistent.finish().expect("the end of a collective");
            }
        }
    }
}

/// Returns `MPI_COMM_WORLD`, a duplicate of it, and a part of it with another order of ranks.
fn communicators(engine: &Engine) -> Vec<Comm> {
    let world = engine.world().expect("a world");
    let twin = engine
        .block_on(world.constructors().dup())
        .expect("a duplicate");
    let me = world.rank();
    let part = SplitKey {
        color: Some(u64::from(me % 2)),
        key: -(me as i32),
    };
    let part = engine
        .block_on(world.constructors().split(part))
        .expect("a part");
    [world, twin].into_iter().chain(part).collect()
}

/// Makes random calls on several communicators of `job`, with the components selected there:
/// one at a time, or several in progress with waits in any order, by ranks that are sometimes late.
pub(crate) fn exercise(job: &Job, seed: u64) {
    const LAPS: u32 = 12;
    job.run(|engine| {
        let comms = communicators(engine);
        let me = engine.world().expect("a world").rank();
        // `shared` gives the random numbers for decisions that are equal on all ranks, `own` those for this rank's decisions.
        let mut shared = SplitMix64(seed ^ u64::from(comms[0].size()));
        let mut own = SplitMix64(seed ^ u64::from(me) << 32);
        for _ in 0..LAPS {
            let mut flights: Vec<(Case, Part, Flight)> = Vec::new();
            for _ in 0..1 + shared.below(6) {
                let comm = &comms[shared.below(comms.len() as u64) as usize];
                let call = CallId::ALL[shared.below(CallId::ALL.len() as u64) as usize];
                // The parts of the world may have different sizes. So every rank takes exactly one number from `shared` per call.
                let mut drawn = SplitMix64(shared.next_u64());
                let case = Case::random(call, comm.size(), &mut drawn);
                let part = case.part(comm.rank());
                match own.below(16) {
                    0 => std::thread::sleep(Duration::from_micros(own.below(300))),
                    1..=4 => std::thread::yield_now(),
                    _ => {}
                }
                match shared.below(3) {
                    0 => {
                        comm.collectives()
                            .carry_out(part.call.clone())
                            .expect("a collective");
                        part.check(&(comm.name(), comm.size(), &case));
                    }
                    1 => {
                        let req = comm
                            .collectives()
                            .begin(part.call.clone())
                            .expect("a collective");
                        flights.push((case, part, Flight::Nonblocking(req)));
                    }
                    _ => {
                        let call = Operation::Collective(part.call.clone());
                        let mut persistent = Persistent::new(comm, call);
                        persistent.start(&Buffer::default()).expect("a collective");
                        flights.push((case, part, Flight::Persistent(Box::new(persistent))));
                    }
                }
            }
            while !flights.is_empty() {
                let which = own.below(flights.len() as u64) as usize;
                let (case, part, flight) = flights.swap_remove(which);
                flight.land(engine);
                part.check(&case);
            }
        }
        drop(comms);
        assert_eq!(engine.pml().requests().live(), 0);
    });
}

#[test]
fn a_persistent_collective_started_again_gives_the_same_again() {
    for size in [1, 2, 5] {
        Job::of(size).run(|engine| {
            let world = engine.world().expect("a world");
            let mut random = SplitMix64(7);
            for call in CallId::ALL {
                let case = Case::random(call, size, &mut random);
                if case.is_in_place() {
                    // Cases with MPI_IN_PLACE are not persistent,
                    // because the first start overwrites the input.
                    continue;
                }
                let part = case.part(world.rank());
                let operation = Operation::Collective(part.call.clone());
                let mut persistent = Persistent::new(&world, operation);
                for _ in 0..3 {
                    persistent.start(&Buffer::default()).expect("a collective");
                    engine.wait_until(|| persistent.is_complete());
                    persistent.finish().expect("the end of a collective");
                    part.check(&case);
                }
            }
        });
    }
}

/// `tuned` runs every algorithm that its parameter forces, blocking and nonblocking.
#[test]
fn every_algorithm_forced_by_its_parameter_is_the_one_that_serves() {
    for call in CallId::ALL {
        for algorithm in Algorithm::serving(call) {
            let parameter = format!("coll_tuned_{call}_algorithm");
            let job = job(3, "tuned").with(&parameter, algorithm.name());
            job.run(|engine| {
                let world = engine.world().expect("a world");
                let mut random = SplitMix64(11);
                let case = Case::random(call, 3, &mut random);
                let part = case.part(world.rank());
                world
                    .collectives()
                    .carry_out(part.call.clone())
                    .expect("a collective");
                part.check(&(algorithm, &case));
            });
        }
    }
}

/// Returns a job with these components, in the order of their priorities.
fn job(ranks: u32, coll: &str) -> Job {
    let mut job = Job::of(ranks);
    job.params.set("coll", coll, Source::Environment);
    job
}

#[test]
fn basic_serves_everything_in_any_order_of_waiting() {
    for size in TYPICAL {
        exercise(&job(size, "basic"), 1);
    }
}

#[test]
fn tuned_serves_everything_in_any_order_of_waiting() {
    for size in TYPICAL {
        exercise(&job(size, "tuned"), 3);
    }
}

#[test]
fn checked_calls_give_what_unchecked_ones_give() {
    for size in [2, 3, 8] {
        exercise(&job(size, "").with("coll_base_check", "true"), 6);
    }
}

#[test]
fn all_components_together_serve_everything_in_any_order_of_waiting() {
    for size in TYPICAL {
        exercise(&job(size, ""), 2);
    }
}

/// Makes a series of blocking calls; ranks are alternately ahead of each other.
fn one_after_another(job: &Job, seed: u64, calls: u32) {
    // A call is usually repeated, since errors come from state that is kept between calls.
    in_a_row(job, seed, calls, |call, random| match random.below(4) {
        0 => CallId::ALL[random.below(CallId::ALL.len() as u64) as usize],
        _ => call,
    });
}

fn in_a_row(
    job: &Job,
    seed: u64,
    calls: u32,
    next: impl Fn(CallId, &mut SplitMix64) -> CallId + Sync,
) {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let (me, size) = (world.rank(), world.size());
        let mut shared = SplitMix64(seed ^ u64::from(size));
        let mut own = SplitMix64(seed ^ u64::from(me) << 32);
        let mut call = CallId::Bcast;
        for _ in 0..calls {
            call = next(call, &mut shared);
            let case = Case::random(call, size, &mut shared);
            let part = case.part(me);
            world
                .collectives()
                .carry_out(part.call.clone())
                .expect("a collective");
            part.check(&(size, &case));
            for _ in 0..own.below(3) {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn all_components_serve_everything_at_all_sizes() {
    for size in SIZES {
        for (components, seed) in [("basic", 1), ("tuned", 3), ("", 2)] {
            exercise(&job(size, components), seed);
        }
    }
}

#[test]
fn short_calls_in_shared_memory_do_not_mix() {
    short_calls(&FEW, 60);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn many_short_calls_in_shared_memory_do_not_mix() {
    short_calls(&MORE, 1000);
}

fn short_calls(sizes: &[u32], calls: u32) {
    for occupancy in ["dedicated", "oversubscribed"] {
        for &size in sizes {
            let mut job = job(size, "");
            job.params
                .set("coll_shm_occupancy", occupancy, Source::Environment);
            one_after_another(&job, 4, calls);
        }
    }
}

#[test]
fn calls_in_single_copies_do_not_mix() {
    single_copies(&FEW, 60);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn many_calls_in_single_copies_do_not_mix() {
    single_copies(&MORE, 1000);
}

fn single_copies(sizes: &[u32], calls: u32) {
    // Single copies for nearly all lengths, or only for long data while short data are sent through cells.
    for (cell, occupancy) in [
        ("1", "dedicated"),
        ("1", "oversubscribed"),
        ("2k", "dedicated"),
    ] {
        for &size in sizes {
            let mut job = job(size, "");
            job.params
                .set("coll_shm_occupancy", occupancy, Source::Environment);
            let job = job
                .with("coll_shm_single_copy_min", "0")
                .with("coll_shm_protocol", "copies")
                .with("coll_shm_cell_size", cell);
            one_after_another(&job, 5, calls);
        }
    }
}

/// Long data are sent in pieces always, never or in some calls, which are the same on all members.
#[test]
fn long_calls_do_not_mix_whichever_way_they_go() {
    long_calls(&[3], 400);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn long_calls_do_not_mix_at_more_sizes() {
    long_calls(&[2, 3, 4, 9], 800);
}

fn long_calls(sizes: &[u32], calls: u32) {
    const CUT: [CallId; 11] = [
        CallId::Bcast,
        CallId::Gather,
        CallId::Scatter,
        CallId::Allgather,
        CallId::Allgatherv,
        CallId::Alltoall,
        CallId::Reduce,
        CallId::Allreduce,
        CallId::ReduceScatterBlock,
        CallId::Scan,
        CallId::Exscan,
    ];
    for way in ["measured", "pieces", "copies"] {
        for occupancy in ["dedicated", "oversubscribed"] {
            for &size in sizes {
                let job = job(size, "")
                    .with("coll_shm_occupancy", occupancy)
                    .with("coll_shm_cell_size", "4k")
                    .with("coll_shm_protocol", way);
                // Repeats a call often enough to try each protocol.
                in_a_row(&job, 6, calls, |call, random| match random.below(40) {
                    0 => CUT[random.below(CUT.len() as u64) as usize],
                    _ => call,
                });
            }
        }
    }
}

#[test]
fn requests_in_shared_memory_end_in_any_order() {
    // The cases mix short and long data with each protocol, and requests with blocking calls.
    for (cell, occupancy, way) in [
        ("0", "dedicated", "pieces"),
        ("0", "oversubscribed", "pieces"),
        ("4k", "dedicated", "measured"),
        ("1", "dedicated", "copies"),
        ("1", "oversubscribed", "copies"),
    ] {
        for size in [2, 3, 5, 9] {
            let job = job(size, "")
                .with("coll_shm_occupancy", occupancy)
                .with("coll_shm_single_copy_min", "0")
                .with("coll_shm_protocol", way)
                .with("coll_shm_cell_size", cell);
            exercise(&job, 8);
        }
    }
}

/// There are more requests in progress than cells; the waits are in the reverse order.
#[test]
fn more_requests_than_cells_wait_for_room_and_lose_nothing() {
    const FLIGHTS: usize = 23;
    for occupancy in ["dedicated", "oversubscribed"] {
        for size in [2, 5] {
            job(size, "")
                .with("coll_shm_occupancy", occupancy)
                .run(|engine| {
                    let world = engine.world().expect("a world");
                    let mut random = SplitMix64(u64::from(size));
                    for call in [
                        CallId::Bcast,
                        CallId::Gather,
                        CallId::Gatherv,
                        CallId::Scatterv,
                        CallId::Alltoallv,
                        CallId::Reduce,
                        CallId::Allreduce,
                        CallId::Alltoall,
                        CallId::ReduceScatter,
                        CallId::ReduceScatterBlock,
                        CallId::Scan,
                        CallId::Exscan,
                    ] {
                        let mut flights = Vec::new();
                        for _ in 0..FLIGHTS {
                            let case = Case::random(call, size, &mut random);
                            let part = case.part(world.rank());
                            let req = world
                                .collectives()
                                .begin(part.call.clone())
                                .expect("a collective");
                            flights.push((case, part, req));
                        }
                        while let Some((case, part, req)) = flights.pop() {
                            engine.wait(&req).expect("the end of a collective");
                            part.check(&case);
                        }
                    }
                });
        }
    }
}

#[test]
fn dissemination_holds_what_every_barrier_promises() {
    for ranks in [2, 3, 8, 17] {
        let job = job(ranks, "basic");
        barrier::no_rank_leaves_before_all_have_entered(&job, "basic", Form::Mixed, 60);
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
            barrier::no_rank_leaves_before_all_have_entered(&job, "tuned", Form::Mixed, 40);
        }
    }
}

/// A component whose barrier is wrong: it releases every rank immediately.
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
    fn start(&self, _: Invocation, _: Call) -> Running {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
#[should_panic(expected = "left barrier")]
fn a_barrier_that_holds_no_rank_fails_the_suite() {
    let mut job = Job::of(4);
    job.coll = Box::new(|| vec![Box::new(Open)]);
    barrier::no_rank_leaves_before_all_have_entered(&job, "open", Form::Mixed, 200);
}
