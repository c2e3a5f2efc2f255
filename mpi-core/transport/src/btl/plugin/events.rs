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

/// The messages that the plugin still refers to, by the number passed to its `send`.
pub type Lent = RefCell<BTreeMap<u64, Slot>>;

/// The object behind the plugin's `portcullis_events` pointer.
pub struct Poll<'a> {
    pub events: &'a dyn Events,
    pub lent: &'a Lent,
    pub size: u32,
}

/// # Safety
/// `events` is the pointer that the library passed to `progress`, which has not returned: the rule of `transport.h`.
unsafe fn poll<'a>(events: *mut abi::Events) -> &'a Poll<'a> {
    // SAFETY: the library made the pointer from a `Poll` that lives until `progress` returns, and the caller keeps the rule above.
    unsafe { &*events.cast::<Poll<'a>>() }
}

/// # Safety
/// `why` is null or a text that ends with a NUL.
unsafe fn reason(why: *const c_char) -> Option<String> {
    (!why.is_null()).then(|| {
        // SAFETY: `why` is not null, so it is a text that ends with a NUL (contract of this function).
        let text = unsafe { CStr::from_ptr(why) };
        text.to_string_lossy().into_owned()
    })
}

pub unsafe extern "C" fn arrived(events: *mut abi::Events, message: *const c_void, bytes: usize) {
    // A message shorter than a header is not one of this library.
    if message.is_null() || bytes < HEADER {
        return;
    }
    // SAFETY: the plugin keeps the contract of `poll`, and passes `bytes` bytes that stay unchanged until this returns.
    let (poll, message) = unsafe {
        (
            poll(events),
            std::slice::from_raw_parts(message.cast(), bytes),
        )
    };
    let (head, payload) = message.split_at(HEADER);
    // A panic of the layers above must not unwind through the plugin.
    let _ = catch_unwind(AssertUnwindSafe(|| poll.events.arrived(head, payload)));
}

pub unsafe extern "C" fn sent(events: *mut abi::Events, message: u64, why: *const c_char) {
    // SAFETY: the plugin keeps the contracts of `poll` and `reason`.
    let (poll, why) = unsafe { (poll(events), reason(why)) };
    let slot = poll.lent.borrow_mut().remove(&message);
    if let Some(slot) = slot {
        let _ = catch_unwind(AssertUnwindSafe(|| poll.events.sent(slot, why)));
    }
}

pub unsafe extern "C" fn failed(events: *mut abi::Events, peer: u32, why: *const c_char) {
    // SAFETY: the plugin keeps the contracts of `poll` and `reason`.
    let (poll, why) = unsafe { (poll(events), reason(why)) };
    if peer >= poll.size {
        return;
    }
    let why = why.unwrap_or_else(|| "the transport gives no reason".into());
    let _ = catch_unwind(AssertUnwindSafe(|| poll.events.failed(peer as ProcId, why)));
}

pub unsafe extern "C" fn ended(events: *mut abi::Events, access: u64, succeeded: c_int) {
    // SAFETY: the plugin keeps the contract of `poll`.
    let poll = unsafe { poll(events) };
    let ended = || poll.events.ended(access, succeeded != 0);
    let _ = catch_unwind(AssertUnwindSafe(ended));
}
