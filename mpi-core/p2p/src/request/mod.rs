//! Requests: active operations, in pooled cells.
//!
//! Outside this process a request is named by index and generation and never by address,
//! so a late or forged acknowledgement finds no request instead of another operation's memory.
//!
//! Protocol: [`Table::begin`] takes a cell from the pool, and the operation's owner fills its body;
//! the code that completes the operation calls [`Table::complete`] exactly once;
//! the waiting thread takes the [`Outcome`] and returns the cell to the pool with [`Table::finish`].
//! Returning a cell increments its generation.
//!
//! The layer above may give a request a name (a number such as a handle) by [`Request::hold`],
//! and look the request up by [`Table::named`] and the related functions,
//! so it needs no table of its own. The name is removed when the cell is returned.

pub(crate) mod id;

pub use id::ReqId;
pub use mpi_types::status::{ANY_SOURCE, ANY_TAG, PROC_NULL, Status};

use crate::Error;
use crate::datatype::RecvTarget;
use crate::pml::ob1::matching::{Key, Matching};
use crate::pml::ob1::recv_body::RecvBody;
use crate::pml::ob1::send_body::SendBody;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// The outcome of an operation.
pub type Outcome = Result<Status, Error>;

/// An active operation that the engine polls.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The operation of a request.
#[derive(Default)]
pub enum Body {
    #[default]
    Idle,
    Send(SendBody),
    Recv(RecvBody),
    Coll(Running),
    /// A generalized request, which the program completes (`MPI_Grequest_start`).
    General,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Well,
    /// Completed successfully, and the cell owns no value that must be dropped before its reuse:
    /// a short receive, the most common case, or a collective.
    Light,
    Failed,
    /// Still active, but the waiting thread must receive an error before it continues; see [`Table::interrupt`].
    Interrupted,
}

/// One request.
pub struct Request {
    index: u32,
    generation: Cell<u32>,
    state: Cell<State>,
    status: Cell<Status>,
    /// The error of a failed or interrupted request.
    error: RefCell<Option<Error>>,
    /// The name of the request in the layer above, or 0.
    name: Cell<u32>,
    /// A value of the layer above that must live as long as the operation.
    held: Cell<Option<Rc<dyn Any>>>,
    pub body: RefCell<Body>,
}

/// A counted reference to a request; the count is not atomic, since one thread at a time uses an engine.
pub type Req = Rc<Request>;

impl Request {
    /// Returns the request's ID in tables and on the wire; later operations in the same cell have other IDs.
    pub fn id(&self) -> ReqId {
        ReqId::new(self.index, self.generation.get())
    }

    /// Returns true if the request has an outcome, success or error.
    /// The thread that takes the outcome returns the request to the pool.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state.get() != State::Running
    }

    /// Returns true if a wait for this request ends early although the operation is still active; see [`Table::interrupt`].
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.state.get() == State::Interrupted
    }

    /// Returns true if the operation has ended, so that no code will complete it any more.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state.get(), State::Running | State::Interrupted)
    }

    /// Returns true if the request has no error and its body owns no value that must be dropped before the request is reused.
    #[inline]
    fn is_light(&self) -> bool {
        let body = match &*self.body.borrow() {
            Body::Recv(recv) => recv.is_light(),
            Body::Idle => true,
            _ => false,
        };
        body && !matches!(self.state.get(), State::Failed | State::Interrupted)
    }

    /// Returns the status as known so far; it is final once the request is complete.
    pub fn status(&self) -> Status {
        self.status.get()
    }

    /// Returns the outcome of a completed request without removing it (`MPI_Request_get_status`).
    pub fn peek(&self) -> Outcome {
        match &*self.error.borrow() {
            Some(e) => Err(e.clone()),
            None => Ok(self.status.get()),
        }
    }

    #[inline]
    pub fn set_status(&self, status: Status) {
        self.status.set(status);
    }

    /// Returns the request's index in the table, which never changes.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the generation, which counts how often the request's cell has been returned.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Gives the request a name other than 0, and a value that lives until the request is returned.
    #[inline]
    pub fn hold(&self, name: u32, held: Option<Rc<dyn Any>>) {
        self.name.set(name);
        self.held.set(held);
    }

    /// Returns the value given to [`Request::hold`].
    pub fn held(&self) -> Option<Rc<dyn Any>> {
        let held = self.held.take();
        self.held.set(held.clone());
        held
    }

    /// Clears the request's name; the held value lives until the operation has completed.
    pub fn forget_name(&self) {
        self.name.set(0);
    }
}

/// All requests of one engine.
#[derive(Default)]
pub struct Table {
    all: RefCell<Vec<Req>>,
    free: RefCell<Vec<Req>>,
    completions: Cell<u64>,
}

impl Table {
    /// Takes a request from the pool and gives it a body.
    ///
    /// Always inlined, so that the body is built in place. A copy would load in one piece what was
    /// stored in several, which stalls the processor (store forwarding).
    #[inline(always)]
    pub fn begin(&self, body: Body) -> Req {
        let req = self.take();
        *req.body.borrow_mut() = body;
        req
    }

    /// Takes a request for a receive from the pool, like [`Table::begin`], and reuses as much as possible of the cell's previous receive.
    #[inline(always)]
    pub(crate) fn begin_recv(
        &self,
        buf: RecvTarget,
        key: Key,
        receiver: i32,
        matching: &Rc<Matching>,
    ) -> Req {
        let req = self.take();
        let mut body = req.body.borrow_mut();
        match (&mut *body, &buf) {
            (Body::Recv(recv), RecvTarget::Bytes(bytes))
                if recv.is_light() && recv.is_in(matching) =>
            {
                recv.renew(*bytes, key, receiver);
                // `RecvBytes` owns nothing, so nothing needs dropping.
                // `forget` spares the compiler the check.
                std::mem::forget(buf);
            }
            (body, _) => {
                *body = Body::Recv(RecvBody::matched(buf, key, receiver, matching.clone()));
            }
        }
        drop(body);
        req
    }

    /// Takes a request from the pool, which may still contain the body of its last use.
    #[inline(always)]
    fn take(&self) -> Req {
        let free = self.free.borrow_mut().pop();
        let req = free.unwrap_or_else(|| self.grow());
        req.state.set(State::Running);
        req.status.set(Status::EMPTY);
        req
    }

    #[cold]
    fn grow(&self) -> Req {
        let mut all = self.all.borrow_mut();
        let req = Rc::new(Request {
            index: all.len() as u32,
            generation: Cell::new(1),
            state: Cell::new(State::Running),
            status: Cell::new(Status::EMPTY),
            error: RefCell::new(None),
            name: Cell::new(0),
            held: Cell::new(None),
            body: RefCell::new(Body::Idle),
        });
        all.push(req.clone());
        req
    }

    /// Returns the live request with this id; `None` if it was returned to the pool or never existed.
    #[inline]
    pub fn get(&self, id: ReqId) -> Option<Req> {
        let all = self.all.borrow();
        let req = all.get(id.index())?;
        (req.generation.get() == id.generation()).then(|| req.clone())
    }

    /// Returns true if a request with this ID has ever existed.
    /// A peer may still refer to a request that was returned to the pool.
    pub fn was_issued(&self, id: ReqId) -> bool {
        let all = self.all.borrow();
        let issued = |req: &Req| (1..=req.generation.get()).contains(&id.generation());
        all.get(id.index()).is_some_and(issued)
    }

    /// Calls `f` with the live request of this id; `f` must not begin another request.
    #[inline]
    pub(crate) fn with<R>(&self, id: ReqId, f: impl FnOnce(&Req) -> R) -> Option<R> {
        let all = self.all.borrow();
        let req = all.get(id.index())?;
        (req.generation.get() == id.generation()).then(|| f(req))
    }

    /// Completes an operation and notifies its waiter.
    pub fn complete(&self, req: &Request, outcome: Outcome) {
        match outcome {
            Ok(status) => {
                req.status.set(status);
                self.complete_ok(req);
            }
            Err(e) => {
                *req.error.borrow_mut() = Some(e);
                req.state.set(State::Failed);
                self.nudge();
            }
        }
    }

    /// Completes an operation successfully with the status collected so far.
    #[inline]
    pub fn complete_ok(&self, req: &Request) {
        if req.is_interrupted() {
            self.resume(req);
        }
        req.state.set(State::Well);
        self.nudge();
    }

    /// Completes an operation like [`Table::complete_ok`], for a receive whose body is light,
    /// or for a request whose body was taken.
    #[inline]
    pub fn complete_light(&self, req: &Request) {
        if req.is_interrupted() {
            self.resume(req);
        }
        req.state.set(State::Light);
        self.nudge();
    }

    /// Interrupts the wait for an operation with `error`.
    /// The operation stays active, and an arriving message completes it as usual.
    pub fn interrupt(&self, req: &Request, error: Error) {
        if !req.has_ended() {
            *req.error.borrow_mut() = Some(error);
            req.state.set(State::Interrupted);
            self.nudge();
        }
    }

    /// Withdraws an interruption.
    pub fn resume(&self, req: &Request) {
        if req.is_interrupted() {
            req.error.borrow_mut().take();
            req.state.set(State::Running);
        }
    }

    /// Sets the error with which the operation will complete, regardless of its own result.
    pub fn doom(&self, req: &Request, error: Error) {
        *req.error.borrow_mut() = Some(error);
    }

    /// Takes the outcome and returns the request to the pool.
    pub fn finish(&self, req: &Req) -> Outcome {
        let outcome = match req.error.borrow_mut().take() {
            Some(e) => Err(e),
            None => Ok(req.status.get()),
        };
        self.release(req);
        outcome
    }

    /// Returns the request at `index` if the layer above has named it `name`.
    pub fn named(&self, index: u32, name: u32) -> Option<Req> {
        let all = self.all.borrow();
        let req = all.get(index as usize)?;
        (req.name.get() == name && name != 0).then(|| req.clone())
    }

    /// Returns true if the request at `index` is complete; `None` if its name is not `name`.
    #[inline]
    pub fn is_named_complete(&self, index: u32, name: u32) -> Option<bool> {
        let all = self.all.borrow();
        let req = all.get(index as usize)?;
        (req.name.get() == name && name != 0).then(|| req.is_complete())
    }

    /// If the request at `index` with this name has ended in state `Light` (a short receive or a
    /// collective), takes its status and returns the request to the pool.
    /// Any other request is left unchanged, to be waited for or passed to [`Table::finish`].
    #[inline(always)]
    pub fn finish_named(&self, index: u32, name: u32) -> Option<Status> {
        let all = self.all.borrow();
        let req = all.get(index as usize)?;
        if req.name.get() != name || name == 0 || req.state.get() != State::Light {
            return None;
        }
        let status = req.status.get();
        let held = self.retire(req);
        drop(all);
        // `held` may be the last reference to a communicator, whose drop accesses this table.
        drop(held);
        Some(status)
    }

    /// Returns a request to the pool without checking its outcome.
    #[inline]
    pub fn release(&self, req: &Req) {
        if req.is_light() {
            drop(self.retire(req));
            return;
        }
        req.error.borrow_mut().take();
        // The body may own the last reference to a communicator, whose drop accesses this table.
        let body = req.body.take();
        let held = self.retire(req);
        drop((body, held));
    }

    /// Returns a cell to the pool unchanged. Returns the value held with it.
    #[inline]
    fn retire(&self, req: &Req) -> Option<Rc<dyn Any>> {
        let generation = req.generation.get();
        req.generation.set(generation.wrapping_add(1).max(1));
        req.name.set(0);
        self.free.borrow_mut().push(req.clone());
        req.held.take()
    }

    /// Returns the number of completions, so that a waiter knows when polling again is useful.
    #[inline]
    pub fn completions(&self) -> u64 {
        self.completions.get()
    }

    /// Wakes waiters that poll something other than a request.
    #[inline]
    pub fn nudge(&self) {
        self.completions.set(self.completions.get().wrapping_add(1));
    }

    /// Returns all requests that have not completed.
    pub fn under_way(&self) -> Vec<Req> {
        let all = self.all.borrow();
        let mut is_free = vec![false; all.len()];
        for free in self.free.borrow().iter() {
            if let Some(is_free) = is_free.get_mut(free.index as usize) {
                *is_free = true;
            }
        }
        let each = all.iter().zip(is_free);
        let waits = each.filter(|(req, is_free)| !is_free && !req.has_ended());
        waits.map(|(req, _)| req.clone()).collect()
    }

    /// Returns the requests that have a name in the layer above: those of the program.
    pub fn all_named(&self) -> Vec<Req> {
        let named = |req: &&Req| req.name.get() != 0;
        self.all.borrow().iter().filter(named).cloned().collect()
    }

    /// Returns the number of live requests, for leak checks and the hang report.
    pub fn live(&self) -> usize {
        self.all.borrow().len() - self.free.borrow().len()
    }
}

#[cfg(test)]
mod tests;
