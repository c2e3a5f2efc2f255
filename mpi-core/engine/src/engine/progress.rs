//! Progress and waiting.
//!
//! [`Engine::progress`] does all work of the engine: it polls transports, drains queues and advances collective operations.
//! Nothing called from inside it may block; a nested call returns at once.

use super::operations::Awaited;
use super::{Engine, Inner, Occasion, Polled, ThreadStep, Threads};
use crate::Error;
use crate::comm::CommError;
use crate::fault::FaultError;
use crate::request::{Body, Outcome, Req, Running, Status};
use mpi_base::clock::now_ns;
use mpi_base::state::Quiet;
use mpi_base::wait::Waiter;
use mpi_transport::btl::Traffic;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The sleep interval of a process that no descriptor can wake.
const SHORT_NAP: Duration = Duration::from_micros(100);

impl Engine {
    /// Polls everything once. Returns true if anything was done.
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
            busy |= self.advance();
        }
        operations.leave(false);
        busy
    }

    /// Polls for a call that does not wait, such as `MPI_Test`; programs make such calls in loops.
    ///
    /// One call makes several rounds of progress: a message to this process itself takes a few steps, and programs expect it at the first poll.
    /// A loop whose polls stay empty yields its core now and then, since the process it waits for may need that core.
    pub fn poll_once(&self) -> bool {
        /// Announcement, answer, data, and one more.
        const STEPS: usize = 4;
        self.0.pml.bml().attend();
        let busy = self.progress();
        if busy {
            let _ = (1..STEPS).all(|_| self.progress());
        }
        if self.0.waiting.has_looked(busy) {
            self.rest_from_polling();
        }
        busy
    }

    /// Yields the core to the process that a polling program waits for.
    #[cold]
    fn rest_from_polling(&self) {
        self.give_core_away();
        // The awaited process may be dead.
        self.0.waiting.watch_now_and_then(now_ns());
    }

    /// Polls collective operations and progress hooks, if a request has completed since the last time. Returns true if an operation completed.
    fn advance(&self) -> bool {
        let (operations, requests) = (&self.0.operations, self.0.pml.requests());
        if !operations.are_due(requests.completions()) {
            return false;
        }
        let ended = operations.poll_each(|req| self.poll_request(req));
        self.ask_attendants(Occasion::Completion);
        ended
    }

    /// Polls one collective operation. Returns true if it has completed.
    fn poll_request(&self, req: &Req) -> bool {
        // The operation is taken out of the request while it runs, since it may access the request table itself.
        let mut running = match std::mem::take(&mut *req.body.borrow_mut()) {
            Body::Coll(running) => running,
            other => {
                *req.body.borrow_mut() = other;
                return true;
            }
        };
        match poll(running.as_mut()) {
            Poll::Pending => {
                *req.body.borrow_mut() = Body::Coll(running);
                false
            }
            Poll::Ready(Ok(())) => {
                // The operation is dropped here, so nothing of it remains in the request.
                req.set_status(Status::EMPTY);
                self.0.pml.requests().complete_light(req);
                true
            }
            Poll::Ready(Err(e)) => {
                self.0.pml.requests().complete(req, Err(e));
                true
            }
        }
    }

    /// Creates a request that is already complete.
    pub fn completed(&self, status: Status) -> Req {
        let requests = self.0.pml.requests();
        let req = requests.begin(Body::Idle);
        requests.complete(&req, Ok(status));
        req
    }

    /// Creates a request for a collective operation and takes its first steps.
    pub fn start_future(&self, running: Running) -> Req {
        let req = self.0.pml.requests().begin(Body::Coll(running));
        // The first steps run inside progress like all later ones, so that the same rules hold for all of them.
        let nested = self.0.operations.enter();
        let ended = self.poll_request(&req);
        self.0.operations.leave(nested);
        if !ended {
            self.0.operations.add(req.clone());
        }
        req
    }

    /// Returns true if the caller may block. Inside progress a wait would never end.
    ///
    /// All members of a communicator get the same answer at the same step of an operation:
    /// the steps of a nonblocking call always run inside progress, those of a blocking call never do.
    pub fn may_block(&self) -> bool {
        !self.0.operations.is_inside()
    }

    /// Waits until `done` returns true, progressing; it first spins and then sleeps.
    ///
    /// `done` may read anything for which this process's doorbell is rung: messages, or words in the node's memory.
    /// It may be called again after it has returned true.
    #[inline]
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) {
        if done() {
            return;
        }
        self.wait_publishing(done, || {});
    }

    /// Spins on `done` alone, without progress; not at all on an oversubscribed node. Returns true if `done` became true.
    #[inline]
    pub fn watch(&self, done: &mut impl FnMut() -> bool) -> bool {
        /// Polls of `done` alone before the engine progresses.
        const LOOKS: u32 = 512;
        /// The first of these polls follow without a pause, since a pause lasts as long as the transfer of a cache line between cores.
        const EAGER: u32 = 256;
        if done() {
            return true;
        }
        if self.is_oversubscribed() {
            return false;
        }
        for look in 0..LOOKS {
            if done() {
                return true;
            }
            if look >= EAGER {
                std::hint::spin_loop();
            }
        }
        false
    }

    /// Waits briefly for processes of this node that are about to arrive: spins if each has a core, yields once if they are oversubscribed.
    /// Returns true if `done` became true.
    #[inline]
    pub fn wait_briefly(&self, mut done: impl FnMut() -> bool) -> bool {
        if !self.is_oversubscribed() {
            return self.watch(&mut done);
        }
        if done() {
            return true;
        }
        self.give_core_away();
        done() || self.hold_core(done)
    }

    /// Waits until `done` returns true. If that takes longer than a moment, calls `tell` once, which publishes on the state page what is awaited.
    #[inline]
    pub fn wait_publishing(&self, mut done: impl FnMut() -> bool, tell: impl FnOnce()) {
        let mut waiter = self.waiter();
        while !waiter.is_tired() {
            if self.turn(&mut waiter, &mut done) {
                return;
            }
        }
        tell();
        while !self.turn(&mut waiter, &mut done) {}
    }

    /// Returns the state of one wait, for callers that have their own loop around [`Engine::turn`].
    #[inline]
    pub fn waiter(&self) -> Waiter {
        Waiter::new(self.0.waiting.policy_of_next_wait())
    }

    /// One iteration of a wait: progresses, checks `done`, and if nothing moved pauses as long as the waiter decides.
    ///
    /// `done` is checked again between announcing the sleep and sleeping, so no doorbell is missed.
    #[inline]
    pub fn turn(&self, waiter: &mut Waiter, mut done: impl FnMut() -> bool) -> bool {
        let busy = self.progress();
        if done() {
            return true;
        }
        let waiting = &self.0.waiting;
        let threads = waiting.threads();
        if let Some(threads) = &threads {
            let polled = Polled {
                busy,
                slept: waiting.take_slept(),
                may_yield: waiter.may_yield_to_threads(),
            };
            match (threads.wait_step)(polled) {
                ThreadStep::Alone => {}
                ThreadStep::Followed => return false,
                ThreadStep::Yielded(took) => {
                    waiter.has_yielded_to_threads(took);
                    waiting.note_load(waiter);
                    return false;
                }
            }
        }
        if busy {
            waiter.reset();
            self.0.state.progressed();
        } else {
            if waiter.is_tired() {
                self.tired(waiter);
            } else {
                waiting.waits();
            }
            waiter.pause_or(|nap| {
                let wanted = || threads.as_ref().is_some_and(|t| (t.wanted)());
                self.sleep(nap, || {
                    let news = done() || self.pending() || wanted();
                    if !news {
                        self.publish_quiet(threads.as_ref());
                    }
                    news
                });
                waiting.has_slept();
            });
            waiting.note_load(waiter);
        }
        waiting.relax();
        false
    }

    /// Done once before every sleep: publishes since when this process waits, and checks that waiting still makes sense.
    #[cold]
    fn tired(&self, waiter: &mut Waiter) {
        let now = now_ns();
        self.0.state.waits_since(now);
        self.0.waiting.begins_check(now, waiter.begins_to_sleep());
        self.0.waiting.sleeps();
        self.0.waiting.watch();
        self.ask_attendants(Occasion::Time);
    }

    /// Publishes that a poll of everything has found nothing, and whether something besides the ranks of this job could end this wait.
    #[cold]
    fn publish_quiet(&self, threads: Option<&Threads>) {
        let traffic = self.0.pml.bml().traffic();
        let (sent, received) = match traffic {
            Traffic::Counted { sent, received } => (sent, received),
            Traffic::InMemory | Traffic::Uncounted => (0, 0),
        };
        let is_open = traffic == Traffic::Uncounted
            || self.0.operations.await_outside_job()
            || self.universe().foreign() > 0
            || self.is_fault_tolerant()
            || threads.is_some_and(|threads| !(threads.is_alone)());
        let (waits, checked_ns) = self.0.waiting.check();
        self.0.state.is_quiet(&Quiet {
            waits,
            checked_ns,
            sent,
            received,
            thread: mpi_base::cpu::this_thread(),
            is_open,
        });
    }

    /// Sleeps on the doorbell, and on descriptors too if a transport waits for them.
    fn sleep(&self, nap: Duration, news: impl FnOnce() -> bool) {
        let doorbell = self.node().my_inbox().doorbell();
        let longest = self.0.pml.bml().longest_sleep();
        let nap = longest.map_or(nap, |longest| nap.min(longest));
        self.0.pml.bml().with_descriptors(|descriptors, others| {
            if descriptors.is_empty() {
                return doorbell.sleep(nap, news);
            }
            let mut doorbells = vec![doorbell];
            doorbells.extend(others.iter().map(|inbox| inbox.doorbell()));
            match self.0.waiting.descriptors() {
                Some(sleeper) => sleeper.sleep(&doorbells, nap, descriptors, news),
                // Without such sockets in this system, descriptors are polled between short sleeps.
                None => doorbell.sleep(nap.min(SHORT_NAP), news),
            }
        });
    }

    /// Returns true if a sleep now would miss something.
    fn pending(&self) -> bool {
        self.0.pml.pending() || (self.0.operations.need_polling() && self.progress())
    }

    /// While the token lives, every progress polls all active operations, not only after a completion.
    ///
    /// An operation that waits for something other than messages holds one: time, a file, hardware. What it waits for may come from outside the job.
    pub fn poll_always(&self) -> PollAlways {
        self.polled_for(Awaited::Outside)
    }

    /// As [`Engine::poll_always`], for an operation that waits only for words that other ranks of the job store in the node's memory,
    /// and that calls [`Engine::has_stepped`] whenever it has found one.
    pub fn poll_memory(&self) -> PollAlways {
        self.polled_for(Awaited::Memory)
    }

    fn polled_for(&self, awaited: Awaited) -> PollAlways {
        self.0.operations.add_polled(awaited);
        PollAlways(self.clone(), awaited)
    }

    /// Records that an operation that is not complete has found what it waited for, and now waits for something else.
    ///
    /// Without it the operation would look as if it had stood still.
    #[inline]
    pub fn has_stepped(&self) {
        self.0.state.progressed();
    }

    /// Waits for a request and returns it to the pool.
    #[inline]
    pub fn wait(&self, req: &Req) -> Outcome {
        if !req.is_complete() {
            self.wait_publishing(|| req.is_complete(), || self.published().waits_for(req, 1));
        }
        if req.is_interrupted() {
            return Err(self.give_up_interrupted(req));
        }
        self.0.pml.requests().finish(req)
    }

    /// Abandons an operation whose wait was interrupted, since no thread will wait for it again. Returns the error of its call.
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

    /// Waits for the receive of the fast path.
    #[inline]
    pub(crate) fn wait_here(&self) {
        let pml = &self.0.pml;
        self.wait_publishing(
            || pml.is_here(),
            || {
                let (context, key, bytes) = pml.about_here();
                self.published().waits_for_message(context, key, bytes);
            },
        );
    }

    /// Polls a future to completion, progressing while it waits.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let requests = self.0.pml.requests();
        let mut value = None;
        let mut seen = requests.completions().wrapping_sub(1);
        loop {
            self.wait_until(|| {
                // A future that waits for messages is polled after a completion, one that waits for something else always.
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

/// See [`Engine::poll_always`].
pub struct PollAlways(Engine, Awaited);

impl Drop for PollAlways {
    fn drop(&mut self) {
        let PollAlways(engine, awaited) = self;
        engine.0.operations.remove_polled(*awaited);
    }
}

/// Polls without a waker: the progressing thread polls again by itself.
fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
