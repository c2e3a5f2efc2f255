//! Requests: the state of active operations, in reused cells.
//!
//! Other processes refer to a request by index and generation, never by address.
//! So a late or forged reply finds no request instead of another operation's memory.
//!
//! Protocol: [`Table::begin`] takes a cell from the pool and stores the operation's state in it as its body;
//! the code that completes the operation calls [`Table::complete`] exactly once;
//! the waiting thread removes the [`Outcome`] and returns the cell to the pool by [`Table::finish`].
//! Each return increments the cell's generation.
//!
//! The layer above can assign a name to a request (a number such as a handle) by [`Request::hold`]
//! and find the request by [`Table::named`] and the related functions.
//! So the layer needs no table of its own. The name is removed when the cell is returned.

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

/// The outcome of an operation: its status or its error.
pub type Outcome = Result<Status, Error>;

/// An active collective operation, a future that the engine polls.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The operation of a request and its state.
#[derive(Default)]
pub enum Body {
    #[default]
    Idle,
    Send(SendBody),
    Recv(RecvBody),
    /// A collective operation; `None` while it is polled.
    Coll(Option<Running>),
    /// A generalized request, which the program completes (`MPI_Grequest_start`).
    General,
}

/// The stage of a request's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Well,
    /// Completed successfully, and the cell owns no value that must be dropped before its reuse.
    /// This is the state of a short receive, the most common case, and of a collective.
    Light,
    Failed,
    /// Still active, but the waiting thread must receive an error before it continues; see [`Table::interrupt`].
    Interrupted,
}

/// One request: a cell of the pool, with one operation at a time.
pub struct Request {
    index: u32,
    generation: Cell<u32>,
    state: Cell<State>,
    status: Cell<Status>,
    /// The error of a failed or interrupted request.
    error: RefCell<Option<Error>>,
    /// The name that the layer above has assigned to the request, or 0.
    name: Cell<u32>,
    /// A value of the layer above that must live until the request is returned to the pool.
    held: Cell<Option<Rc<dyn Any>>>,
    pub body: RefCell<Body>,
}

/// A counted reference to a request. The count is not atomic, because only one thread at a time uses an engine.
pub type Req = Rc<Request>;

impl Request {
    /// Returns the request's ID, for tables and for messages. Later operations in the same cell have other IDs.
    pub fn id(&self) -> ReqId {
        ReqId::new(self.index, self.generation.get())
    }

    /// Returns true if a wait for the request can end: it has succeeded, failed, or is interrupted.
    /// The thread that removes the outcome of a completed request returns the request to the pool.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state.get() != State::Running
    }

    /// Returns true if a wait for the request ends early with an error although the operation is active; see [`Table::interrupt`].
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.state.get() == State::Interrupted
    }

    /// Returns true if the operation has succeeded or failed; then no code will complete it again.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state.get(), State::Running | State::Interrupted)
    }

    /// Returns true if the request has no error, and its body owns no value that must be dropped before reuse.
    #[inline]
    fn is_light(&self) -> bool {
        let body = match &*self.body.borrow() {
            Body::Recv(recv) => recv.is_light(),
            Body::Idle => true,
            _ => false,
        };
        body && !matches!(self.state.get(), State::Failed | State::Interrupted)
    }

    /// Returns the status so far; it is final when the request is complete.
    pub fn status(&self) -> Status {
        self.status.get()
    }

    /// Returns the outcome of a completed request, without removal (`MPI_Request_get_status`).
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

    /// Returns the index of the request's cell in the table; it never changes.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the generation of the request's cell: 1 plus the number of times that the cell was returned to the pool.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Assigns a name other than 0 to the request, and stores a value that lives until the request is returned.
    #[inline]
    pub fn hold(&self, name: u32, held: Option<Rc<dyn Any>>) {
        self.name.set(name);
        self.held.set(held);
    }

    /// Returns the value stored by [`Request::hold`].
    pub fn held(&self) -> Option<Rc<dyn Any>> {
        let held = self.held.take();
        self.held.set(held.clone());
        held
    }

    /// Clears the request's name; the value stored by [`Request::hold`] remains.
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
    /// Takes a request from the pool and stores `body` in it.
    ///
    /// Always inlined, so the body is constructed directly in the cell. A copy would load as one block what was
    /// stored in several parts, which stalls the processor (store forwarding).
    #[inline(always)]
    pub fn begin(&self, body: Body) -> Req {
        let req = self.take();
        *req.body.borrow_mut() = body;
        req
    }

    /// Takes a request for a receive from the pool, like [`Table::begin`], and if possible reuses the cell's previous receive.
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
                // `RecvBytes` owns nothing, so nothing needs to be dropped.
                // With `forget` the compiler need not generate the drop check.
                std::mem::forget(buf);
            }
            (body, _) => {
                *body = Body::Recv(RecvBody::matched(buf, key, receiver, matching.clone()));
            }
        }
        drop(body);
        req
    }

    /// Takes a request from the pool; it may still contain the body of its previous operation.
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

    /// Returns the live request with this ID; `None` if it was returned to the pool or never existed.
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

    /// Calls `f` with the live request with this ID. `f` must not begin another request.
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

    /// Completes an operation successfully with the status stored so far.
    #[inline]
    pub fn complete_ok(&self, req: &Request) {
        if req.is_interrupted() {
            self.resume(req);
        }
        req.state.set(State::Well);
        self.nudge();
    }

    /// Completes a receive like [`Table::complete_ok`], if its body owns no value that must be dropped,
    /// or another request whose body was removed.
    #[inline]
    pub fn complete_light(&self, req: &Request) {
        if req.is_interrupted() {
            self.resume(req);
        }
        req.state.set(State::Light);
        self.nudge();
    }

    /// Ends the wait for an operation with `error`.
    /// The operation stays active, and an arriving message completes it as usual.
    pub fn interrupt(&self, req: &Request, error: Error) {
        if !req.has_ended() {
            *req.error.borrow_mut() = Some(error);
            req.state.set(State::Interrupted);
            self.nudge();
        }
    }

    /// Removes the interruption by [`Table::interrupt`].
    pub fn resume(&self, req: &Request) {
        if req.is_interrupted() {
            req.error.borrow_mut().take();
            req.state.set(State::Running);
        }
    }

    /// Sets the error with which the operation will complete, whatever its own result is.
    pub fn doom(&self, req: &Request, error: Error) {
        *req.error.borrow_mut() = Some(error);
    }

    /// Removes and returns the outcome, and returns the request to the pool.
    pub fn finish(&self, req: &Req) -> Outcome {
        let outcome = match req.error.borrow_mut().take() {
            Some(e) => Err(e),
            None => Ok(req.status.get()),
        };
        self.release(req);
        outcome
    }

    /// Returns the request at `index` if its name is `name`.
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
    /// collective), returns its status and returns the request to the pool.
    /// Any other request is left unchanged: the caller must wait for it or pass it to [`Table::finish`].
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
        // `held` can be the last reference to a communicator, and its drop accesses this table.
        drop(held);
        Some(status)
    }

    /// Returns a request to the pool and discards its outcome.
    #[inline]
    pub fn release(&self, req: &Req) {
        if req.is_light() {
            drop(self.retire(req));
            return;
        }
        req.error.borrow_mut().take();
        // The body can own the last reference to a communicator, and its drop accesses this table.
        let body = req.body.take();
        let held = self.retire(req);
        drop((body, held));
    }

    /// Returns a cell to the pool without changing its body. Returns the value stored by [`Request::hold`].
    #[inline]
    fn retire(&self, req: &Req) -> Option<Rc<dyn Any>> {
        let generation = req.generation.get();
        req.generation.set(generation.wrapping_add(1).max(1));
        req.name.set(0);
        self.free.borrow_mut().push(req.clone());
        req.held.take()
    }

    /// Returns the number of completions so far. A waiter compares two values to decide whether to check its requests again.
    #[inline]
    pub fn completions(&self) -> u64 {
        self.completions.get()
    }

    /// Wakes waiters that wait for something other than a request.
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

    /// Returns the requests to which the layer above has assigned a name: those of the program.
    pub fn all_named(&self) -> Vec<Req> {
        let named = |req: &&Req| req.name.get() != 0;
        self.all.borrow().iter().filter(named).cloned().collect()
    }

    /// Returns the number of requests that are not in the pool, for leak checks and the hang report.
    pub fn live(&self) -> usize {
        self.all.borrow().len() - self.free.borrow().len()
    }
}

#[cfg(test)]
mod tests;
