//! How a rank waits for the others of its node.
//!
//! With a core for each rank the others are about to come: the place is watched alone for about a microsecond.
//! With shared cores they cannot come before this rank makes room: it yields at once, and looks again when it is switched in,
//! and then for a moment, since a rank that is still missing is on another core ([`Engine::hold_core`]).
//! A rank that has watched in vain yields too: strangers may have taken the core of a rank it waits for, and on a free core a yield costs little.
//! Then, in both cases, it waits as everywhere, progressing and at last asleep, so that messages move and a computing rank gets the core.
//!
//! An operation is written once, over [`Waits`]: a blocking call waits [`Here`], inside the only poll that its future ever sees,
//! so the compiler makes straight code of it; a request comes back [`Later`], when progress polls it again.
//!
//! What is waited for does not come any more once a member has died or the communicator is revoked.
//! A request looks whether that is so whenever it is polled ([`unless_broken`]).
//! A blocking call looks at last, before it sleeps; then it leaves the operation by unwinding, up to [`now`],
//! since a way out behind each wait would cost calls to which nothing happens.
//! No operation of the communicator looks at its memory after that.

use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use mpi_base::shared_core::yield_core;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Switches to others in a row before the engine waits.
const YIELDS: u32 = 8;

/// A way of waiting.
pub trait Waits: Copy {
    /// Waits until `done`, which may be asked again after it has said yes.
    async fn until(self, engine: &Engine, done: impl FnMut() -> bool);

    /// The same, if others on this core may be able to go on before this rank is.
    async fn until_unlike_others(self, engine: &Engine, done: impl FnMut() -> bool);

    /// Waits as long as that needs no future, which costs as much as half a short call; whether it was long enough.
    fn at_once(self, engine: &Engine, done: impl FnMut() -> bool) -> bool;

    /// Waits for a moment only; whether it was long enough.
    fn briefly(self, engine: &Engine, done: impl FnMut() -> bool) -> bool;
}

/// Does not come back before it is time; for operations of this communicator that [`now`] runs.
#[derive(Clone, Copy)]
pub struct Here<'a>(pub &'a Comm);

/// What unwinds from a wait that would not end.
struct Broken;

/// Comes back at once, and is asked again by progress.
#[derive(Clone, Copy)]
pub struct Later;

impl Waits for Here<'_> {
    #[inline(always)]
    async fn until(self, engine: &Engine, done: impl FnMut() -> bool) {
        wait(self.0, engine, true, done);
    }

    #[inline(always)]
    async fn until_unlike_others(self, engine: &Engine, done: impl FnMut() -> bool) {
        wait(self.0, engine, false, done);
    }

    #[inline(always)]
    fn at_once(self, engine: &Engine, done: impl FnMut() -> bool) -> bool {
        wait(self.0, engine, true, done);
        true
    }

    #[inline(always)]
    fn briefly(self, engine: &Engine, mut done: impl FnMut() -> bool) -> bool {
        engine.watch(&mut done)
    }
}

impl Waits for Later {
    async fn until(self, _: &Engine, mut done: impl FnMut() -> bool) {
        poll_fn(|_| match done() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    async fn until_unlike_others(self, engine: &Engine, done: impl FnMut() -> bool) {
        self.until(engine, done).await;
    }

    fn at_once(self, _: &Engine, mut done: impl FnMut() -> bool) -> bool {
        done()
    }

    fn briefly(self, _: &Engine, mut done: impl FnMut() -> bool) -> bool {
        done()
    }
}

/// Runs an operation that waits [`Here`]; the error if it can never end.
#[inline(always)]
pub fn now(comm: &Comm, operation: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    unless_left(comm, || {
        let mut operation = pin!(operation);
        match operation
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(outcome) => outcome,
            // It waits for something else beside.
            Poll::Pending => comm.engine().block_on(operation),
        }
    })
}

/// Waits until `done` without coming back; the error if that can never be.
#[inline(always)]
pub fn until(comm: &Comm, done: impl FnMut() -> bool) -> Result<(), Error> {
    unless_left(comm, || {
        wait(comm, comm.engine(), true, done);
        Ok(())
    })
}

/// Runs what may unwind from its waits.
#[inline(always)]
fn unless_left(comm: &Comm, operation: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(outcome) => outcome,
        Err(thrown) => why_left(comm, thrown),
    }
}

#[cold]
fn why_left(comm: &Comm, thrown: Box<dyn Any + Send>) -> Result<(), Error> {
    match (thrown.is::<Broken>(), comm.usable()) {
        (true, Err(error)) => Err(error),
        // A defect somewhere else.
        _ => resume_unwind(thrown),
    }
}

/// Ends an operation that waits [`Later`] with an error when it can never end otherwise.
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

/// Waits until `done`; where ranks share cores, whether to hold this one.
///
/// There the first switch is made without a call, since each return behind it is guessed wrong ([`mpi_base::yield_now`]).
#[inline(always)]
fn wait(comm: &Comm, engine: &Engine, holds: bool, mut done: impl FnMut() -> bool) {
    if done() {
        return;
    }
    if !engine.is_oversubscribed() {
        return stay(comm, engine, done);
    }
    engine.give_core_away();
    if !done() {
        rest(comm, engine, holds, &mut done);
    }
}

/// Waits on a core of its own.
#[inline(never)]
fn stay(comm: &Comm, engine: &Engine, mut done: impl FnMut() -> bool) {
    if !engine.watch(&mut done) {
        rest(comm, engine, false, &mut done);
    }
}

/// Waits on, after looking or a switch in vain.
#[cold]
fn rest(comm: &Comm, engine: &Engine, holds: bool, done: &mut dyn FnMut() -> bool) {
    if holds && engine.hold_core(&mut *done) {
        return;
    }
    for _ in 0..YIELDS {
        if engine.is_beside_load() {
            break;
        }
        engine.progress();
        match engine.is_oversubscribed() {
            true => engine.give_core_away(),
            // Where the system has put two ranks on one core, one of them moves.
            false => yield_core(Instant::now()),
        }
        if done() {
            return;
        }
    }
    let mut came = false;
    engine.wait_until(|| {
        came = came || done();
        came || comm.usable().is_err()
    });
    if !came {
        resume_unwind(Box::new(Broken));
    }
}
