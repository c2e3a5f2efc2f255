//! Progress and waiting.
//!
//! Everything that happens in the engine happens in [`Engine::progress`]: transports are polled, queues move, collective operations advance.
//! Nothing that blocks may be called from inside it; a nested call returns at once.

use super::{Engine, Inner, Occasion};
use crate::Error;
use crate::Witness;
use crate::comm::CommError;
use crate::fault::FaultError;
use crate::pml::Key;
use crate::request::{Body, Outcome, Req, Running, Status};
use mpi_base::state::{About, Waits};
use mpi_base::wait::Waiter;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How long a process sleeps that cannot be woken by a descriptor.
const SHORT_NAP: Duration = Duration::from_micros(100);

impl Engine {
    /// Looks once at everything that may have happened; returns whether something had.
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

    /// One look by a call that does not wait, such as `MPI_Test`; programs make such calls in loops.
    ///
    /// Such a call sees what can be seen: a message to ourselves takes a few steps, and programs expect it there at the first look.
    /// A loop that finds nothing for a while gives its core away now and then, since what it looks for may need that core.
    pub fn poll_once(&self) -> bool {
        /// Announcement, answer, data, and one more.
        const STEPS: usize = 4;
        self.0.pml.bml().attend();
        let steps = (0..STEPS).take_while(|_| self.progress()).count();
        let busy = steps > 0;
        if self.0.waiting.has_looked(busy) {
            self.give_core_away();
            // What the loop looks for may be a dead process's.
            self.0.waiting.watch_now_and_then(now_ns());
        }
        busy
    }

    /// Polls collective operations and attendants, if anything completed since they were last polled; returns whether an operation ended.
    fn advance(&self) -> bool {
        let (operations, requests) = (&self.0.operations, self.0.pml.requests());
        if !operations.are_due(requests.completions()) {
            return false;
        }
        let ended = operations.poll_each(|req| self.poll_request(req));
        self.ask_attendants(Occasion::Completion);
        ended
    }

    /// Advances one collective operation; true when it has ended.
    fn poll_request(&self, req: &Req) -> bool {
        // The operation is taken out while it runs, since it may look at the request table itself.
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
                // The operation goes with this call, so nothing of it is left in the request.
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

    /// A request that is complete from the start.
    pub fn completed(&self, status: Status) -> Req {
        let requests = self.0.pml.requests();
        let req = requests.begin(Body::Idle);
        requests.complete(&req, Ok(status));
        req
    }

    /// Makes a request of a collective operation and takes its first steps.
    pub fn spawn(&self, running: Running) -> Req {
        let req = self.0.pml.requests().begin(Body::Coll(running));
        // Its first steps are as much a part of progress as all later ones, so that it finds the same rules in all of them.
        let nested = self.0.operations.enter();
        let ended = self.poll_request(&req);
        self.0.operations.leave(nested);
        if !ended {
            self.0.operations.add(req.clone());
        }
        req
    }

    /// Whether the caller may wait: not from inside progress, where a wait would never end.
    ///
    /// All members of a communicator get the same answer at the same place of an operation:
    /// what a nonblocking call started is always inside progress, what a blocking call runs never is.
    pub fn may_block(&self) -> bool {
        !self.0.operations.is_inside()
    }

    /// Waits until `done`, progressing, first awake and then asleep.
    ///
    /// `done` may look at anything this process's bell is rung for: messages, or words in the node's memory.
    /// It may be asked again after it has said yes.
    #[inline]
    pub fn wait_until(&self, mut done: impl FnMut() -> bool) {
        if done() {
            return;
        }
        self.wait_publishing(done, || {});
    }

    /// Looks for as long as it pays to look at nothing else, which is not at all where ranks share cores; whether it was long enough.
    #[inline]
    pub fn watch(&self, done: &mut impl FnMut() -> bool) -> bool {
        /// Looks at the place, and nothing else, before the engine is asked to progress.
        const LOOKS: u32 = 512;
        /// The first of these looks follow one another at once: a pause lasts as long as a cache line takes from core to core.
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

    /// Waits for processes of this node that are about to come: watches where each has a core, gives the core away once where they share them;
    /// whether it was long enough.
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

    /// Waits until `done`; `tell` is called once if that takes longer than a moment, to put what is waited for on the state page.
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

    /// A wait of this process, for callers that have their own loop around [`Engine::turn`].
    #[inline]
    pub fn waiter(&self) -> Waiter {
        Waiter::new(self.0.waiting.policy_of_next_wait())
    }

    /// One turn of waiting: progress, look whether it is `done`, and if nothing moved rest as long as the waiter says.
    ///
    /// `done` is asked once more between saying "I sleep" and sleeping, so no ring is missed.
    #[inline]
    pub fn turn(&self, waiter: &mut Waiter, mut done: impl FnMut() -> bool) -> bool {
        let busy = self.progress();
        if done() {
            return true;
        }
        let waiting = &self.0.waiting;
        let threads = waiting.threads();
        if let Some(threads) = &threads
            && (threads.follow)(busy, waiting.take_slept())
        {
            // Another thread has looked for this one, and something has happened.
            return false;
        }
        if busy {
            waiter.reset();
            self.0.state.progressed();
        } else {
            if waiter.is_tired() {
                self.tired();
            } else {
                waiting.waits();
            }
            waiter.pause_or(|nap| {
                let wanted = || threads.as_ref().is_some_and(|t| (t.wanted)());
                self.sleep(nap, || done() || self.pending() || wanted());
                waiting.has_slept();
            });
            if waiter.has_met_load() {
                waiting.meets_load();
            }
        }
        waiting.relax();
        false
    }

    /// What is worth doing once in every nap: telling since when we wait, and looking whether waiting still makes sense.
    #[cold]
    fn tired(&self) {
        self.0.state.waits_since(now_ns());
        self.0.waiting.sleeps();
        self.0.waiting.watch();
        self.ask_attendants(Occasion::Time);
    }

    /// Sleeps on the bell; with transports that wait for descriptors, on both.
    fn sleep(&self, nap: Duration, news: impl FnOnce() -> bool) {
        let bell = self.node().my_inbox().bell();
        self.0.pml.bml().with_descriptors(|descriptors, others| {
            if descriptors.is_empty() {
                return bell.sleep(nap, news);
            }
            let mut bells = vec![bell];
            bells.extend(others.iter().map(|inbox| inbox.bell()));
            match self.0.waiting.descriptors() {
                Some(doorbell) => doorbell.sleep(&bells, nap, descriptors, news),
                // Where the system has no such sockets, descriptors are looked at between short sleeps.
                None => bell.sleep(nap.min(SHORT_NAP), news),
            }
        });
    }

    /// Whether going to sleep now would miss something.
    fn pending(&self) -> bool {
        self.0.pml.pending() || (self.0.operations.is_restless() && self.progress())
    }

    /// As long as the token lives, every turn polls the operations under way, not only those in which something completed.
    ///
    /// An operation that waits for something other than messages holds one.
    pub fn poll_always(&self) -> PollAlways {
        self.0.operations.add_restless();
        PollAlways(self.clone())
    }

    /// Waits for a request and hands it back to the pool.
    #[inline]
    pub fn wait(&self, req: &Req) -> Outcome {
        if !req.is_complete() {
            self.wait_publishing(|| req.is_complete(), || self.publish_wait(req, 1));
        }
        if req.is_interrupted() {
            return Err(self.give_up_interrupted(req));
        }
        self.0.pml.requests().finish(req)
    }

    /// Ends an operation whose wait was interrupted, since no thread will wait for it again; the error of its call.
    #[cold]
    fn give_up_interrupted(&self, req: &Req) -> Error {
        let told = req.peek();
        self.0.pml.abandon(req);
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

    /// Waits for the receive of the express lane.
    #[inline]
    pub(crate) fn wait_here(&self) {
        let pml = &self.0.pml;
        self.wait_publishing(
            || pml.is_here(),
            || {
                let (context, key, bytes) = pml.about_here();
                self.publish_wait_receive(context, key, bytes);
            },
        );
    }

    /// Writes into the state page that this process waits for a request, the first of so many.
    #[cold]
    pub fn publish_wait(&self, req: &Req, requests: u32) {
        let about = match &*req.body.borrow() {
            Body::Send(send) => send.about(),
            Body::Recv(recv) => recv.about(),
            Body::Coll(_) => About {
                waits: Waits::Collective,
                ..About::default()
            },
            _ => return,
        };
        self.0.state.about(&About { requests, ..about });
    }

    /// Writes into the state page what this process waits for.
    #[cold]
    pub fn publish_wait_about(&self, about: &About, requests: u32) {
        self.0.state.about(&About { requests, ..*about });
    }

    /// The same of a message that is waited for without a request.
    #[cold]
    pub(crate) fn publish_wait_receive(&self, context: crate::pml::Context, key: Key, bytes: u64) {
        let about = self.0.pml.matching(context).about(key, bytes);
        self.0.state.about(&about);
    }

    /// Writes into the state page that this process waits for whichever of so many requests is first.
    #[cold]
    pub fn publish_wait_any(&self, requests: u32) {
        self.0.state.about(&About {
            waits: Waits::Any,
            requests,
            ..About::default()
        });
    }

    /// The wire of the hardware barrier that this process drives has entered and released this number of barriers.
    pub fn tell_wire(&self, wire: u32, entered: u64, released: u64) {
        self.0.state.gate(wire, entered, released);
        if let Some(trace) = self.witness().and_then(Witness::trace) {
            trace.wire(wire, entered, released);
        }
    }

    /// Polls a future to its end, progressing while it waits.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let requests = self.0.pml.requests();
        let mut value = None;
        let mut seen = requests.completions().wrapping_sub(1);
        loop {
            self.wait_until(|| {
                // What waits for messages is worth polling when one has completed; what waits for something else, always.
                let now = requests.completions();
                if value.is_none() && (now != seen || self.0.operations.is_restless()) {
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

/// Nanoseconds of the clock that all processes of a node share.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// See [`Engine::poll_always`].
pub struct PollAlways(Engine);

impl Drop for PollAlways {
    fn drop(&mut self) {
        let PollAlways(engine) = self;
        engine.0.operations.remove_restless();
    }
}

/// Polls without a waker: a thread that progresses looks again by itself.
fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
