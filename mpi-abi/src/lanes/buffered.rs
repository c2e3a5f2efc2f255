//! Buffered sends in a lane, and operations whose requests were freed.
//!
//! The library copies a buffered message into memory of its own and not into the attached buffer.
//! The calls that detach or flush a buffer, and `MPI_Finalize`, wait until the copies have been sent.
//! `MPI_Comm_disconnect` also waits for the freed operations of its communicator.

use super::Twin;
use super::objects::Pending;
use crate::error::Failure;
use mpi_core::Engine;
use mpi_core::pml::{Mode, Sent};
use mpi_core::request::Req;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

/// A buffered message: its send, its bytes and its communicator.
type Buffered = (Req, Vec<u8>, Rc<Twin>);

/// The sends of a lane that no request of the program completes.
#[derive(Default)]
pub struct Sends {
    copies: RefCell<Vec<Buffered>>,
    /// Operations whose requests were freed.
    freed: RefCell<Vec<(Pending, Rc<Twin>)>>,
    /// The first failure of such an operation that no call has reported yet.
    failure: Cell<Option<Failure>>,
}

impl Sends {
    pub const fn new() -> Sends {
        Sends {
            copies: RefCell::new(Vec::new()),
            freed: RefCell::new(Vec::new()),
            failure: Cell::new(None),
        }
    }

    /// Sends a copy of a message.
    pub fn send(
        &self,
        twin: &Rc<Twin>,
        data: Vec<u8>,
        dest: c_int,
        tag: c_int,
    ) -> Result<(), Failure> {
        self.reap(twin.engine());
        if let Sent::Pending(req) = twin.isend(&data, dest, tag, Mode::Standard)? {
            self.copies.borrow_mut().push((req, data, twin.clone()));
        }
        Ok(())
    }

    /// Keeps an operation whose request was freed until it completes.
    pub fn adopt(&self, pending: Pending, twin: Rc<Twin>) {
        let engine = twin.engine().clone();
        self.freed.borrow_mut().push((pending, twin));
        self.reap(&engine);
    }

    /// Releases the operations that have completed.
    pub fn reap(&self, engine: &Engine) {
        let requests = engine.pml().requests();
        let is_over = |req: &Req, twin: &Twin| {
            let over = req.is_complete();
            if let Some(Err(error)) = over.then(|| requests.finish(req)) {
                let first = self.failure.take();
                let failure = first.unwrap_or_else(|| twin.blame(error.into()));
                self.failure.set(Some(failure));
            }
            over
        };
        let mut copies = self.copies.take();
        copies.retain(|(req, _, twin)| !is_over(req, twin));
        let mut list = self.copies.borrow_mut();
        copies.append(&mut list);
        *list = copies;
        drop(list);
        let mut freed = self.freed.take();
        freed.retain_mut(|(pending, twin)| {
            pending.receive.take_if(|req| is_over(req, twin));
            pending.send.take_if(|req| is_over(req, twin));
            pending.receive.is_some() || pending.send.is_some()
        });
        let mut list = self.freed.borrow_mut();
        freed.append(&mut list);
        *list = freed;
    }

    /// Returns the first failure of an operation that no request of the program completes.
    /// No call can return it, so it ends the job (section 3.7.3).
    pub fn take_failure(&self) -> Option<Failure> {
        self.failure.take()
    }

    /// Returns true if all copies of buffered messages have been sent: those of `twin`, or all.
    /// Releases nothing, so it may be called while the engine makes progress.
    pub fn are_sent(&self, of: Option<&Rc<Twin>>) -> bool {
        let is_of = |twin: &Rc<Twin>| of.is_none_or(|of| Rc::ptr_eq(of, twin));
        let copies = self.copies.borrow();
        copies
            .iter()
            .all(|(req, _, twin)| !is_of(twin) || req.is_complete())
    }

    /// Returns true if all operations of a communicator whose requests were freed have completed.
    pub fn are_over(&self, of: &Rc<Twin>) -> bool {
        let is_over = |req: &Option<Req>| req.as_ref().is_none_or(|req| req.is_complete());
        let freed = self.freed.borrow();
        freed.iter().all(|(pending, twin)| {
            !Rc::ptr_eq(of, twin) || is_over(&pending.receive) && is_over(&pending.send)
        })
    }
}
