//! Tests that the choice between two protocols follows their costs: hardly any data use the more expensive protocol,
//! neither at the start nor after the costs have been exchanged.
//!
//! The costs are global to the process. So the tests run one after the other, and this program contains no other tests.

use mpi_core::Engine;
use mpi_core::coll::Call;
use mpi_core::comm::Comm;
use mpi_core::datatype::Scratch;
use mpi_core::pml::Mode;
use mpi_core::testing::Job;
use mpi_transport::trial::{Either, Way, costs};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Message sizes in bytes: one in the range of the eager pipeline, and one above this range,
/// where sender and receiver copy together.
const SIZES: [i64; 2] = [64 << 10, 256 << 10];
/// The costs of a sample of the cheap protocol, and of the expensive protocol.
const QUICK: Duration = Duration::from_micros(10);
const SLOW: Duration = Duration::from_micros(200);
/// The number of calls after which the first choice has been made: long data try the second protocol after 128 calls.
const FIRST: u32 = 192;
/// The number of calls after which the choice follows a change: the slower protocol is measured again after some hundred calls.
const FOLLOWED: u32 = 2 * 2048;
/// The same number for the eager pipeline: of 8192 messages 128 use rendezvous, and only these measure the cost of single copies.
const PIPELINE_FOLLOWED: u32 = 2 * 8192;
/// The number of calls whose protocols are then counted; at most `SLOW_ONES` of them use the slower protocol:
/// one in 256, and the calls of the barriers.
const JUDGED: u32 = 1000;
const SLOW_ONES: u64 = 12;

fn world(engine: &Engine) -> Comm {
    engine.world().expect("a world")
}

/// A function that calls the measured operation once.
type One = fn(&Comm, &Scratch);

/// Sends one message in each direction.
fn dialogue(world: &Comm, buffer: &Scratch) {
    let other = 1 - world.rank() as i32;
    for turn in 0..2 {
        match world.rank() == turn {
            true => world
                .p2p()
                .send(buffer.all().as_send(), other, 0, Mode::Standard)
                .expect("sent"),
            false => drop(world.p2p().recv(buffer.all(), other, 0).expect("received")),
        }
    }
}

/// Broadcasts the buffer; the test repeats the call without a barrier between the calls.
fn row(world: &Comm, buffer: &Scratch) {
    let call = Call::Bcast {
        buf: buffer.all(),
        root: 0,
    };
    world.collectives().carry_out(call).expect("a bcast");
}

fn slow_down(slow: Way) {
    for way in Way::BOTH {
        costs::set(way, if way == slow { SLOW } else { QUICK });
    }
}

/// Returns all combinations of call, size, and protocol that is slow at the start.
fn settings() -> impl Iterator<Item = (&'static str, One, i64, Way)> {
    let calls: [(&str, One); 2] = [("dialogue", dialogue), ("row", row)];
    let sized = calls
        .into_iter()
        .flat_map(|(name, call)| SIZES.map(|bytes| (name, call, bytes)));
    sized.flat_map(|(name, call, bytes)| Way::BOTH.map(|first| (name, call, bytes, first)))
}

/// Asserts for one setting that the slower protocol is avoided, at the start and after the costs have been exchanged.
fn is_followed((name, call, bytes, first): (&str, One, i64, Way)) {
    Job::of(2).run(|engine| {
        let (world, buffer) = (world(engine), Scratch::bytes(bytes).expect("memory"));
        let meet = || world.collectives().carry_out(Call::Barrier).expect("a barrier");
        let followed = match (name, bytes) {
            ("dialogue", bytes) if bytes == SIZES[0] => PIPELINE_FOLLOWED,
            _ => FOLLOWED,
        };
        for (slow, learning) in [(first, FIRST), (first.other(), followed)] {
            meet();
            slow_down(slow);
            meet();
            (0..learning).for_each(|_| call(&world, &buffer));
            meet();
            let before = Way::BOTH.map(costs::taken);
            meet();
            (0..JUDGED).for_each(|_| call(&world, &buffer));
            meet();
            let seen = |way: Way| costs::taken(way) - before[way.index()];
            let told = || format!("{JUDGED} calls of a {name} of {bytes} bytes after {learning}, {slow:?} slow: {:?}", Way::BOTH.map(seen));
            assert!(seen(slow) <= SLOW_ONES, "{}", told());
            // Messages of the eager pipeline are not counted by `costs::taken`; all samples of collectives are.
            let counted = name == "row";
            assert!(!counted || seen(slow.other()) >= u64::from(JUDGED), "{}", told());
        }
    });
}

/// Serialises the tests, because the costs are global to the process.
static ALONE: Mutex<()> = Mutex::new(());

/// Tests each call with each size; at 64 KiB the first protocol is slow at the start, at 256 KiB the second.
#[test]
fn hardly_any_data_go_the_way_that_costs_more_also_after_a_change() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let half = |(.., bytes, first): &(&str, One, i64, Way)| {
        let slow_at_the_start = Way::BOTH[usize::from(*bytes != SIZES[0])];
        *first == slow_at_the_start
    };
    settings().filter(half).for_each(is_followed);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn whichever_costs_more_at_first_hardly_any_data_go_that_way() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    settings().for_each(is_followed);
}
