//! The operations that progress calls poll: collective operations as requests, background operations, and the hooks of components.
//!
//! Nothing that is called from inside progress may block.
//!
//! No call waits for a background operation; progress completes it.
//! Example: a member that failed to create an object takes part in the object's collective teardown in the background, so that the members with the object
//! need not wait for it indefinitely.

use super::active_operations::Awaited;
use super::{Engine, Occasion, ProgressHook};
use crate::request::{Body, Req, Running, Status};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll, Waker};

impl Engine {
    /// Returns the operations that this process's progress calls poll.
    #[inline(always)]
    pub fn operations(&self) -> Operations<'_> {
        Operations { engine: self }
    }
}

/// How often [`Operations::start_unless_complete`] may poll a new operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Polls {
    One,
    Several,
}

#[derive(Default)]
struct Background(RefCell<Vec<Req>>);

/// The operations that the progress calls of a process poll.
#[derive(Clone, Copy)]
pub struct Operations<'a> {
    engine: &'a Engine,
}

impl Operations<'_> {
    /// Polls operations and progress hooks if a request has completed since the last call. Returns true if an operation has completed.
    pub(super) fn advance(self) -> bool {
        let (operations, requests) = (&self.engine.0.operations, self.engine.0.pml.requests());
        if !operations.are_due(requests.completions()) {
            return false;
        }
        let ended = operations.poll_each(|req| self.poll_request(req));
        self.ask_attendants(Occasion::Completion);
        ended
    }

    fn poll_request(self, req: &Req) -> bool {
        // The future is removed from the request while it runs, since it may access the request table itself.
        let running = match &mut *req.body.borrow_mut() {
            Body::Coll(running) => running.take(),
            _ => None,
        };
        let Some(mut running) = running else {
            return true;
        };
        let Poll::Ready(outcome) = poll(running.as_mut()) else {
            *req.body.borrow_mut() = Body::Coll(Some(running));
            return false;
        };
        // The request does not keep the state of the operation alive.
        *req.body.borrow_mut() = Body::Idle;
        drop(running);
        match outcome {
            Ok(()) => {
                req.set_status(Status::EMPTY);
                self.engine.0.pml.requests().complete_light(req);
                true
            }
            Err(e) => {
                self.engine.0.pml.requests().complete(req, Err(e));
                true
            }
        }
    }

    /// Creates a request that is already complete.
    pub fn completed(self, status: Status) -> Req {
        let requests = self.engine.0.pml.requests();
        let req = requests.begin(Body::Idle);
        requests.complete(&req, Ok(status));
        req
    }

    /// Creates a request for a collective operation and polls it for the first time.
    pub fn start(self, running: Running) -> Req {
        let req = self
            .engine
            .0
            .pml
            .requests()
            .begin(Body::Coll(Some(running)));
        // The first poll is inside progress, as all later ones are,
        // so the same rules apply to all of them.
        let nested = self.engine.0.operations.enter();
        let ended = self.poll_request(&req);
        self.engine.0.operations.leave(nested);
        if !ended {
            self.engine.0.operations.add(req.clone());
        }
        req
    }

    /// Same as [`Operations::start`] for an operation that waits only for words in the node's memory,
    /// but creates no request if the first polls complete the operation successfully.
    ///
    /// If each rank has a core, the other ranks often arrive soon, so [`Polls::Several`] may be faster than a request (ADR 99).
    /// If these polls do not complete the operation, the next operations are polled only once.
    pub fn start_unless_complete(self, mut running: Running, polls: Polls) -> Option<Req> {
        /// Maximum number of polls after the first one; together they take about as long as a request.
        const MORE: u32 = 16;
        let (operations, requests) = (&self.engine.0.operations, self.engine.0.pml.requests());
        let nested = operations.enter();
        let mut polled = poll(running.as_mut());
        let several = polls == Polls::Several && !self.engine.waiting().is_oversubscribed();
        if polled.is_pending() && several {
            operations.poll_early(|| {
                (0..MORE).any(|_| {
                    polled = poll(running.as_mut());
                    polled.is_ready()
                })
            });
        }
        operations.leave(nested);
        match polled {
            Poll::Ready(Ok(())) => None,
            Poll::Ready(Err(e)) => {
                let req = requests.begin(Body::Idle);
                requests.complete(&req, Err(e));
                Some(req)
            }
            Poll::Pending => {
                let req = requests.begin(Body::Coll(Some(running)));
                operations.add(req.clone());
                Some(req)
            }
        }
    }

    /// Polls one collective operation for about a microsecond, as a blocking operation does. Returns true if the operation is complete.
    ///
    /// A poll of only this operation takes a fraction of the time of a progress call.
    /// Other operations and messages wait no longer than during a blocking operation.
    /// Does not poll while an operation awaits an event from outside the job, since a poll may then read a device.
    pub fn spin_for(self, req: &Req) -> bool {
        /// Number of polls, of 10 to 20 ns each.
        const POLLS: u32 = 64;
        let operations = &self.engine.0.operations;
        let may_spin = operations.need_polling()
            && !operations.await_outside_job()
            && !self.engine.waiting().is_oversubscribed()
            && matches!(&*req.body.borrow(), Body::Coll(_));
        if !may_spin || operations.enter() {
            return false;
        }
        let ended = (0..POLLS).any(|_| self.poll_request(req));
        operations.leave(false);
        if ended {
            operations.remove(req);
        }
        ended
    }

    /// Returns true if the caller may block; false inside progress, where a wait would never end.
    ///
    /// All members of a communicator get the same result in the same step of an operation:
    /// the steps of a nonblocking call are always inside progress, those of a blocking call never.
    pub fn may_block(self) -> bool {
        !self.engine.0.operations.is_inside()
    }

    /// Registers an operation that may complete without any message, through a timer, a file or hardware.
    ///
    /// Until the returned token is dropped, every progress call polls all operations,
    /// and the launcher does not report the job as deadlocked.
    pub fn poll_always(self) -> PollAlways {
        self.polled_for(Awaited::Outside)
    }

    /// Same as [`Operations::poll_always`] for an operation that waits only for words that other ranks of the job store in the node's memory.
    /// The operation must call [`Published::has_stepped`](super::Published::has_stepped) when such a word has changed.
    pub fn poll_memory(self) -> PollAlways {
        self.polled_for(Awaited::Memory)
    }

    fn polled_for(self, awaited: Awaited) -> PollAlways {
        self.engine.0.operations.add_polled(awaited);
        PollAlways(self.engine.clone(), awaited)
    }

    /// Runs an operation in the background; its outcome is discarded.
    pub fn run_in_background(self, running: Running) {
        let Background(all) = self.engine.extension_of_type();
        let requests = self.engine.pml().requests();
        let (ended, mut under_way): (Vec<Req>, Vec<Req>) =
            all.take().into_iter().partition(|req| req.is_complete());
        for req in ended {
            // The operation's object has been freed, so nothing needs the outcome.
            let _ = requests.finish(&req);
        }
        under_way.push(self.start(running));
        all.replace(under_way);
    }

    /// Registers a hook, which progress calls until the hook's owner drops it.
    pub fn enlist(self, hook: Weak<dyn ProgressHook>) {
        self.engine.0.hooks.add(hook);
    }

    /// Calls all hooks.
    pub(super) fn ask_attendants(self, occasion: Occasion) {
        if !self.engine.0.hooks.are_any() {
            return;
        }
        let nested = self.engine.0.operations.enter();
        self.engine.0.hooks.ask(occasion);
        self.engine.0.operations.leave(nested);
    }
}

/// The token of [`Operations::poll_always`] and [`Operations::poll_memory`].
pub struct PollAlways(Engine, Awaited);

impl Drop for PollAlways {
    fn drop(&mut self) {
        let PollAlways(engine, awaited) = self;
        engine.0.operations.remove_polled(*awaited);
    }
}

/// Polls without a waker, since the progress calls poll again anyway.
pub(super) fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
