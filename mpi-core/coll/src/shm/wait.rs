//! Waiting for the other ranks of a node.
//!
//! With a core per rank the other ranks are about to arrive:
//! the rank spins on the condition for about a microsecond.
//! When oversubscribed, the others cannot arrive before this rank releases its core.
//! So it yields at once, polls when it is scheduled in again,
//! and then spins briefly, since a rank that has not arrived by
//! then runs on another core ([`Waiting::hold_core`]).
//! With a core per rank, a rank that has spun without success yields too,
//! because another program may occupy the core of the awaited rank.
//! A yield on a free core is cheap.
//! Then, in both cases, the rank waits as every MPI call does:
//! it progresses and finally sleeps, so messages move and a computing rank gets the core.
//!
//! Each operation is written once, over [`Wait`].
//! A blocking call waits [`Blocking`], inside the only poll of its future,
//! so the compiler produces straight-line code; a request returns pending ([`Polled`]) and is polled again by progress.
//!
//! A wait cannot complete once a member has died or the communicator is revoked.
//! A request checks for that whenever it is polled ([`unless_broken`]).
//! A blocking call checks last, before it sleeps.
//! The wait then returns an error, and the operation ends with that error.
//! The check is in the cold part of a wait, so a condition that is already true costs no additional branch.
//! After such an error no operation of the communicator accesses its memory.

use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use mpi_base::shared_core::yield_core;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The number of consecutive yields before the engine waits.
const YIELDS: u32 = 8;

/// A strategy of waiting. A wait returns an error if it cannot complete, because a member has died or the communicator is revoked.
pub trait Wait: Copy {
    /// Waits until `done` returns true; may call `done` again after that.
    async fn until(self, engine: &Engine, done: impl FnMut() -> bool) -> Result<(), Error>;

    /// Waits until `done` returns true,
    /// if other ranks on this core may be able to continue before this rank.
    async fn until_unlike_others(
        self,
        engine: &Engine,
        done: impl FnMut() -> bool,
    ) -> Result<(), Error>;

    /// Spins without creating a future, which costs half as much as a short call.
    /// Returns true if `done` became true.
    fn at_once(self, engine: &Engine, done: impl FnMut() -> bool) -> Result<bool, Error>;

    /// Spins briefly. Returns true if `done` became true.
    fn briefly(self, engine: &Engine, done: impl FnMut() -> bool) -> bool;
}

/// Blocks inside the poll; for operations of this communicator that [`now`] runs.
#[derive(Clone, Copy)]
pub struct Blocking<'a>(pub &'a Comm);

/// Returns pending, and is polled again by progress.
#[derive(Clone, Copy)]
pub struct Polled;

impl Wait for Blocking<'_> {
    #[inline(always)]
    async fn until(self, engine: &Engine, done: impl FnMut() -> bool) -> Result<(), Error> {
        wait(self.0, engine, true, done)
    }

    #[inline(always)]
    async fn until_unlike_others(
        self,
        engine: &Engine,
        done: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        wait(self.0, engine, false, done)
    }

    #[inline(always)]
    fn at_once(self, engine: &Engine, done: impl FnMut() -> bool) -> Result<bool, Error> {
        wait(self.0, engine, true, done).map(|()| true)
    }

    #[inline(always)]
    fn briefly(self, engine: &Engine, mut done: impl FnMut() -> bool) -> bool {
        engine.waiting().spin(&mut done)
    }
}

impl Wait for Polled {
    async fn until(self, engine: &Engine, mut done: impl FnMut() -> bool) -> Result<(), Error> {
        poll_fn(|_| match done() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        engine.published().has_stepped();
        Ok(())
    }

    async fn until_unlike_others(
        self,
        engine: &Engine,
        done: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        self.until(engine, done).await
    }

    fn at_once(self, _: &Engine, mut done: impl FnMut() -> bool) -> Result<bool, Error> {
        Ok(done())
    }

    fn briefly(self, _: &Engine, mut done: impl FnMut() -> bool) -> bool {
        done()
    }
}

/// Runs an operation that waits [`Blocking`].
#[inline(always)]
pub fn now(comm: &Comm, operation: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let mut operation = pin!(operation);
    match operation
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(outcome) => outcome,
        // The operation also waits for another event, such as a message.
        Poll::Pending => comm.engine().block_on(operation),
    }
}

/// Blocks until `done`; returns an error if the communicator can no longer complete the wait.
#[inline(always)]
pub fn until(comm: &Comm, done: impl FnMut() -> bool) -> Result<(), Error> {
    wait(comm, comm.engine(), true, done)
}

/// Returns the outcome of a part of an operation, or an error if no wait can complete any more.
///
/// After an operator's failure the operation continues, since other ranks wait for its other parts.
#[inline(always)]
pub fn or_leave(comm: &Comm, outcome: Result<(), Error>) -> Result<Result<(), Error>, Error> {
    match outcome {
        Ok(()) => Ok(Ok(())),
        Err(error) => unless_unusable(comm, error).map(Err),
    }
}

#[cold]
fn unless_unusable(comm: &Comm, error: Error) -> Result<Error, Error> {
    comm.usable().map(|()| error)
}

/// Runs an operation that waits [`Polled`]; ends it with an error once it can no longer complete.
pub async fn unless_broken(
    comm: &Comm,
    operation: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let mut operation = pin!(operation);
    poll_fn(|context| match operation.as_mut().poll(context) {
        Poll::Pending => match comm.usable() {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        },
        done => done,
    })
    .await
}

/// Waits until `done` returns true; with `holds`, the rank may spin when oversubscribed.
///
/// When oversubscribed, the first yield is made inline, since every return after a switch is mispredicted ([`mpi_base::yield_now`]).
#[inline(always)]
fn wait(
    comm: &Comm,
    engine: &Engine,
    holds: bool,
    mut done: impl FnMut() -> bool,
) -> Result<(), Error> {
    if done() {
        return Ok(());
    }
    if !engine.waiting().is_oversubscribed() {
        return stay(comm, engine, done);
    }
    engine.waiting().give_core_away();
    match done() {
        true => Ok(()),
        false => rest(comm, engine, holds, &mut done),
    }
}

/// Waits when this rank has a core to itself: spins, then rests.
#[inline(never)]
fn stay(comm: &Comm, engine: &Engine, mut done: impl FnMut() -> bool) -> Result<(), Error> {
    match engine.waiting().spin(&mut done) {
        true => Ok(()),
        false => rest(comm, engine, false, &mut done),
    }
}

/// Continues to wait after spinning or a yield without success.
#[cold]
fn rest(
    comm: &Comm,
    engine: &Engine,
    holds: bool,
    done: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    if holds && engine.waiting().hold_core(&mut *done) {
        return Ok(());
    }
    for _ in 0..YIELDS {
        if engine.waiting().is_beside_load() {
            break;
        }
        engine.progress();
        match engine.waiting().is_oversubscribed() {
            true => engine.waiting().give_core_away(),
            // If the system has placed two ranks on one core, one of them migrates.
            false => yield_core(Instant::now()),
        }
        if done() {
            return Ok(());
        }
        engine.waiting().let_threads_in();
    }
    let mut arrived = false;
    while !arrived {
        engine.wait_until(|| {
            arrived = arrived || done();
            arrived || comm.usable().is_err()
        });
        if !arrived {
            comm.usable()?;
        }
    }
    Ok(())
}
