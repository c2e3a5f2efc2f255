//! The callbacks through which a transport's plugin reports events during one poll.
#![allow(unsafe_code)]

use crate::btl::ProcId;
use crate::btl::fabric::frame::HEADER;
use crate::btl::fabric::pool::Slot;
use crate::btl::fabric::port::Events;
use portcullis_plugin::btl::abi;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The messages to which the plugin refers, by the number that was passed to its function `send`.
pub type Lent = RefCell<BTreeMap<u64, Slot>>;

/// The object to which the plugin's `portcullis_events` pointer points during a poll.
pub struct Poll<'a> {
    pub events: &'a dyn Events,
    pub lent: &'a Lent,
    pub size: u32,
}

/// # Safety
/// `events` must be the pointer that the library passed to `progress`, which has not returned (a rule of `transport.h`).
unsafe fn poll<'a>(events: *mut abi::Events) -> &'a Poll<'a> {
    // SAFETY: the library created the pointer from a `Poll` that lives until `progress` returns, and the caller observes the contract.
    unsafe { &*events.cast::<Poll<'a>>() }
}

/// # Safety
/// `why` must be null or a NUL-terminated text.
unsafe fn reason(why: *const c_char) -> Option<String> {
    (!why.is_null()).then(|| {
        // SAFETY: `why` is not null, so by the contract of this function it is a NUL-terminated text.
        let text = unsafe { CStr::from_ptr(why) };
        text.to_string_lossy().into_owned()
    })
}

pub unsafe extern "C" fn arrived(events: *mut abi::Events, message: *const c_void, bytes: usize) {
    // A message that is shorter than a frame header was not sent by this library.
    if message.is_null() || bytes < HEADER {
        return;
    }
    // SAFETY: the plugin observes the contract of `poll`, and passes `bytes` bytes that do not change until this function returns.
    let (poll, message) = unsafe {
        (
            poll(events),
            std::slice::from_raw_parts(message.cast(), bytes),
        )
    };
    let (head, payload) = message.split_at(HEADER);
    // A panic in the layers above must not unwind through the plugin.
    let _ = catch_unwind(AssertUnwindSafe(|| poll.events.arrived(head, payload)));
}

pub unsafe extern "C" fn sent(events: *mut abi::Events, message: u64, why: *const c_char) {
    // SAFETY: the plugin observes the contracts of `poll` and `reason`.
    let (poll, why) = unsafe { (poll(events), reason(why)) };
    let slot = poll.lent.borrow_mut().remove(&message);
    if let Some(slot) = slot {
        let _ = catch_unwind(AssertUnwindSafe(|| poll.events.sent(slot, why)));
    }
}

pub unsafe extern "C" fn failed(events: *mut abi::Events, peer: u32, why: *const c_char) {
    // SAFETY: the plugin observes the contracts of `poll` and `reason`.
    let (poll, why) = unsafe { (poll(events), reason(why)) };
    if peer >= poll.size {
        return;
    }
    let why = why.unwrap_or_else(|| "the transport gives no reason".into());
    let _ = catch_unwind(AssertUnwindSafe(|| poll.events.failed(peer as ProcId, why)));
}

pub unsafe extern "C" fn ended(events: *mut abi::Events, access: u64, succeeded: c_int) {
    // SAFETY: the plugin observes the contract of `poll`.
    let poll = unsafe { poll(events) };
    let ended = || poll.events.ended(access, succeeded != 0);
    let _ = catch_unwind(AssertUnwindSafe(ended));
}
