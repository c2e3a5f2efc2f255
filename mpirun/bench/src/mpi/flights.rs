//! Windows of nonblocking messages, all in flight together.

use super::{Handle, MpiError, World, check, count};
use std::ptr;

impl World<'_> {
    /// Sends one message for each request slot; all are in flight together.
    pub fn send_many(
        &self,
        data: &[u8],
        to: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        let posted = self.post_sends(data, (to, tag), flights.len, &mut flights.sends);
        self.complete(Half::Sends, &mut flights.sends, posted)
    }

    /// Receives one message for each request slot.
    pub fn recv_many(
        &self,
        data: &mut [u8],
        from: i32,
        tag: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        let posted = self.post_recvs(data, (from, tag), flights.len, &mut flights.recvs);
        self.complete(Half::Receives, &mut flights.recvs, posted)
    }

    /// Exchanges messages in both directions; all receives are posted before the sends.
    pub fn exchange_many(
        &self,
        (sent, sent_tag): (&[u8], i32),
        (received, received_tag): (&mut [u8], i32),
        peer: i32,
        flights: &mut Flights,
    ) -> Result<(), MpiError> {
        let Flights { len, sends, recvs } = flights;
        let receives = self.post_recvs(received, (peer, received_tag), *len, recvs);
        let posted = match receives.outcome {
            Ok(()) => self.post_sends(sent, (peer, sent_tag), *len, sends),
            Err(error) => Posted::failed(0, error),
        };
        let outcome = self.complete(Half::Sends, sends, posted);
        let receives = Posted {
            outcome,
            ..receives
        };
        self.complete(Half::Receives, recvs, receives)
    }

    fn post_sends(
        &self,
        data: &[u8],
        (to, tag): (i32, i32),
        len: usize,
        requests: &mut [Handle],
    ) -> Posted {
        let h = self.handles();
        let places = places(data.len(), len);
        for (number, (request, at)) in requests.iter_mut().zip(places).enumerate() {
            let message = &data[at..at + len];
            // SAFETY: all callers complete the request before the borrow of `data` ends.
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
            if let Err(error) = check("MPI_Isend", code) {
                return Posted::failed(number, error);
            }
        }
        Posted::all(requests)
    }

    fn post_recvs(
        &self,
        data: &mut [u8],
        (from, tag): (i32, i32),
        len: usize,
        requests: &mut [Handle],
    ) -> Posted {
        let h = self.handles();
        let places = places(data.len(), len);
        for (number, (request, at)) in requests.iter_mut().zip(places).enumerate() {
            let message = &mut data[at..at + len];
            // SAFETY: all callers complete the request before the borrow of `data` ends.
            // No code reads `data` before the completion.
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
            if let Err(error) = check("MPI_Irecv", code) {
                return Posted::failed(number, error);
            }
        }
        Posted::all(requests)
    }

    /// Completes the posted requests, also after an error, since the library uses their buffers.
    fn complete(
        &self,
        half: Half,
        requests: &mut [Handle],
        posted: Posted,
    ) -> Result<(), MpiError> {
        let requests = &mut requests[..posted.requests];
        let outcome = posted.outcome.and_then(|()| self.wait_all(requests));
        if outcome.is_err() {
            requests.iter_mut().for_each(|one| self.end(half, one));
        }
        outcome
    }

    /// Completes a request after an error, so that the library no longer uses the buffer.
    fn end(&self, half: Half, request: &mut Handle) {
        // The message for a receive may never arrive, so the receive is cancelled.
        // A send completes when its receiver cancels its own receive, or the job ends.
        if half == Half::Receives {
            // SAFETY: the handle is a posted request, or null after its completion.
            // The error of a null request has no effect.
            unsafe { (self.call().cancel)(request) };
        }
        // SAFETY: the handle is a posted request or null; the call ignores null.
        unsafe { (self.call().wait)(request, ptr::null_mut()) };
    }

    fn wait_all(&self, requests: &mut [Handle]) -> Result<(), MpiError> {
        // SAFETY: isend or irecv has filled every slot that `complete` passes.
        let code = unsafe {
            (self.call().waitall)(
                count(requests.len()),
                requests.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("MPI_Waitall", code)
    }

    /// Posts `depth` receives with unused tags, runs `between`, and then completes the receives.
    ///
    /// Each rank completes the other rank's receives by sending the messages after `between`.
    pub fn behind_posted(
        &self,
        depth: usize,
        peer: i32,
        first_tag: i32,
        between: impl FnOnce() -> Result<(), MpiError>,
    ) -> Result<(), MpiError> {
        let mut byte = [0; 1];
        let mut requests = vec![ptr::null(); depth];
        let mut posted = Posted::well(0);
        for (request, tag) in requests.iter_mut().zip(first_tag..) {
            let one = self.post_recvs(&mut byte, (peer, tag), 1, std::slice::from_mut(request));
            posted.requests += one.requests;
            posted.outcome = one.outcome;
            if posted.outcome.is_err() {
                break;
            }
        }
        posted.outcome = posted.outcome.and_then(|()| between());
        let mut tags = (first_tag..).take(depth);
        posted.outcome =
            (posted.outcome).and_then(|()| tags.try_for_each(|tag| self.send(&[0], peer, tag)));
        // The receives must complete before `byte` is dropped, even if `between` fails.
        self.complete(Half::Receives, &mut requests, posted)
    }
}

/// The direction of the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Sends,
    Receives,
}

/// The number of posted requests, and the first error of a post or of a later call.
struct Posted {
    requests: usize,
    outcome: Result<(), MpiError>,
}

impl Posted {
    fn all(requests: &[Handle]) -> Posted {
        Posted::well(requests.len())
    }

    fn well(requests: usize) -> Posted {
        Posted {
            requests,
            outcome: Ok(()),
        }
    }

    fn failed(requests: usize, error: MpiError) -> Posted {
        Posted {
            requests,
            outcome: Err(error),
        }
    }
}

/// Returns the offsets of a window's messages in a buffer of `memory` bytes.
/// Messages are contiguous; after the buffer's end, offsets start again at 0.
fn places(memory: usize, len: usize) -> impl Iterator<Item = usize> {
    let distinct = memory.checked_div(len).unwrap_or(1).max(1);
    (0..distinct).cycle().map(move |nth| nth * len)
}

/// Request slots that windows reuse, so that the loop allocates nothing.
///
/// Each call passes the memory for the messages of a window.
/// If the memory has the length of one message, all messages share it, as in the OSU loops.
/// If the memory has the length of all messages, each message has its own segment.
pub struct Flights {
    /// The length of a message in bytes.
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
    use super::super::library::{Functions, Library};
    use super::*;
    use std::cell::Cell;
    use std::ffi::{c_int, c_void};

    thread_local! {
        /// The number of calls that succeed before one fails.
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
        /// The number of incomplete requests in the library.
        static HELD: Cell<usize> = const { Cell::new(0) };
    }

    /// Returns 0, or an error code at the call that must fail.
    fn code() -> c_int {
        let left = LEFT.get();
        LEFT.set(left.wrapping_sub(1));
        c_int::from(left == 0)
    }

    fn post(request: *mut Handle) -> c_int {
        let code = code();
        if code == 0 {
            HELD.set(HELD.get() + 1);
            // SAFETY: the pointer is to an element of the caller's vector.
            unsafe { *request = ptr::without_provenance(1) };
        }
        code
    }

    unsafe extern "C" fn isend(
        _: *const c_void,
        _: c_int,
        _: Handle,
        _: c_int,
        _: c_int,
        _: Handle,
        request: *mut Handle,
    ) -> c_int {
        post(request)
    }

    unsafe extern "C" fn irecv(
        _: *mut c_void,
        _: c_int,
        _: Handle,
        _: c_int,
        _: c_int,
        _: Handle,
        request: *mut Handle,
    ) -> c_int {
        post(request)
    }

    unsafe extern "C" fn send(
        _: *const c_void,
        _: c_int,
        _: Handle,
        _: c_int,
        _: c_int,
        _: Handle,
    ) -> c_int {
        code()
    }

    unsafe extern "C" fn wait(request: *mut Handle, _: *mut c_void) -> c_int {
        // SAFETY: the pointer is to an element of the caller's vector.
        if !std::mem::replace(unsafe { &mut *request }, ptr::null()).is_null() {
            HELD.set(HELD.get() - 1);
        }
        0
    }

    /// Completes all requests, or returns an error and completes none.
    unsafe extern "C" fn waitall(n: c_int, requests: *mut Handle, status: *mut c_void) -> c_int {
        let code = code();
        for at in (0..n as usize).filter(|_| code == 0) {
            // SAFETY: `at` is less than `n`, the length of the caller's vector.
            unsafe { wait(requests.add(at), status) };
        }
        code
    }

    #[test]
    fn after_an_error_the_library_holds_no_request() {
        let mut call = Functions::stubs();
        (call.isend, call.irecv, call.send) = (isend, irecv, send);
        (call.wait, call.waitall) = (wait, waitall);
        let library = Library::of(call);
        let world = library.world();
        let run = |which: usize| {
            let (ours, mut theirs) = ([0; 4], [0; 4]);
            let mut flights = Flights::new(3, 1);
            match which {
                0 => world.send_many(&ours, 1, 0, &mut flights),
                1 => world.recv_many(&mut theirs, 1, 0, &mut flights),
                2 => world.exchange_many((&ours, 0), (&mut theirs, 0), 1, &mut flights),
                _ => world.behind_posted(3, 1, 0, || world.send(&ours, 1, 9)),
            }
        };
        for (which, calls) in [4, 4, 8, 8].into_iter().enumerate() {
            for fails in 0..=calls {
                LEFT.set(fails);
                let outcome = run(which);
                assert_eq!(outcome.is_ok(), fails == calls, "{which}, call {fails}");
                assert_eq!(HELD.get(), 0, "{which}, call {fails}");
            }
        }
    }

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
