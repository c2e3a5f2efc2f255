//! Requests: operations under way.
//!
//! A request is a pooled cell, named outside this process by index and generation and never by address,
//! so a late or forged acknowledgement finds nothing instead of a stranger's memory.
//!
//! Protocol: [`Table::begin`] takes a cell from the pool and the operation's owner fills its body;
//! the code that completes the operation calls [`Table::complete`] exactly once;
//! the waiting thread takes the [`Outcome`] and gives the cell back with [`Table::finish`].
//! Handing a cell back advances its generation.
//!
//! The layer above may give a request a number of its own with [`Request::hold`] and find it again by [`Table::named`] and its relatives,
//! so that it needs no table of its own; the number goes when the cell is handed back.

pub(crate) mod id;

pub use id::ReqId;
pub use mpi_types::status::{ANY_SOURCE, ANY_TAG, PROC_NULL, Status};

use crate::Error;
use crate::datatype::Room;
use crate::pml::ob1::matching::{Key, Matching};
use crate::pml::ob1::recv_body::RecvBody;
use crate::pml::ob1::send_body::SendBody;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// How an operation ended.
pub type Outcome = Result<Status, Error>;

/// An operation under way that the engine polls.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// What is under way.
#[derive(Default)]
pub enum Body {
    #[default]
    Idle,
    Send(SendBody),
    Recv(RecvBody),
    Coll(Running),
    /// The user completes it: `MPI_Grequest_start`.
    General,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Well,
    /// Well, and nothing of it has to go before its cell is used again: the end of a short receive, the commonest of all, or of a collective.
    Light,
    Failed,
    /// Under way, and the waiting thread is to be told of something before it goes on; see [`Table::interrupt`].
    Interrupted,
}

/// One request.
pub struct Request {
    index: u32,
    generation: Cell<u32>,
    state: Cell<State>,
    status: Cell<Status>,
    /// Why it failed; nothing in any other state.
    error: RefCell<Option<Error>>,
    /// The number that the layer above knows the request by; 0 if it does not.
    name: Cell<u32>,
    /// What that layer wants to live as long as the operation.
    held: Cell<Option<Rc<dyn Any>>>,
    pub body: RefCell<Body>,
}

/// A counted reference to a request; the count is not atomic, an engine belongs to one thread at a time.
pub type Req = Rc<Request>;

impl Request {
    /// Its name in tables and on the wire, which no other operation gets when it is used again.
    pub fn id(&self) -> ReqId {
        ReqId::new(self.index, self.generation.get())
    }

    /// Whether there is an outcome, good or bad; the thread that takes it hands the request back.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state.get() != State::Running
    }

    /// Whether a wait for it ends early, though it is still under way; see [`Table::interrupt`].
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.state.get() == State::Interrupted
    }

    /// Whether it has ended, so that nothing will complete it any more.
    pub fn has_ended(&self) -> bool {
        !matches!(self.state.get(), State::Running | State::Interrupted)
    }

    /// Whether it has no error and its body nothing that needs to go before the request is used again.
    #[inline]
    fn is_light(&self) -> bool {
        let body = match &*self.body.borrow() {
            Body::Recv(recv) => recv.is_light(),
            Body::Idle => true,
            _ => false,
        };
        body && !matches!(self.state.get(), State::Failed | State::Interrupted)
    }

    /// The status as known so far; final once complete.
    pub fn status(&self) -> Status {
        self.status.get()
    }

    /// The outcome of a completed request, leaving it in place (`MPI_Request_get_status`).
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

    /// Its place in the table, which it keeps for life.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How often its cell has been handed back.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Gives the request a number, not 0, and something that lives until it is handed back.
    #[inline]
    pub fn hold(&self, name: u32, held: Option<Rc<dyn Any>>) {
        self.name.set(name);
        self.held.set(held);
    }

    /// What was given to [`Request::hold`].
    pub fn held(&self) -> Option<Rc<dyn Any>> {
        let held = self.held.take();
        self.held.set(held.clone());
        held
    }

    /// Takes the number away; what is held stays until the operation is over.
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
    /// Always inlined, so that a body is built where it stays: reading back in one piece what was just written in several stalls the processor.
    #[inline(always)]
    pub fn begin(&self, body: Body) -> Req {
        let req = self.take();
        *req.body.borrow_mut() = body;
        req
    }

    /// The same for a receive, which takes over what it can of the receive that used the cell before it.
    #[inline(always)]
    pub(crate) fn begin_recv(
        &self,
        buf: Room,
        key: Key,
        receiver: i32,
        matching: &Rc<Matching>,
    ) -> Req {
        let req = self.take();
        let mut body = req.body.borrow_mut();
        match (&mut *body, &buf) {
            (Body::Recv(recv), Room::Bytes(bytes)) if recv.is_light() && recv.is_in(matching) => {
                recv.renew(*bytes, key, receiver);
                // A run of bytes owns nothing, so there is nothing to drop, which the compiler is not to look for.
                std::mem::forget(buf);
            }
            (body, _) => {
                *body = Body::Recv(RecvBody::matched(buf, key, receiver, matching.clone()));
            }
        }
        drop(body);
        req
    }

    /// A request from the pool, which may still hold the body of its last use.
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

    /// The live request of this name; `None` for one that was handed back or never existed.
    #[inline]
    pub fn get(&self, id: ReqId) -> Option<Req> {
        let all = self.all.borrow();
        let req = all.get(id.index())?;
        (req.generation.get() == id.generation()).then(|| req.clone())
    }

    /// Whether there has ever been a request of this name; one that was handed back may still be named by a peer.
    pub fn was_issued(&self, id: ReqId) -> bool {
        let all = self.all.borrow();
        let issued = |req: &Req| (1..=req.generation.get()).contains(&id.generation());
        all.get(id.index()).is_some_and(issued)
    }

    /// Shows the live request of this name to `f`, which begins no other.
    #[inline]
    pub(crate) fn with<R>(&self, id: ReqId, f: impl FnOnce(&Req) -> R) -> Option<R> {
        let all = self.all.borrow();
        let req = all.get(id.index())?;
        (req.generation.get() == id.generation()).then(|| f(req))
    }

    /// Marks an operation as ended and lets its waiter see it.
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

    /// Completes successfully with the status collected on the way.
    #[inline]
    pub fn complete_ok(&self, req: &Request) {
        if req.is_interrupted() {
            self.resume(req);
        }
        req.state.set(State::Well);
        self.nudge();
    }

    /// The same for a receive whose body is [light](RecvBody::is_light), or where the body is gone.
    #[inline]
    pub fn complete_light(&self, req: &Request) {
        if req.is_interrupted() {
            self.resume(req);
        }
        req.state.set(State::Light);
        self.nudge();
    }

    /// The thread that waits for the operation, which stays under way, is told of this error; a message that comes ends it as ever.
    pub fn interrupt(&self, req: &Request, error: Error) {
        if !req.has_ended() {
            *req.error.borrow_mut() = Some(error);
            req.state.set(State::Interrupted);
            self.nudge();
        }
    }

    /// Takes an interruption back.
    pub fn resume(&self, req: &Request) {
        if req.is_interrupted() {
            req.error.borrow_mut().take();
            req.state.set(State::Running);
        }
    }

    /// However the operation ends, its outcome will be this error.
    pub fn doom(&self, req: &Request, error: Error) {
        *req.error.borrow_mut() = Some(error);
    }

    /// Takes the outcome and hands the request back to the pool.
    pub fn finish(&self, req: &Req) -> Outcome {
        let outcome = match req.error.borrow_mut().take() {
            Some(e) => Err(e),
            None => Ok(req.status.get()),
        };
        self.release(req);
        outcome
    }

    /// The request at `index` if the layer above calls it `name`.
    pub fn named(&self, index: u32, name: u32) -> Option<Req> {
        let all = self.all.borrow();
        let req = all.get(index as usize)?;
        (req.name.get() == name && name != 0).then(|| req.clone())
    }

    /// Whether the request of this name is complete.
    #[inline]
    pub fn is_named_complete(&self, index: u32, name: u32) -> Option<bool> {
        let all = self.all.borrow();
        let req = all.get(index as usize)?;
        (req.name.get() == name && name != 0).then(|| req.is_complete())
    }

    /// Takes the status of a request of this name that has ended as the commonest of all do, a short receive or a collective, and hands it back;
    /// all others are left as they are, to be waited for or to go to [`Table::finish`].
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
        // It may be the last to hold a communicator, whose drop looks at this table again.
        drop(held);
        Some(status)
    }

    /// Hands a request back to the pool without looking at it.
    #[inline]
    pub fn release(&self, req: &Req) {
        if req.is_light() {
            drop(self.retire(req));
            return;
        }
        req.error.borrow_mut().take();
        // The body may own the last reference to a communicator whose drop looks at this table again.
        let body = req.body.take();
        let held = self.retire(req);
        drop((body, held));
    }

    /// Puts a cell into the pool, as it is; returns what was held with it.
    #[inline]
    fn retire(&self, req: &Req) -> Option<Rc<dyn Any>> {
        let generation = req.generation.get();
        req.generation.set(generation.wrapping_add(1).max(1));
        req.name.set(0);
        self.free.borrow_mut().push(req.clone());
        req.held.take()
    }

    /// Counts every completion, so that a waiter knows when looking again is worth it.
    #[inline]
    pub fn completions(&self) -> u64 {
        self.completions.get()
    }

    /// Wakes waiters that look at something other than a request.
    #[inline]
    pub fn nudge(&self) {
        self.completions.set(self.completions.get().wrapping_add(1));
    }

    /// All requests that have not completed.
    pub fn under_way(&self) -> Vec<Req> {
        let free = self.free.borrow();
        let is_free = |req: &Req| free.iter().any(|free| Rc::ptr_eq(free, req));
        let waits = |req: &&Req| !req.has_ended() && !is_free(req);
        self.all.borrow().iter().filter(waits).cloned().collect()
    }

    /// How many requests are under way, for leak checks and the hang report.
    pub fn live(&self) -> usize {
        self.all.borrow().len() - self.free.borrow().len()
    }
}

#[cfg(test)]
mod tests;
