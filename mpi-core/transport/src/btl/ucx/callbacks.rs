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
use crate::btl::fabric::frame::HEADER;
use crate::btl::fabric::pool::{Buffer, Slot};
use std::cell::{Cell, RefCell};
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
    /// Ended deliveries in place: ID and status.
    pub transferred: RefCell<Vec<(u64, Status)>>,
    /// True if this process receives data in place.
    pub takes_offers: Cell<bool>,
    /// True if the worker is being dropped. Messages are then discarded.
    pub is_closed: Cell<bool>,
    /// Peers whose endpoints have failed, with the status.
    pub failed: RefCell<Vec<(ProcId, Status)>>,
}

/// A message that has arrived.
pub struct Arrival {
    /// The header, followed by the data if they were copied.
    pub bytes: Vec<u8>,
    pub head_len: usize,
    pub rest: Rest,
}

/// The data of a message that are not behind its header.
#[derive(Clone, Copy)]
pub enum Rest {
    Nothing,
    /// The data are in UCX's memory and must be released.
    Held {
        data: Pointer,
        len: usize,
    },
    /// The data are in the sender's memory and must be received or released.
    Offered {
        handle: Pointer,
        len: usize,
    },
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

/// The argument of the callbacks at the end of a delivery in place.
pub struct TransferNote {
    pub shared: *const Shared,
    pub transfer: u64,
    /// The frame header of an offer, which UCX reads until the send has ended.
    pub head: [u8; HEADER],
}

impl Shared {
    pub fn new(free: unsafe extern "C" fn(Pointer)) -> Box<Shared> {
        Box::new(Shared {
            free,
            arrivals: RefCell::default(),
            spare: RefCell::default(),
            sent: RefCell::default(),
            ended: RefCell::default(),
            transferred: RefCell::default(),
            takes_offers: Cell::new(false),
            is_closed: Cell::new(false),
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
    let is_offer = parameters.attributes & abi::RENDEZVOUS != 0;
    // No process of this job offers data to a process that does not receive in place.
    if shared.is_closed.get() || is_offer && !shared.takes_offers.get() {
        // With the status OK, UCX drops the message.
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
    let rest = if is_offer {
        Rest::Offered { handle: data, len }
    } else if parameters.attributes & abi::MAY_KEEP != 0 && len > COPIED {
        Rest::Held { data, len }
    } else {
        bytes.extend_from_slice(slice(data, len));
        Rest::Nothing
    };
    shared.arrivals.borrow_mut().push_back(Arrival {
        bytes,
        head_len,
        rest,
    });
    match rest {
        Rest::Nothing => abi::OK,
        Rest::Held { .. } | Rest::Offered { .. } => abi::IN_PROGRESS,
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

/// Records the end of a delivery in place at the sender, and frees the request.
pub unsafe extern "C" fn on_filled(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the arguments are those of `transfer_ended`.
    unsafe { transfer_ended(request, status, argument) };
}

/// Records the end of a delivery in place at the receiver, and frees the request.
pub unsafe extern "C" fn on_received(
    request: Pointer,
    status: Status,
    _len: usize,
    argument: Pointer,
) {
    // SAFETY: the arguments are those of `transfer_ended`.
    unsafe { transfer_ended(request, status, argument) };
}

/// # Safety
/// `argument` must be a [`TransferNote`] that the port has converted with `Box::into_raw` for this call, which UCX makes once;
/// `request` must be the request of its transfer.
unsafe fn transfer_ended(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the caller guarantees that the argument is a note and that this is its only use.
    let note = unsafe { Box::from_raw(argument.cast::<TransferNote>()) };
    // SAFETY: the worker's `Shared` outlives the worker.
    let shared = unsafe { &*note.shared };
    shared
        .transferred
        .borrow_mut()
        .push((note.transfer, status));
    // SAFETY: the request belongs to this transfer, which has ended, and is freed once; UCX permits this in the callback.
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
