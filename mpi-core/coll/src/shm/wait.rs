//! Waiting for other ranks of a node.
//!
//! With a core per rank, the other ranks are usually about to arrive:
//! the waiting rank spins on the condition for about a microsecond.
//! When ranks are oversubscribed, the others cannot arrive before this rank releases its core.
//! So the waiting rank yields immediately, polls when it is scheduled in again,
//! and then spins briefly, since a rank that has not arrived
//! by then runs on another core ([`Waiting::hold_core`]).
//! With a core per rank, a waiting rank that has spun without success yields too,
//! because another program may occupy the core of the awaited rank.
//! A yield on a free core is cheap.
//! In both cases, the rank then waits as every MPI call does:
//! it makes progress and finally sleeps, so messages are transferred, and a rank that computes gets the core.
//!
//! Each operation is generic over [`Wait`].
//! A blocking call waits with [`Blocking`], inside the only poll of its future,
//! so the compiler produces straight-line code.
//! A request waits with [`Polled`]: it returns pending, and progress polls it again.
//!
//! A wait cannot complete if a member has died or the communicator has been revoked.
//! A request checks for this in every poll ([`unless_broken`]),
//! a blocking call only before it sleeps.
//! The wait then returns an error, and the operation ends with that error.
//! The check is not in the inlined part of a wait, so a condition that is already true costs no additional branch.
//! After such an error no operation of the communicator accesses shared memory.

use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use mpi_base::shared_core::yield_core;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Number of consecutive yields before the rank waits in the engine.
const YIELDS: u32 = 8;

/// A method of waiting for other ranks.
/// A wait returns an error if it cannot complete, because a member has died or the communicator has been revoked.
pub trait Wait: Copy {
    /// Waits until `done` returns true; may call `done` again afterwards.
    async fn until(self, engine: &Engine, done: impl FnMut() -> bool) -> Result<(), Error>;

    /// Same as [`Wait::until`], but does not hold the core:
    /// for waits in which other ranks on this core may be able to continue earlier than this one.
    async fn until_unlike_others(
        self,
        engine: &Engine,
        done: impl FnMut() -> bool,
    ) -> Result<(), Error>;

    /// Waits without a future if possible, since a future takes half of the time of a short call.
    /// Returns true if `done` has returned true.
    fn at_once(self, engine: &Engine, done: impl FnMut() -> bool) -> Result<bool, Error>;

    /// Spins briefly. Returns true if `done` has returned true.
    fn briefly(self, engine: &Engine, done: impl FnMut() -> bool) -> bool;
}

/// Blocks inside the poll; for operations on this communicator that [`now`] runs.
#[derive(Clone, Copy)]
pub struct Blocking<'a>(pub &'a Comm);

/// Returns pending; progress polls the operation again.
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

/// Runs an operation whose waits are [`Blocking`].
#[inline(always)]
pub fn now(comm: &Comm, operation: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let mut operation = pin!(operation);
    match operation
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(outcome) => outcome,
        // The operation also waits for a message, so the engine polls it until it is complete.
        Poll::Pending => comm.engine().block_on(operation),
    }
}

/// Blocks until `done` returns true; returns an error if the wait cannot complete.
#[inline(always)]
pub fn until(comm: &Comm, done: impl FnMut() -> bool) -> Result<(), Error> {
    wait(comm, comm.engine(), true, done)
}

/// Returns the outcome of a part of an operation as `Ok`, or an error if the communicator is no longer usable.
///
/// After a failure of an operator the operation must continue, since other ranks wait for its remaining parts.
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

/// Runs an operation whose waits are [`Polled`]; ends it with an error if it cannot complete.
///
/// The caller pins the operation: an argument that this function pins itself would be in its future twice,
/// and the future of a short request would be longer than the blocks that malloc(3) returns fast (1 KiB).
pub async fn unless_broken(
    comm: &Comm,
    mut operation: Pin<&mut impl Future<Output = Result<(), Error>>>,
) -> Result<(), Error> {
    poll_fn(|context| match operation.as_mut().poll(context) {
        Poll::Pending => match comm.usable() {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        },
        done => done,
    })
    .await
}

/// Waits until `done` returns true; with `holds`, an oversubscribed rank may spin after it has been scheduled in.
///
/// The first yield of an oversubscribed rank is inline, since every return after a context switch is mispredicted ([`mpi_base::yield_now`]).
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

/// Waits on a core of its own: spins, and then calls [`rest`].
#[inline(never)]
fn stay(comm: &Comm, engine: &Engine, mut done: impl FnMut() -> bool) -> Result<(), Error> {
    match engine.waiting().spin(&mut done) {
        true => Ok(()),
        false => rest(comm, engine, false, &mut done),
    }
}

/// Continues a wait after a spin or yield without success.
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
            // If the operating system has placed two ranks on one core, a yield moves one of them to another core.
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
