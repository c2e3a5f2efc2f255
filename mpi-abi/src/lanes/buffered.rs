//! Buffered sends in a lane, and operations whose requests were freed.
//!
//! The library copies a buffered message into memory of its own and not into the attached buffer,
//! so `MPI_Buffer_detach` need not wait for it. `MPI_Finalize` does.

use super::Twin;
use super::objects::Pending;
use crate::error::Failure;
use mpi_core::Engine;
use mpi_core::pml::{Mode, Sent};
use mpi_core::request::Req;
use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;

/// The sends of a lane that no request of the program completes.
#[derive(Default)]
pub struct Sends {
    copies: RefCell<Vec<(Req, Vec<u8>)>>,
    /// Operations whose requests were freed.
    freed: RefCell<Vec<(Pending, Rc<Twin>)>>,
}

impl Sends {
    pub const fn new() -> Sends {
        Sends {
            copies: RefCell::new(Vec::new()),
            freed: RefCell::new(Vec::new()),
        }
    }

    /// Sends a copy of a message.
    pub fn send(&self, twin: &Twin, data: Vec<u8>, dest: c_int, tag: c_int) -> Result<(), Failure> {
        self.reap(twin.engine());
        if let Sent::Pending(req) = twin.isend(&data, dest, tag, Mode::Standard)? {
            self.copies.borrow_mut().push((req, data));
        }
        Ok(())
    }

    /// Keeps an operation whose request was freed until it completes.
    pub fn adopt(&self, pending: Pending, twin: Rc<Twin>) {
        self.reap(twin.engine());
        self.freed.borrow_mut().push((pending, twin));
    }

    /// Releases the operations that have completed. No call remains that could return their errors.
    pub fn reap(&self, engine: &Engine) {
        let requests = engine.pml().requests();
        let is_over = |req: &Req| {
            let over = req.is_complete();
            if over {
                let _ = requests.finish(req);
            }
            over
        };
        self.copies.borrow_mut().retain(|(req, _)| !is_over(req));
        let mut freed = self.freed.take();
        freed.retain_mut(|(pending, _)| {
            pending.receive.take_if(|req| is_over(req));
            pending.send.take_if(|req| is_over(req));
            pending.receive.is_some() || pending.send.is_some()
        });
        let mut list = self.freed.borrow_mut();
        freed.append(&mut list);
        *list = freed;
    }

    /// Returns true if all copies of buffered messages have been sent.
    pub fn are_sent(&self, engine: &Engine) -> bool {
        self.reap(engine);
        self.copies.borrow().is_empty()
    }
}
