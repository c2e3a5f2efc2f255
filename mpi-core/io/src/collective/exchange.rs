//! A set of concurrent nonblocking messages of a collective access.
//!
//! Guarantee: after [`Exchange::done`] or a drop, none of its messages accesses memory,
//! even after an error.
#![allow(unsafe_code)]

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Named, RecvBuf, SendBuf};
use crate::pml::Mode;
use crate::pml::Sent;
use crate::request::Req;

const TAG: i32 = 1;

/// The messages of a collective access that are in flight.
pub(crate) struct Exchange<'c> {
    comm: &'c Comm,
    /// The sender and the request of each expected message.
    coming: Vec<(usize, Req)>,
    going: Vec<Req>,
}

impl<'c> Exchange<'c> {
    pub fn new(comm: &'c Comm) -> Exchange<'c> {
        Exchange {
            comm,
            coming: Vec::new(),
            going: Vec::new(),
        }
    }

    /// Starts to receive a message of at most `len` bytes from a rank.
    ///
    /// # Safety
    /// `dest` has `len` bytes, which no other code uses until this exchange is done or dropped.
    pub unsafe fn expect(&mut self, from: usize, dest: *mut u8, len: usize) -> Result<(), Error> {
        // SAFETY: `dest` has `len` bytes that only this exchange uses, by this function's contract.
        // `done` and `drop` wait for the request.
        let buf = unsafe { RecvBuf::new(dest, len as i64, Named::BYTE.into()) };
        let req = self.comm.p2p().irecv(buf, from as i32, TAG)?;
        self.coming.push((from, req));
        Ok(())
    }

    /// Starts to send a message to a rank.
    ///
    /// # Safety
    /// The data do not change until this exchange is done or dropped.
    pub unsafe fn send(&mut self, to: usize, data: &[u8]) -> Result<(), Error> {
        // SAFETY: the data stay unchanged by this function's contract; `done` and `drop` wait for the request.
        let buf = unsafe { SendBuf::new(data.as_ptr(), data.len() as i64, Named::BYTE.into()) };
        if let Sent::Pending(req) = self.comm.p2p().isend(buf, to as i32, TAG, Mode::Standard)? {
            self.going.push(req);
        }
        Ok(())
    }

    /// Waits for all messages.
    /// Returns the sender and length of each received message, in the order of `expect` calls.
    pub fn done(mut self) -> Result<Vec<(usize, usize)>, Error> {
        self.wait()
    }

    fn wait(&mut self) -> Result<Vec<(usize, usize)>, Error> {
        let engine = self.comm.engine();
        let mut outcome = Ok(Vec::new());
        for (from, req) in self.coming.drain(..) {
            let waited = engine.wait(&req);
            outcome = outcome.and_then(|mut come: Vec<_>| {
                come.push((from, waited?.bytes as usize));
                Ok(come)
            });
        }
        for req in self.going.drain(..) {
            let waited = engine.wait(&req);
            outcome = outcome.and_then(|come| waited.map(|_| come));
        }
        outcome
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        // A caller that drops the exchange without `done` reports another error.
        let _ = self.wait();
    }
}
