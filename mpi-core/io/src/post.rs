//! Messages of a collective access that are under way together.
//!
//! Promise: when a [`Post`] is done or dropped, none of its messages touches memory any more, whatever has failed.
#![allow(unsafe_code)]

use crate::Error;
use crate::comm::Comm;
use crate::datatype::{Named, RecvBuf, SendBuf};
use crate::pml::Mode;
use crate::pml::Sent;
use crate::request::Req;

const TAG: i32 = 1;

/// Messages under way.
pub(super) struct Post<'c> {
    comm: &'c Comm,
    /// From whom.
    coming: Vec<(usize, Req)>,
    going: Vec<Req>,
}

impl<'c> Post<'c> {
    pub fn new(comm: &'c Comm) -> Post<'c> {
        Post {
            comm,
            coming: Vec::new(),
            going: Vec::new(),
        }
    }

    /// Expects a message of `len` bytes at most from a rank.
    ///
    /// # Safety
    /// The room is memory of that length, and no other code's until this is done or dropped.
    pub unsafe fn expect(&mut self, from: usize, room: *mut u8, len: usize) -> Result<(), Error> {
        // SAFETY: as the caller says.
        let buf = unsafe { RecvBuf::new(room, len as i64, Named::BYTE.into()) };
        let req = self.comm.irecv(buf, from as i32, TAG)?;
        self.coming.push((from, req));
        Ok(())
    }

    /// Sends a rank a message.
    ///
    /// # Safety
    /// The data stay as they are until this is done or dropped.
    pub unsafe fn send(&mut self, to: usize, data: &[u8]) -> Result<(), Error> {
        // SAFETY: as the caller says.
        let buf = unsafe { SendBuf::new(data.as_ptr(), data.len() as i64, Named::BYTE.into()) };
        if let Sent::Pending(req) = self.comm.isend(buf, to as i32, TAG, Mode::Standard)? {
            self.going.push(req);
        }
        Ok(())
    }

    /// Waits for all; who has sent how many bytes, in the order in which they were expected.
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

impl Drop for Post<'_> {
    fn drop(&mut self) {
        // The caller that did not ask for the outcome has failed already.
        let _ = self.wait();
    }
}
