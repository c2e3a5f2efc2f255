//! The barrier suite: tests of properties that every barrier must have, whatever its algorithm.
//!
//! A component adds one line per test:
//! a function that returns a job of the given size in which the component carries out barriers.

use crate::comm::Comm;
use crate::datatype::Scratch;
use crate::engine::Engine;
use crate::pml::Mode;
use crate::pml::Sent;
use crate::testing::Job;
use crate::{Call, CallId, Table};
use mpi_base::random::SplitMix64;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How a test calls the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Calls `MPI_Barrier`.
    Blocking,
    /// Calls `MPI_Ibarrier` and waits.
    Nonblocking,
    /// Blocking in some rounds, nonblocking in others.
    Mixed,
}

/// Executes one barrier.
pub fn pass(comm: &Comm, form: Form, round: u32) {
    let blocking = match form {
        Form::Blocking => true,
        Form::Nonblocking => false,
        Form::Mixed => round.is_multiple_of(3),
    };
    if blocking {
        comm.collectives()
            .carry_out(Call::Barrier)
            .expect("a barrier");
    } else {
        let req = comm.collectives().begin(Call::Barrier).expect("a barrier");
        comm.engine().wait(&req).expect("the end of a barrier");
    }
}

/// Returns `MPI_COMM_WORLD`, after checking that the component `name` carries out its barriers.
fn world_of(engine: &Engine, name: &str) -> Comm {
    let world = engine.world().expect("a world");
    let table = Table::chosen(&world).expect("a table");
    let first = table.chain(CallId::Barrier).next();
    assert_eq!(first, Some(name), "{:?}", table.explain("the world"));
    world
}

/// Returns a pseudo-random number for a rank and a round, the same in every run.
fn scatter(rank: u32, round: u32) -> u64 {
    SplitMix64(u64::from(rank) << 32 | u64::from(round)).next_u64()
}

/// Delays a rank's arrival: in a sixteenth of the rounds by a sleep of less than 400 us, in a quarter by up to four yields.
fn dawdle(rank: u32, round: u32) {
    match scatter(rank, round) % 16 {
        0 => std::thread::sleep(Duration::from_micros(scatter(round, rank) % 400)),
        1..=4 => (0..scatter(round, rank) % 5).for_each(|_| std::thread::yield_now()),
        _ => {}
    }
}

/// Checks that when a rank leaves the barrier, every rank has entered it, however late the last one is.
pub fn no_rank_leaves_before_all_have_entered(job: &Job, name: &str, form: Form, rounds: u32) {
    let entered: Vec<AtomicU32> = (0..job.ranks).map(|_| AtomicU32::new(0)).collect();
    job.run(|engine| {
        let world = world_of(engine, name);
        let me = world.rank();
        for round in 1..=rounds {
            dawdle(me, round);
            entered[me as usize].store(round, Ordering::SeqCst);
            pass(&world, form, round);
            for (rank, at) in entered.iter().enumerate() {
                let at = at.load(Ordering::SeqCst);
                assert!(
                    at >= round,
                    "rank {me} left barrier {round} while rank {rank} was in {at}"
                );
            }
        }
    });
}

/// Checks that no rank leaves the barrier before the last one enters it, and that every rank leaves it then.
pub fn a_late_rank_holds_everyone(job: &Job, name: &str, form: Form) {
    let come = AtomicU32::new(0);
    job.run(|engine| {
        let world = world_of(engine, name);
        for late in 0..world.size() {
            if world.rank() == late {
                std::thread::sleep(Duration::from_millis(15));
                come.store(late + 1, Ordering::SeqCst);
            }
            pass(&world, form, late);
            assert!(
                come.load(Ordering::SeqCst) > late,
                "rank {late} had not come"
            );
        }
    });
}

/// Checks that several barriers in progress complete in the order of their calls, in whatever order the ranks wait for them.
pub fn barriers_in_flight_end_in_order(job: &Job, name: &str) {
    const FLIGHT: usize = 4;
    let entered: Vec<AtomicU32> = (0..job.ranks).map(|_| AtomicU32::new(0)).collect();
    job.run(|engine| {
        let world = world_of(engine, name);
        let me = world.rank();
        for lap in 0..8u32 {
            let mut flight = Vec::new();
            for number in 1..=FLIGHT as u32 {
                dawdle(me, lap * 100 + number);
                entered[me as usize].store(lap * FLIGHT as u32 + number, Ordering::SeqCst);
                let req = world.collectives().begin(Call::Barrier).expect("a barrier");
                flight.push((lap * FLIGHT as u32 + number, req));
            }
            while !flight.is_empty() {
                let which = scatter(me, lap) as usize % flight.len();
                let (number, req) = flight.swap_remove(which);
                engine.wait(&req).expect("the end of a barrier");
                for at in &entered {
                    assert!(at.load(Ordering::SeqCst) >= number);
                }
            }
        }
    });
}

/// Checks that a rank can wait in the barrier while its large message is being sent.
pub fn a_barrier_does_not_stop_messages(job: &Job, name: &str, form: Form) {
    const LARGE: i64 = 1 << 20;
    job.run(|engine| {
        let world = world_of(engine, name);
        let (me, size) = (world.rank(), world.size());
        let (to, from) = ((me + 1) % size, (me + size - 1) % size);
        let space = Scratch::bytes(LARGE).expect("memory").all();
        // Even ranks enter the barrier while they send; odd ranks enter it after they have received.
        let buf = space.as_send();
        if me.is_multiple_of(2) && to != me && !to.is_multiple_of(2) {
            let sent = world
                .p2p()
                .isend(buf, to as i32, 1, Mode::Synchronous)
                .expect("a send");
            pass(&world, form, 0);
            if let Sent::Pending(req) = sent {
                engine.wait(&req).expect("the end of a send");
            }
        } else {
            if !me.is_multiple_of(2) {
                world.p2p().recv(space, from as i32, 1).expect("a message");
            }
            pass(&world, form, 0);
        }
    });
}

/// Checks that communicators execute their barriers independently of each other,
/// and that communicators can be created and freed at the same time.
pub fn communicators_do_not_meet(job: &Job, rounds: u32) {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        for round in 0..rounds {
            let twin = engine
                .block_on(world.constructors().dup())
                .expect("a duplicate");
            let first = twin.collectives().begin(Call::Barrier).expect("a barrier");
            dawdle(world.rank(), round);
            let second = world.collectives().begin(Call::Barrier).expect("a barrier");
            engine.wait(&second).expect("the end of a barrier");
            engine.wait(&first).expect("the end of a barrier");
        }
    });
}
