//! The callbacks that UCX calls: arrival of a message, end of a send or operation, failure of a peer.
//!
//! The callbacks only record events.
//! The worker handles the events when no UCX function is active,
//! so code that handles a message may call UCX.
//! UCX calls the callbacks only from its own functions, on the thread that called UCX.
//! One thread at a time uses a worker.

#![allow(unsafe_code)]

use super::abi::{self, Pointer, ReceiveParameters, Status};
use crate::btl::ProcId;
use crate::btl::fabric::pool::{Buffer, Slot};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;

/// Maximum length in bytes of data that are copied; longer data remain in UCX's memory until they are delivered.
const COPIED: usize = 2 << 10;
/// Maximum number of message buffers that are stored for reuse.
const SPARE: usize = 64;

/// The state that the callbacks share with their worker. It is boxed, so its address does not change.
pub struct Shared {
    /// UCX's function `ucp_request_free`.
    free: unsafe extern "C" fn(Pointer),
    arrivals: RefCell<VecDeque<Arrival>>,
    spare: RefCell<Vec<Vec<u8>>>,
    /// Ended sends: the buffer, to which UCX no longer refers, and the status.
    pub sent: RefCell<Vec<(Slot, Status)>>,
    /// Ended operations on registered memory: ID, status, and key or null.
    pub ended: RefCell<Vec<(u64, Status, Pointer)>>,
    /// Peers whose endpoints have failed, with the status.
    pub failed: RefCell<Vec<(ProcId, Status)>>,
}

/// A message that has arrived.
pub struct Arrival {
    /// The header, followed by the data if these were copied.
    pub bytes: Vec<u8>,
    pub head_len: usize,
    /// The data if they are in UCX's memory; they must be released.
    pub held: Option<Held>,
}

/// Data in UCX's memory, which must be released.
#[derive(Clone, Copy)]
pub struct Held {
    pub data: Pointer,
    pub len: usize,
}

/// The argument of the callback for a failed endpoint.
pub struct Hook {
    pub shared: *const Shared,
    pub peer: ProcId,
}

/// The argument of the callback at the end of an operation on registered memory.
pub struct Note {
    pub shared: *const Shared,
    pub number: u64,
    pub key: Pointer,
}

impl Shared {
    pub fn new(free: unsafe extern "C" fn(Pointer)) -> Box<Shared> {
        Box::new(Shared {
            free,
            arrivals: RefCell::default(),
            spare: RefCell::default(),
            sent: RefCell::default(),
            ended: RefCell::default(),
            failed: RefCell::default(),
        })
    }

    /// Removes and returns the next message.
    #[inline]
    pub fn next_arrival(&self) -> Option<Arrival> {
        self.arrivals.borrow_mut().pop_front()
    }

    /// Stores the buffer of a delivered message for reuse.
    #[inline]
    pub fn reuse(&self, arrival: Arrival) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE {
            spare.push(arrival.bytes);
        }
    }
}

/// Records an active message that has arrived.
pub unsafe extern "C" fn on_message(
    argument: Pointer,
    head: *const c_void,
    head_len: usize,
    data: Pointer,
    len: usize,
    parameters: *const ReceiveParameters,
) -> Status {
    // SAFETY: the argument is the worker's `Shared`, which outlives the worker; the parameters are valid during the call.
    let (shared, parameters) = unsafe { (&*argument.cast::<Shared>(), &*parameters) };
    // All processes of a job send eagerly,
    // so any other message is not from this library. With the status OK, UCX drops it.
    if parameters.attributes & abi::RENDEZVOUS != 0 {
        return abi::OK;
    }
    let slice = |pointer: *const c_void, len: usize| match len {
        0 => &[][..],
        // SAFETY: UCX passes a pointer to `len` bytes that are valid during the call and that no other code writes during the call.
        len => unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), len) },
    };
    let mut bytes = shared.spare.borrow_mut().pop().unwrap_or_default();
    bytes.clear();
    bytes.extend_from_slice(slice(head, head_len));
    let keeps = parameters.attributes & abi::MAY_KEEP != 0 && len > COPIED;
    if !keeps {
        bytes.extend_from_slice(slice(data, len));
    }
    shared.arrivals.borrow_mut().push_back(Arrival {
        bytes,
        head_len,
        held: keeps.then_some(Held { data, len }),
    });
    match keeps {
        true => abi::IN_PROGRESS,
        false => abi::OK,
    }
}

/// Records the end of a send, and frees the request.
pub unsafe extern "C" fn on_sent(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the argument is a buffer that `Worker::post` has converted with `Box::into_raw` for this call, which UCX makes once.
    let slot = unsafe { Box::from_raw(argument.cast::<Buffer>()) };
    // SAFETY: the buffer's tag is the address of the worker's `Shared`, which outlives the worker.
    let shared = unsafe { &*std::ptr::with_exposed_provenance::<Shared>(slot.tag) };
    shared.sent.borrow_mut().push((slot, status));
    // SAFETY: the request belongs to this send, which has ended, and is freed once; UCX permits this in the callback.
    unsafe { (shared.free)(request) };
}

/// Records the end of an operation on registered memory, and frees the request.
pub unsafe extern "C" fn on_end(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the argument is a note that `RegisteredMemory::start` has converted
    // with `Box::into_raw` for this call, which UCX makes once.
    let note = unsafe { Box::from_raw(argument.cast::<Note>()) };
    // SAFETY: the worker's `Shared` outlives the worker.
    let shared = unsafe { &*note.shared };
    let ended = (note.number, status, note.key);
    shared.ended.borrow_mut().push(ended);
    // SAFETY: the request belongs to this operation, which has ended, and is freed once; UCX permits this in the callback.
    unsafe { (shared.free)(request) };
}

/// Records that the endpoint to a peer has failed.
pub unsafe extern "C" fn on_error(argument: Pointer, _endpoint: Pointer, status: Status) {
    // SAFETY: the argument is the endpoint's `Hook`, which is freed after the endpoint is closed; `shared` outlives the worker.
    let (shared, peer) = unsafe {
        let hook = &*argument.cast::<Hook>();
        (&*hook.shared, hook.peer)
    };
    shared.failed.borrow_mut().push((peer, status));
}
