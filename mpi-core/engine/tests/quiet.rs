//! Tests that a waiting rank publishes whether something other than its job's ranks may end the wait.

use mpi_base::clock::now_ns;
use mpi_base::state::Quiet;
use mpi_core::Engine;
use mpi_core::comm::U64Buf;
use mpi_core::engine::{ThreadStep, Threads};
use mpi_core::pml::Mode;
use mpi_core::testing::{Job, until_set};
use mpi_core::universe::{Card, Name};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rank 1 receives a word while the value that `around` returns exists; rank 0 sends the word only after rank 1 has slept.
/// Returns what rank 1 published before its sleep.
fn published_by<T>(job: Job, around: impl Fn(&Engine) -> T + Sync) -> Quiet {
    let seen = Mutex::new(Quiet::default());
    let is_ready = AtomicBool::new(false);
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let word = U64Buf::new(1);
        if engine.me() == 1 {
            let held = around(engine);
            is_ready.store(true, Ordering::Release);
            world.p2p().recv(word.recv(0..1), 0, 7).expect("received");
            engine.waiting().set_threads(None);
            drop(held);
        }
        if engine.me() == 0 {
            until_set(&is_ready);
            let begin = now_ns();
            let page = engine.node().state(1).expect("a page");
            let latest = || page.snapshot().quiet;
            while latest().checked_ns < begin {
                std::thread::yield_now();
            }
            *seen.lock().expect("one") = latest();
            let sent = world.p2p().send(word.send(0..1), 1, 7, Mode::Standard);
            sent.expect("sent");
        }
    });
    seen.into_inner().expect("one")
}

fn pair() -> Job {
    Job::of(2)
}

/// The functions of a process in which a second thread has called MPI, but does not wait now.
static SECOND_THREAD: Threads = Threads {
    wait_step: |_| ThreadStep::Alone,
    wanted: || false,
    is_alone: || false,
};

#[test]
fn a_wait_for_ranks_of_the_same_job_is_not_open() {
    let seen = published_by(pair(), |_| ());
    assert!(!seen.is_open, "{seen:?}");
    assert_eq!((seen.sent, seen.received), (0, 0), "messages in memory");
    // Only ranks of the job store words in the node's memory.
    let seen = published_by(pair(), |engine| engine.operations().poll_memory());
    assert!(!seen.is_open, "{seen:?}");
    // TCP counts its messages, so it is known whether any are in transfer.
    let seen = published_by(pair().with("btl", "self,tcp"), |_| ());
    assert!(
        !seen.is_open && seen.sent > 0 && seen.received > 0,
        "{seen:?}"
    );
}

#[test]
fn a_wait_that_something_else_may_end_is_open() {
    let awaits_something = |engine: &Engine| engine.operations().poll_always();
    assert!(published_by(pair(), awaits_something).is_open);
    let has_a_second_thread = |engine: &Engine| engine.waiting().set_threads(Some(&SECOND_THREAD));
    assert!(published_by(pair(), has_a_second_thread).is_open);
    let knows_another_job = |engine: &Engine| {
        let other = engine
            .universe()
            .introduce(Name::new(8, 0), Card::default());
        engine.universe().hold(other.into_iter());
    };
    assert!(published_by(pair(), knows_another_job).is_open);
    let survives_deaths = pair().with("mpi_ft_enable", "true");
    assert!(published_by(survives_deaths, |_| ()).is_open);
    let delays_messages = pair().with("btl_fault_late", "0.01");
    assert!(published_by(delays_messages, |_| ()).is_open);
}
