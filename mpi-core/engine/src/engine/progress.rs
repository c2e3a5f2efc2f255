//! Progress and waiting of the engine.
//!
//! [`Engine::progress`] does all work of the engine: it polls transports, sends queued messages and advances collective operations.
//! Nothing that it calls may block; a nested call returns immediately.

use super::long_wait::LongWait;
use super::operations::poll;
use super::{Engine, Inner, Polled, ThreadStep};
use crate::Error;
use crate::comm::CommError;
use crate::fault::FaultError;
use crate::pml::is_idle;
use crate::request::{Outcome, Req};
use mpi_base::clock::now_ns;
use mpi_base::wait::Waiter;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;

/// Makes progress several times, for [`Engine::poll_once`]. Returns true if any work was done.
#[inline(never)]
fn make_steps(engine: &Engine) -> bool {
    /// Maximum number of progress calls: for the announcement, the reply and the data of a message, and one more.
    const STEPS: usize = 4;
    engine.0.pml.bml().attend();
    let busy = engine.progress();
    if busy {
        let _ = (1..STEPS).all(|_| engine.progress());
    }
    busy
}

/// Waits as [`Engine::wait_publishing`] does; with `MESSAGES`, as [`Engine::wait_for_messages`] does.
#[inline(always)]
fn wait_by<const MESSAGES: bool>(
    engine: &Engine,
    mut done: impl FnMut() -> bool,
    tell: impl FnOnce(),
) {
    // One loop contains all polls: with the first poll and the later ones in separate code,
    // the first wait that polls more than once executes code that is not in the caches.
    let (mut waiter, mut tell) = (None, Some(tell));
    loop {
        let busy = engine.progress();
        let is_done = done();
        if let Some(waiter) = &mut waiter {
            note_timeout(engine, waiter, busy || is_done);
        }
        if is_done {
            return;
        }
        // If the event has already occurred, no waiter is created.
        let waiter = waiter.get_or_insert_with(|| engine.waiter());
        step::<MESSAGES>(engine, waiter, busy, &mut done);
        if waiter.is_tired()
            && let Some(tell) = tell.take()
        {
            tell();
        }
    }
}

/// Counts a late sleep, if this wait slept before its latest poll and the poll has found something.
#[inline(always)]
fn note_timeout(engine: &Engine, waiter: &mut Waiter, found: bool) {
    if waiter.take_timeout() && found {
        engine.0.waiting.note_late_sleep();
    }
}

/// The second part of an iteration of a wait, if `done` returned false: pauses.
#[inline]
fn step<const MESSAGES: bool>(
    engine: &Engine,
    waiter: &mut Waiter,
    busy: bool,
    mut done: impl FnMut() -> bool,
) {
    let waiting = &engine.0.waiting;
    let threads = waiting.threads();
    if let Some(threads) = threads {
        let polled = Polled {
            busy,
            slept: waiting.take_slept()
                | waiting.have_completed(engine.0.pml.requests().completions()),
            may_yield: waiter.may_yield_to_threads(),
            awaits: match MESSAGES {
                true => Some(&mut done),
                false => None,
            },
        };
        match (threads.wait_step)(polled) {
            ThreadStep::Alone => {}
            ThreadStep::Followed => return,
            ThreadStep::TimedOut => return waiter.note_timeout(),
            ThreadStep::Yielded(took) => {
                waiter.has_yielded_to_threads(took);
                waiting.note_load(waiter);
                return;
            }
        }
    }
    if busy {
        waiter.reset();
        engine.0.state.progressed();
    } else {
        if waiter.is_tired() {
            LongWait::of(engine).begin(waiter);
        } else {
            waiting.waits();
        }
        waiter.pause_or(|nap| {
            let wanted = || threads.is_some_and(|t| (t.wanted)());
            let long_wait = LongWait::of(engine);
            let mut begin_ns = None;
            let timed_out = long_wait.sleep(nap, || {
                let news = done() || long_wait.pending() || wanted();
                if !news {
                    long_wait.publish_quiet(threads);
                    begin_ns = Some(now_ns());
                }
                news
            });
            if let Some(begin_ns) = begin_ns {
                waiting.add_sleep(now_ns().saturating_sub(begin_ns));
            }
            waiting.note_sleep();
            timed_out
        });
        waiting.note_load(waiter);
    }
    waiting.let_threads_in();
}

impl Inner {
    /// Returns true if [`Engine::progress`] would find no work.
    #[inline]
    fn is_idle(&self) -> bool {
        self.operations.is_empty() && !self.hooks.are_any() && is_idle(&self.pml)
    }
}

impl Engine {
    /// Polls every source of events one time. Returns true if any work was done.
    #[inline]
    pub fn progress(&self) -> bool {
        let Inner {
            pml,
            operations,
            hooks,
            ..
        } = &*self.0;
        if operations.enter() {
            return false;
        }
        let mut busy = pml.progress();
        if !operations.is_empty() || hooks.are_any() {
            busy |= self.operations().advance();
        }
        operations.leave(false);
        busy
    }

    /// Polls once for a call that does not wait, such as `MPI_Test`, which programs call in loops.
    ///
    /// One call makes progress several times:
    /// a message to this process itself takes a few progress calls, and programs expect it to arrive in one poll.
    /// A loop whose polls find nothing yields its core from time to time,
    /// since the awaited process may need that core.
    ///
    /// Most polls in such a loop only check whether there is any work (`Waiting::may_skip_progress`).
    pub fn poll_once(&self) -> bool {
        let waiting = &self.0.waiting;
        let busy = !(waiting.may_skip_progress() && self.0.is_idle()) && make_steps(self);
        if waiting.has_looked(busy) {
            waiting.rest_from_polling();
        }
        busy
    }

    /// Makes progress until `done` returns true. It first spins between polls, and later sleeps.
    ///
    /// `done` may depend on any event that rings this process's doorbell: a message, or a store.
    /// `done` may be called again after it has returned true.
    #[inline]
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) {
        if done() {
            return;
        }
        self.wait_publishing(done, || {});
    }

    /// Waits until `done` returns true. Calls `tell` before the first sleep, to publish the wait on the state page.
    #[inline]
    pub fn wait_publishing(&self, done: impl FnMut() -> bool, tell: impl FnOnce()) {
        wait_by::<false>(self, done, tell);
    }

    /// Same as [`Engine::wait_publishing`], for conditions that only a poll or a call of a thread of this process makes true,
    /// such as the completion of a request.
    /// Another thread that is inside the engine may call `done`, so `done` does not wait, poll or panic, and its result does not depend on the thread that calls it.
    #[inline]
    pub fn wait_for_messages(&self, done: impl FnMut() -> bool, tell: impl FnOnce()) {
        wait_by::<true>(self, done, tell);
    }

    /// Returns the state of a wait, for callers that call [`Engine::turn`] in a loop of their own.
    #[inline]
    pub fn waiter(&self) -> Waiter {
        Waiter::new(self.0.waiting.policy_of_next_wait())
    }

    /// One iteration of a wait: makes progress, checks `done`, and, if no work was done, pauses.
    /// The waiter determines the length of the pause.
    ///
    /// `done` is checked again after the sleep has been announced, so no wakeup is missed.
    #[inline]
    pub fn turn(&self, waiter: &mut Waiter, mut done: impl FnMut() -> bool) -> bool {
        let busy = self.progress();
        let is_done = done();
        note_timeout(self, waiter, busy || is_done);
        if !is_done {
            step::<false>(self, waiter, busy, done);
        }
        is_done
    }

    /// Waits for a request to complete, and frees it.
    #[inline]
    pub fn wait(&self, req: &Req) -> Outcome {
        if !req.is_complete() {
            self.wait_for_messages(
                || req.is_complete(),
                || self.published().waits_for(req, 1, 0),
            );
        }
        if req.is_interrupted() {
            return Err(self.give_up_interrupted(req));
        }
        self.0.pml.requests().finish(req)
    }

    /// Abandons an operation whose wait was interrupted; no thread will wait for it again.
    /// Returns the error for the call.
    #[cold]
    fn give_up_interrupted(&self, req: &Req) -> Error {
        let told = req.peek();
        self.0.pml.termination().abandon(req);
        match told {
            Err(error) => match error.find::<FaultError>() {
                Some(fault) => fault.of_blocking().into(),
                None => error,
            },
            Ok(_) => CommError::Unreachable {
                why: "a wait was interrupted without a reason".into(),
            }
            .into(),
        }
    }

    /// Waits for the receive of the fast path to complete.
    #[inline]
    pub(crate) fn wait_here(&self) {
        let pml = &self.0.pml;
        self.wait_for_messages(
            || pml.is_here(),
            || {
                let (context, key, bytes) = pml.about_here();
                self.published().waits_for_message(context, key, bytes);
            },
        );
    }

    /// Polls a future until it is complete; makes progress between the polls.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let requests = self.0.pml.requests();
        let mut value = None;
        let mut seen = requests.completions().wrapping_sub(1);
        loop {
            self.wait_until(|| {
                // If the future waits for messages, it is polled after each completed request,
                // otherwise in every iteration.
                let now = requests.completions();
                if value.is_none() && (now != seen || self.0.operations.need_polling()) {
                    seen = now;
                    if let Poll::Ready(v) = poll(future.as_mut()) {
                        value = Some(v);
                    }
                }
                value.is_some()
            });
            if let Some(value) = value {
                return value;
            }
        }
    }
}
