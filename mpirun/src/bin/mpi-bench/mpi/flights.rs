//! Many messages under way at once.

use super::{Handle, MpiError, World, check, count};
use std::ptr;

impl World<'_> {
    /// Sends the same bytes once for each request slot, all in flight together.
    pub fn send_many(
        &self,
        data: &[u8],
        to: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_sends(data, to, tag, &mut flights.sends)?;
        self.wait_all(&mut flights.sends)
    }

    /// Receives once for each request slot into the same bytes, as the OSU loops do.
    pub fn recv_many(
        &self,
        data: &mut [u8],
        from: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_recvs(data, from, tag, &mut flights.recvs)?;
        self.wait_all(&mut flights.recvs)
    }

    /// Both at once: receives are posted first, then the sends.
    pub fn exchange_many(
        &self,
        (sent, sent_tag): (&[u8], i32),
        (received, received_tag): (&mut [u8], i32),
        peer: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_recvs(received, peer, received_tag, &mut flights.recvs)?;
        self.post_sends(sent, peer, sent_tag, &mut flights.sends)?;
        self.wait_all(&mut flights.sends)?;
        self.wait_all(&mut flights.recvs)
    }

    fn post_sends(
        &self,
        data: &[u8],
        to: i32,
        tag: i32,
        requests: &mut [Handle],
    ) -> Result<(), MpiError> {
        let h = self.handles();
        for request in requests {
            // SAFETY: our callers wait for the request before the borrow of `data` ends.
            let code = unsafe {
                (self.call().isend)(
                    data.as_ptr().cast(),
                    count(data.len()),
                    h.char_,
                    to,
                    tag,
                    h.world,
                    request,
                )
            };
            check("MPI_Isend", code)?;
        }
        Ok(())
    }

    fn post_recvs(
        &self,
        data: &mut [u8],
        from: i32,
        tag: i32,
        requests: &mut [Handle],
    ) -> Result<(), MpiError> {
        let h = self.handles();
        for request in requests {
            // SAFETY: our callers wait for the request before the borrow of `data` ends; nobody reads it meanwhile.
            let code = unsafe {
                (self.call().irecv)(
                    data.as_mut_ptr().cast(),
                    count(data.len()),
                    h.char_,
                    from,
                    tag,
                    h.world,
                    request,
                )
            };
            check("MPI_Irecv", code)?;
        }
        Ok(())
    }

    fn wait_all(&self, requests: &mut [Handle]) -> Result<(), MpiError> {
        // SAFETY: every slot was filled by isend or irecv just now; null statuses are MPI_STATUSES_IGNORE.
        let code = unsafe {
            (self.call().waitall)(
                count(requests.len()),
                requests.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("MPI_Waitall", code)
    }

    /// Runs `between` while as many receives of tags that nothing is sent to are posted, and satisfies them afterwards.
    ///
    /// `release` sends what they wait for, from the peer.
    pub fn behind_posted(
        &self,
        depth: usize,
        peer: i32,
        first_tag: i32,
        between: impl FnOnce() -> Result<(), MpiError>,
    ) -> Result<(), MpiError> {
        let mut byte = [0; 1];
        let mut requests = vec![ptr::null(); depth];
        for (request, tag) in requests.iter_mut().zip(first_tag..) {
            self.post_recvs(&mut byte, peer, tag, std::slice::from_mut(request))?;
        }
        // Whatever happens between, the receives must be over before the byte goes.
        let outcome = between();
        for tag in (first_tag..).take(depth) {
            self.send(&[0], peer, tag)?;
        }
        self.wait_all(&mut requests)?;
        outcome
    }
}

/// Request slots, kept between windows so that the loop allocates nothing.
pub struct Flights {
    sends: Vec<Handle>,
    recvs: Vec<Handle>,
}

impl Flights {
    /// Room for `window` sends and `window` receives.
    pub fn new(window: usize) -> Self {
        Self {
            sends: vec![ptr::null(); window],
            recvs: vec![ptr::null(); window],
        }
    }
}
