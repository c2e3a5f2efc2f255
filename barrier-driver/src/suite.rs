//! Conformance tests for ports. A port implements [`Rig`] and instantiates the tests: `port_suite!(MyRig);`.
//!
//! The nodes of a rig are threads, so the tests run in one process;
//! a port that also works between processes has separate tests for this.
//! The tests measure no time: waits have a limit only so that a broken port fails instead of hanging.

use crate::{InputEvents, SelfTest, ToggleBarrier, WaitError, self_test};
use core::fmt::Debug;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use std::convert::Infallible;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// A barrier and the wires of its nodes, real or simulated.
pub trait Rig: Sync {
    /// The error type of the pins.
    type Error: Debug + embedded_hal::digital::Error + Send;
    /// The wire to the barrier.
    type Out: OutputPin<Error = Self::Error> + Send;
    /// The wire from the barrier.
    type In: InputPin<Error = Self::Error> + Send;

    /// Returns a barrier of `nodes` nodes in its state after power-on.
    fn build(nodes: usize) -> Self;

    /// Returns the wires of one node; may be called again when the earlier pins have been dropped.
    fn wires(&self, node: usize) -> (Self::Out, Self::In);

    /// Returns the number of times that the barrier has released its nodes.
    fn releases(&self) -> u64;
}

/// Instantiates the tests of this module for the given [`Rig`].
#[macro_export]
macro_rules! port_suite {
    ($rig:ty) => {
        $crate::port_suite!(@ $rig:
            no_rank_leaves_before_all_have_entered,
            every_barrier_is_one_release,
            a_late_node_holds_everyone,
            open_clears_what_an_aborted_job_left,
            closing_withdraws_an_arrival,
            a_panic_withdraws_an_arrival,
            a_wait_has_a_limit_and_can_be_resumed,
            good_wires_pass_the_self_test,
        );
    };
    (@ $rig:ty: $($claim:ident,)*) => {
        $(
            #[test]
            fn $claim() {
                $crate::suite::$claim::<$rig>();
            }
        )*
    };
}

/// Instantiates the tests of sleeping for the given [`Rig`], whose input implements [`InputEvents`], with or without wake-ups.
#[macro_export]
macro_rules! sleeper_suite {
    ($rig:ty) => {
        $crate::port_suite!(@ $rig:
            a_sleeper_is_woken_by_the_release,
            a_sleep_has_a_limit_and_can_be_resumed,
        );
    };
}

/// Time limit of every wait: far longer than any wait in a test, so only a broken port reaches it.
const LIMIT: Duration = Duration::from_secs(30);

/// Limit of sleeps in tests of wake-ups:
/// longer than [`LIMIT`], so the late node's limit expires before a sleeper that missed its wake-up continues.
const OVERSLEPT: Duration = Duration::from_secs(40);

type Node<R> = ToggleBarrier<<R as Rig>::Out, <R as Rig>::In>;

fn never_fails() -> Result<(), Infallible> {
    Ok(())
}

/// Opens all nodes from one thread, so no fence between threads is needed.
fn open_all<R: Rig>(rig: &R, nodes: usize) -> Vec<Node<R>> {
    (0..nodes).map(|node| open::<R>(rig, node)).collect()
}

fn open<R: Rig>(rig: &R, node: usize) -> Node<R> {
    let (out, input) = rig.wires(node);
    ToggleBarrier::open(out, input, never_fails).expect("an idle barrier can be opened")
}

/// Calls `body(node, barrier)` for every node, each in its own thread.
fn with_threads<R: Rig>(barriers: Vec<Node<R>>, body: impl Fn(usize, &mut Node<R>) + Sync) {
    thread::scope(|scope| {
        for (node, mut barrier) in barriers.into_iter().enumerate() {
            let body = &body;
            scope.spawn(move || body(node, &mut barrier));
        }
    });
}

fn pass<R: Rig>(barrier: &mut Node<R>) {
    barrier.enter().expect("an idle node can enter");
    barrier
        .wait(thread::yield_now, LIMIT)
        .expect("all nodes enter");
}

/// Polls many times and checks that the barrier does not release.
fn stays_closed<R: Rig>(barrier: &mut Node<R>) {
    for _ in 0..200 {
        assert!(
            barrier.poll().expect("a poll").is_pending(),
            "released although a node is missing"
        );
        thread::yield_now();
    }
}

/// Arrivals are counted before each entry: a node that leaves barrier `k` must find `k` arrivals of every node.
pub fn no_rank_leaves_before_all_have_entered<R: Rig>() {
    for nodes in [1, 2, 7] {
        let rig = R::build(nodes);
        let entered: Vec<AtomicU64> = (0..nodes).map(|_| AtomicU64::new(0)).collect();
        with_threads::<R>(open_all(&rig, nodes), |node, barrier| {
            let mut random = node as u64 + 1;
            for round in 1..=60 {
                random = random
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                for _ in 0..random >> 60 {
                    thread::yield_now();
                }
                entered[node].store(round, Ordering::SeqCst);
                pass::<R>(barrier);
                for (other, count) in entered.iter().enumerate() {
                    let count = count.load(Ordering::SeqCst);
                    assert!(
                        count >= round,
                        "node {node} left barrier {round} of {nodes} nodes, node {other} had entered {count}"
                    );
                }
            }
        });
    }
}

/// The number of releases equals the number of barriers passed.
pub fn every_barrier_is_one_release<R: Rig>() {
    for nodes in [1, 2, 7] {
        let rig = R::build(nodes);
        let before = rig.releases();
        with_threads::<R>(open_all(&rig, nodes), |_, barrier| {
            (0..25).for_each(|_| pass::<R>(barrier))
        });
        assert_eq!(
            rig.releases() - before,
            25,
            "{nodes} nodes passed 25 barriers"
        );
    }
}

/// After all nodes but one have entered, no node leaves until the last one enters; tested in both directions of the wires.
pub fn a_late_node_holds_everyone<R: Rig>() {
    let nodes = 5;
    let rig = R::build(nodes);
    let mut barriers = open_all(&rig, nodes);
    for late in [0, 2, 4, 1] {
        for (node, barrier) in barriers.iter_mut().enumerate() {
            if node != late {
                barrier.enter().expect("an idle node can enter");
            }
        }
        for (node, barrier) in barriers.iter_mut().enumerate() {
            if node != late {
                stays_closed::<R>(barrier);
            }
        }
        barriers[late].enter().expect("an idle node can enter");
        for barrier in &mut barriers {
            barrier
                .wait(thread::yield_now, LIMIT)
                .expect("all nodes have entered");
        }
    }
}

/// Wires that an aborted job left at the wrong level do not count as arrivals of the next job.
pub fn open_clears_what_an_aborted_job_left<R: Rig>() {
    let nodes = 4;
    let rig = R::build(nodes);
    for left_over in 0..nodes - 1 {
        let (mut out, mut input) = rig.wires(left_over);
        let idle = PinState::from(input.is_high().expect("a read"));
        out.set_state(!idle).expect("a write");
    }
    let mut barriers = open_all(&rig, nodes);
    barriers[3].enter().expect("an idle node can enter");
    stays_closed::<R>(&mut barriers[3]);
    for barrier in &mut barriers[..3] {
        barrier.enter().expect("an idle node can enter");
    }
    for barrier in &mut barriers {
        barrier
            .wait(thread::yield_now, LIMIT)
            .expect("all nodes have entered");
    }
}

/// Withdraws the arrival of node 0 by `withdraw`; the other nodes must then wait for node 0 as if it had never entered.
fn withdrawn<R: Rig>(withdraw: impl FnOnce(Node<R>)) {
    let nodes = 3;
    let rig = R::build(nodes);
    let mut barriers = open_all(&rig, nodes);
    let mut first = barriers.remove(0);
    first.enter().expect("an idle node can enter");
    withdraw(first);
    for barrier in &mut barriers {
        barrier.enter().expect("an idle node can enter");
    }
    for barrier in &mut barriers {
        stays_closed::<R>(barrier);
    }
    let mut again = open::<R>(&rig, 0);
    pass::<R>(&mut again);
    for barrier in &mut barriers {
        barrier
            .wait(thread::yield_now, LIMIT)
            .expect("all nodes have entered");
    }
}

/// A node that closes in the middle of a barrier has not arrived.
pub fn closing_withdraws_an_arrival<R: Rig>() {
    withdrawn::<R>(|node| node.close().expect("a wire that is still can be put back"));
}

/// A node that panics in the middle of a barrier withdraws its arrival.
pub fn a_panic_withdraws_an_arrival<R: Rig>() {
    withdrawn::<R>(|node| {
        let unwound = thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let _held = node;
                // Unwinds without the message that a panic would print into the test's output.
                std::panic::resume_unwind(Box::new("a node fails inside the barrier"));
            });
            inside.join()
        });
        assert!(unwound.is_err());
    });
}

/// A wait for a node that does not enter ends with an error, after which the same barrier can still complete.
pub fn a_wait_has_a_limit_and_can_be_resumed<R: Rig>() {
    let rig = R::build(2);
    let mut barriers = open_all(&rig, 2);
    barriers[0].enter().expect("an idle node can enter");
    let mut progressed = 0u32;
    let waited = barriers[0].wait(|| progressed += 1, Duration::from_millis(5));
    assert!(
        matches!(waited, Err(WaitError::TimedOut { .. })),
        "{waited:?}"
    );
    assert!(
        progressed > 0,
        "the caller's progress function was never called"
    );
    barriers[1].enter().expect("an idle node can enter");
    for barrier in &mut barriers {
        barrier
            .wait(thread::yield_now, LIMIT)
            .expect("all nodes have entered");
    }
}

/// The self-test passes with good wires; each node is the late one once per direction.
pub fn good_wires_pass_the_self_test<R: Rig>() {
    let nodes = 4;
    let rig = R::build(nodes);
    let fence = Barrier::new(nodes);
    with_threads::<R>(open_all(&rig, nodes), |me, barrier| {
        let test = SelfTest {
            me,
            hold: Duration::from_micros(50),
            limit: LIMIT,
        };
        let meet = || {
            fence.wait();
            never_fails()
        };
        self_test(barrier, test, 0..nodes, meet, thread::yield_now).expect("the wires are good");
    });
}

/// All nodes but one sleep in the kernel, if the port supports it; after each release the late node checks that all of them are awake.
///
/// No timeout ends a sleep early: a node that misses its wake-up still sleeps when the late node's limit expires, and the test fails.
pub fn a_sleeper_is_woken_by_the_release<R: Rig>()
where
    R::In: InputEvents,
{
    const ROUNDS: u64 = 12;
    let nodes = 3;
    let rig = R::build(nodes);
    let mut barriers = open_all(&rig, nodes);
    let mut late = barriers.pop().expect("a node");
    let awake = AtomicU64::new(0);
    thread::scope(|scope| {
        for mut barrier in barriers {
            let awake = &awake;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    barrier.enter().expect("an idle node can enter");
                    let waited = barrier.wait_asleep(thread::yield_now, OVERSLEPT, OVERSLEPT);
                    waited.expect("all nodes enter");
                    awake.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 1..=ROUNDS {
            // When the late node enters, the other nodes are already asleep in some rounds,
            // and are about to sleep in the rest.
            if round % 3 != 0 {
                thread::sleep(Duration::from_micros(500 * (round % 4)));
            }
            pass::<R>(&mut late);
            let since = Instant::now();
            while awake.load(Ordering::SeqCst) < round * (nodes as u64 - 1) {
                assert!(
                    since.elapsed() < LIMIT,
                    "a sleeper has not noticed release {round}"
                );
                thread::yield_now();
            }
        }
    });
}

/// A sleep for a node that does not enter ends at its limit, after which the same barrier can still complete.
pub fn a_sleep_has_a_limit_and_can_be_resumed<R: Rig>()
where
    R::In: InputEvents,
{
    let rig = R::build(2);
    let mut barriers = open_all(&rig, 2);
    for _ in 0..2 {
        barriers[0].enter().expect("an idle node can enter");
        let nap = Duration::from_millis(1);
        let looked = barriers[0].poll_asleep(nap).expect("a poll");
        assert!(looked.is_pending(), "released although node 1 is missing");
        let waited = barriers[0].wait_asleep(thread::yield_now, nap, 5 * nap);
        assert!(
            matches!(waited, Err(WaitError::TimedOut { .. })),
            "{waited:?}"
        );
        barriers[1].enter().expect("an idle node can enter");
        for barrier in &mut barriers {
            barrier
                .wait_asleep(thread::yield_now, nap, LIMIT)
                .expect("all nodes have entered");
        }
    }
}
