//! The functions that UCX calls: a message, the end of a send, the failure of a peer.
//!
//! UCX calls them only from within its own functions, on the thread that has called those; a worker is used by one thread at a time.

#![allow(unsafe_code)]

use super::abi::{self, Pointer, ReceiveParameters, Status};
use crate::btl::ProcId;
use crate::btl::fabric::pool::{Buffer, Slot};
use crate::btl::fabric::port::Events;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// What the callbacks of one worker share with it; boxed, so that its address does not change.
pub struct Shared {
    /// `ucp_request_free`.
    free: unsafe extern "C" fn(Pointer),
    /// The receiver of events, while [`Shared::during`] runs.
    events: Cell<Option<NonNull<dyn Events>>>,
    /// A panic of the receiver, which must not unwind through UCX.
    panic: RefCell<Option<Box<dyn Any + Send>>>,
    /// Slots that UCX no longer refers to.
    pub sent: RefCell<Vec<(Slot, Status)>>,
    /// Peers whose endpoints have failed.
    pub failed: RefCell<Vec<(ProcId, Status)>>,
}

/// The argument of an endpoint's callback.
pub struct Hook {
    pub shared: *const Shared,
    pub peer: ProcId,
}

impl Shared {
    pub fn new(free: unsafe extern "C" fn(Pointer)) -> Box<Shared> {
        Box::new(Shared {
            free,
            events: Cell::new(None),
            panic: RefCell::default(),
            sent: RefCell::default(),
            failed: RefCell::default(),
        })
    }

    /// Calls `poll`, while messages go to `events`.
    pub fn during(&self, events: &dyn Events, poll: impl FnOnce()) {
        let erased = NonNull::from(events);
        // SAFETY: the types differ only in the lifetime; the pointer is removed below, before `events` ends, and `poll` cannot unwind,
        // since it calls UCX only and the callbacks catch panics.
        let erased = unsafe {
            std::mem::transmute::<NonNull<dyn Events + '_>, NonNull<dyn Events + 'static>>(erased)
        };
        self.events.set(Some(erased));
        poll();
        self.events.set(None);
        let panic = self.panic.take();
        if let Some(panic) = panic {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Delivers an active message.
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
    // All processes of a job send eagerly; a process that does not is not of this library, and UCX drops its message.
    if parameters.attributes & abi::RENDEZVOUS != 0 {
        return abi::OK;
    }
    let (Some(events), false) = (shared.events.get(), shared.panic.borrow().is_some()) else {
        return abi::OK;
    };
    let slice = |pointer: *const c_void, len: usize| match len {
        0 => &[][..],
        // SAFETY: UCX passes a pointer to `len` bytes that are valid during the call and that no other code writes meanwhile.
        len => unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), len) },
    };
    let (head, payload) = (slice(head, head_len), slice(data, len));
    // SAFETY: `Shared::during` has set the pointer and is running, since UCX calls this function only within its own functions.
    let events = unsafe { events.as_ref() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| events.arrived(head, payload))) {
        shared.panic.replace(Some(panic));
    }
    abi::OK
}

/// Returns a slot after its send; also frees the request.
pub unsafe extern "C" fn on_sent(request: Pointer, status: Status, argument: Pointer) {
    // SAFETY: the argument is a slot that `Worker::post` has given up with `Box::into_raw` for this call, which UCX makes once.
    let slot = unsafe { Box::from_raw(argument.cast::<Buffer>()) };
    // SAFETY: the slot's tag is the address of the worker's `Shared`, and the worker that calls this function has not ended.
    let shared = unsafe { &*std::ptr::with_exposed_provenance::<Shared>(slot.tag) };
    shared.sent.borrow_mut().push((slot, status));
    // SAFETY: the request of this send, which has ended and is freed once; UCX allows it in this callback.
    unsafe { (shared.free)(request) };
}

/// Notes the failure of a peer.
pub unsafe extern "C" fn on_error(argument: Pointer, _endpoint: Pointer, status: Status) {
    // SAFETY: the argument is the endpoint's `Hook`, which is freed after the endpoint is closed; `shared` outlives the worker.
    let (shared, peer) = unsafe {
        let hook = &*argument.cast::<Hook>();
        (&*hook.shared, hook.peer)
    };
    shared.failed.borrow_mut().push((peer, status));
}
