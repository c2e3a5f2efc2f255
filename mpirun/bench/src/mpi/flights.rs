//! Many messages in flight at once.

use super::{Handle, MpiError, World, check, count};
use std::ptr;

impl World<'_> {
    /// Sends one message for each request slot, all in flight together.
    pub fn send_many(
        &self,
        data: &[u8],
        to: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_sends(data, (to, tag), flights.len, &mut flights.sends)?;
        self.wait_all(&mut flights.sends)
    }

    /// Receives one message for each request slot.
    pub fn recv_many(
        &self,
        data: &mut [u8],
        from: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        self.post_recvs(data, (from, tag), flights.len, &mut flights.recvs)?;
        self.wait_all(&mut flights.recvs)
    }

    /// Exchanges messages in both directions: receives are posted first, then the sends.
    pub fn exchange_many(
        &self,
        (sent, sent_tag): (&[u8], i32),
        (received, received_tag): (&mut [u8], i32),
        peer: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        let Flights { len, sends, recvs } = flights;
        self.post_recvs(received, (peer, received_tag), *len, recvs)?;
        self.post_sends(sent, (peer, sent_tag), *len, sends)?;
        self.wait_all(&mut flights.sends)?;
        self.wait_all(&mut flights.recvs)
    }

    fn post_sends(
        &self,
        data: &[u8],
        (to, tag): (i32, i32),
        len: usize,
        requests: &mut [Handle],
    ) -> Result<(), MpiError> {
        let h = self.handles();
        let places = places(data.len(), len);
        for (request, at) in requests.iter_mut().zip(places) {
            let message = &data[at..at + len];
            // SAFETY: `send_many` and `exchange_many` wait for the request before the borrow of `data` ends.
            let code = unsafe {
                (self.call().isend)(
                    message.as_ptr().cast(),
                    count(len),
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
        (from, tag): (i32, i32),
        len: usize,
        requests: &mut [Handle],
    ) -> Result<(), MpiError> {
        let h = self.handles();
        let places = places(data.len(), len);
        for (request, at) in requests.iter_mut().zip(places) {
            let message = &mut data[at..at + len];
            // SAFETY: the callers of this private function wait for the request before the borrow of `data` ends; no code reads it
            // meanwhile.
            let code = unsafe {
                (self.call().irecv)(
                    message.as_mut_ptr().cast(),
                    count(len),
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
        // SAFETY: isend or irecv has just filled every slot; null statuses are MPI_STATUSES_IGNORE.
        let code = unsafe {
            (self.call().waitall)(
                count(requests.len()),
                requests.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("MPI_Waitall", code)
    }

    /// Runs `between` while `depth` receives with unused tags are posted, and completes them afterwards.
    ///
    /// Each rank then sends the messages for which its peer's receives wait.
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
            self.post_recvs(&mut byte, (peer, tag), 1, std::slice::from_mut(request))?;
        }
        // The receives must complete before `byte` is dropped, even if `between` fails.
        let outcome = between();
        for tag in (first_tag..).take(depth) {
            self.send(&[0], peer, tag)?;
        }
        self.wait_all(&mut requests)?;
        outcome
    }
}

/// Returns the offsets of a window's messages in a buffer of `memory` bytes: contiguous, and from the start again at its end.
fn places(memory: usize, len: usize) -> impl Iterator<Item = usize> {
    let distinct = memory.checked_div(len).unwrap_or(1).max(1);
    (0..distinct).cycle().map(move |nth| nth * len)
}

/// Request slots, kept between windows so that the loop allocates nothing.
///
/// Each call passes the memory of a window's messages: of the length of one message, which all share, as in the OSU loops;
/// or of all of them, so that each has its own.
pub struct Flights {
    /// The length of a message.
    len: usize,
    sends: Vec<Handle>,
    recvs: Vec<Handle>,
}

impl Flights {
    /// Creates slots for `window` sends and `window` receives of `len` bytes.
    pub fn new(window: usize, len: usize) -> Self {
        Self {
            len,
            sends: vec![ptr::null(); window],
            recvs: vec![ptr::null(); window],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_four(memory: usize, len: usize) -> Vec<usize> {
        places(memory, len).take(4).collect()
    }

    #[test]
    fn messages_lie_one_behind_the_other_as_far_as_there_is_memory() {
        assert_eq!(first_four(10, 10), [0, 0, 0, 0]);
        assert_eq!(first_four(40, 10), [0, 10, 20, 30]);
        assert_eq!(first_four(25, 10), [0, 10, 0, 10]);
        assert_eq!(first_four(0, 0), [0, 0, 0, 0]);
    }
}
