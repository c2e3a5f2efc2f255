//! The functions that UCX calls: a message, the end of a send, the failure of a peer.
//!
//! The callbacks only record events.
//! The worker handles the events when no UCX function is on the stack,
//! so the handling of a message may call UCX again.
//! UCX calls them only from its own functions, on the thread that called UCX.
//! One thread at a time uses a worker.

#![allow(unsafe_code)]

use super::abi::{self, Pointer, ReceiveParameters, Status};
use crate::btl::ProcId;
use crate::btl::fabric::pool::{Buffer, Slot};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;

/// Data of this length are copied rather than kept in UCX's memory.
const COPIED: usize = 2 << 10;
/// Maximum number of buffers kept for reuse.
const SPARE: usize = 64;

/// The state that the callbacks share with their worker; boxed, so its address does not change.
pub struct Shared {
    /// `ucp_request_free`.
    free: unsafe extern "C" fn(Pointer),
    arrivals: RefCell<VecDeque<Arrival>>,
    spare: RefCell<Vec<Vec<u8>>>,
    /// Slots that UCX no longer refers to.
    pub sent: RefCell<Vec<(Slot, Status)>>,
    /// Operations on registered memory that have ended: number, status, and key or null.
    pub ended: RefCell<Vec<(u64, Status, Pointer)>>,
    /// Peers whose endpoints have failed.
    pub failed: RefCell<Vec<(ProcId, Status)>>,
}

/// A message that has arrived.
pub struct Arrival {
    /// The header, followed by the data if they were copied.
    pub bytes: Vec<u8>,
    pub head_len: usize,
    /// Data in UCX's memory, which must be released.
    pub held: Option<Held>,
}

/// Data in UCX's memory.
#[derive(Clone, Copy)]
pub struct Held {
    pub data: Pointer,
    pub len: usize,
}

/// The argument of an endpoint's callback.
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

    /// Keeps the buffer of a message that has been handled, for reuse.
    #[inline]
    pub fn reuse(&self, arrival: Arrival) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE {
            spare.push(arrival.bytes);
        }
    }
}

/// Records an active message.
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
    // All processes of a job send eagerly.
    // Any other message is not from this library, and UCX drops it.
    if parameters.attributes & abi::RENDEZVOUS != 0 {
        return abi::OK;
    }
    let slice = |pointer: *const c_void, len: usize| match len {
        0 => &[][..],
        // SAFETY: UCX passes a pointer to `len` bytes that are valid during the call and that no other code writes meanwhile.
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

/// Records the end of a send, and frees its request.
pub unsafe extern "C" fn on_sent(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the argument is a slot that `Worker::post` has given up with `Box::into_raw` for this call, which UCX makes once.
    let slot = unsafe { Box::from_raw(argument.cast::<Buffer>()) };
    // SAFETY: the slot's tag is the address of the worker's `Shared`, which outlives the worker.
    let shared = unsafe { &*std::ptr::with_exposed_provenance::<Shared>(slot.tag) };
    shared.sent.borrow_mut().push((slot, status));
    // SAFETY: the request of this send, which has ended and is freed once; UCX allows it in this callback.
    unsafe { (shared.free)(request) };
}

/// Records the end of an operation on registered memory, and frees its request.
pub unsafe extern "C" fn on_end(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the argument is a note that `RegisteredMemory::start` has given up
    // with `Box::into_raw` for this call, which UCX makes once.
    let note = unsafe { Box::from_raw(argument.cast::<Note>()) };
    // SAFETY: the worker's `Shared` outlives the worker.
    let shared = unsafe { &*note.shared };
    let ended = (note.number, status, note.key);
    shared.ended.borrow_mut().push(ended);
    // SAFETY: the request of this operation, which has ended and is freed once; UCX allows it in this callback.
    unsafe { (shared.free)(request) };
}

/// Records the failure of a peer.
pub unsafe extern "C" fn on_error(argument: Pointer, _endpoint: Pointer, status: Status) {
    // SAFETY: the argument is the endpoint's `Hook`, which is freed after the endpoint is closed; `shared` outlives the worker.
    let (shared, peer) = unsafe {
        let hook = &*argument.cast::<Hook>();
        (&*hook.shared, hook.peer)
    };
    shared.failed.borrow_mut().push((peer, status));
}
