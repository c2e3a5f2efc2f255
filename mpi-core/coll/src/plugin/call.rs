//! A call that a plugin carries out (`portcullis_call`), with its messages and temporary buffers, which are freed when it ends.
#![allow(unsafe_code)]

use super::abi::{self, Buffer, DONE, PENDING, Why};
use super::args::Args;
use super::data::{datatype, to_recv, to_send};
use super::host::answer;
use crate::datatype::Scratch;
use crate::{Call, Engine, Error, Invocation, Pending};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A call that a plugin carries out.
pub(super) struct PluginCall {
    pub invocation: Invocation,
    pub call: Call,
    args: RefCell<Option<Args>>,
    /// Messages in progress. A message's number is its index plus one; `None` after completion.
    messages: RefCell<Vec<Option<Pending>>>,
    temporaries: RefCell<Vec<Scratch>>,
}

impl PluginCall {
    /// Creates the call in a box,
    /// because the plugin gets the addresses of the call and of its arguments.
    pub fn new(invocation: &Invocation, call: &Call) -> Box<PluginCall> {
        Box::new(PluginCall {
            invocation: invocation.clone(),
            call: call.clone(),
            args: RefCell::default(),
            messages: RefCell::default(),
            temporaries: RefCell::default(),
        })
    }

    /// Returns the pointers that are passed to the plugin; they are valid while the box exists.
    #[allow(
        clippy::borrowed_box,
        reason = "the plugin keeps the addresses, which a call outside of a box would not keep"
    )]
    pub fn pointers(
        self: &Box<PluginCall>,
        plan: *mut *mut c_void,
    ) -> (*const abi::Args, *mut abi::Call) {
        let this: &PluginCall = self;
        let mut args = this.args.borrow_mut();
        let args = args.insert(Args::of(&this.call, plan)).pointer();
        (args, std::ptr::from_ref(this).cast_mut().cast())
    }

    fn keep(&self, message: Pending) -> u64 {
        let mut messages = self.messages.borrow_mut();
        messages.push(Some(message));
        messages.len() as u64
    }

    fn check_rank(&self, peer: u32) -> Result<(), String> {
        let size = self.invocation.size();
        match peer < size {
            true => Ok(()),
            false => Err(format!(
                "rank {peer} is not in a communicator of {size} ranks"
            )),
        }
    }

    /// Returns true if the message is complete.
    /// Its number is then no longer valid, and a second test of it is an error.
    fn test(&self, number: u64) -> Result<bool, String> {
        let mut messages = self.messages.borrow_mut();
        let message = slot(&mut messages, number)?;
        let Some(pending) = message else {
            return Err(forgotten(number));
        };
        match Pin::new(pending).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(false),
            Poll::Ready(outcome) => {
                *message = None;
                outcome.map(|()| true).map_err(|error| error.to_string())
            }
        }
    }

    fn wait(&self, numbers: &[u64]) -> Result<(), String> {
        may_block(self.invocation.engine())?;
        let mut pending = Vec::with_capacity(numbers.len());
        for number in numbers {
            let taken = slot(&mut self.messages.borrow_mut(), *number)?.take();
            pending.push(taken.ok_or_else(|| forgotten(*number))?);
        }
        let all: Result<(), Error> =
            (self.invocation.engine()).block_on(self.invocation.all(pending));
        all.map_err(|error| error.to_string())
    }

    fn temporary(&self, of: *const abi::Type, count: i64) -> Result<Buffer, String> {
        if of.is_null() {
            return Err("the service temporary was called without a datatype".into());
        }
        // SAFETY: the plugin passes a type of the library that is still valid, see `plugin.h`.
        let datatype = unsafe { datatype(of) };
        let scratch = Scratch::new(count, datatype).map_err(|error| error.to_string())?;
        let buffer = Buffer {
            address: scratch.all().ptr().cast(),
            count: scratch.count(),
            datatype: of,
        };
        self.temporaries.borrow_mut().push(scratch);
        Ok(buffer)
    }
}

/// Returns an error if called from a progress hook, where blocking is not allowed.
pub(super) fn may_block(engine: &Engine) -> Result<(), String> {
    match engine.operations().may_block() {
        true => Ok(()),
        false => {
            Err("a blocking service was called from inside progress, where nothing may wait".into())
        }
    }
}

fn slot(messages: &mut [Option<Pending>], number: u64) -> Result<&mut Option<Pending>, String> {
    let at = usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1));
    let message = at.and_then(|at| messages.get_mut(at));
    message.ok_or_else(|| format!("this call has no message with the number {number}"))
}

fn forgotten(number: u64) -> String {
    format!("message {number} of this call was complete before")
}

/// Returns the call to which a pointer from a plugin points.
///
/// # Safety
/// `call` is the pointer that the library passed with a call that has not ended; `plugin.h` requires this.
unsafe fn running<'a>(call: *mut abi::Call) -> &'a PluginCall {
    // SAFETY: the library derived the pointer from a boxed `PluginCall`, which the caller guarantees has not ended.
    unsafe { &*call.cast::<PluginCall>() }
}

/// Writes a result to the plugin's output argument `place`; `what` describes the result in the error for a null pointer.
///
/// # Safety
/// `place` is null or writable.
unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<c_int, String> {
    if place.is_null() {
        return Err(format!("a service was called without a place for {what}"));
    }
    // SAFETY: `place` is not null, so by the contract of this function it is writable.
    unsafe { place.write(value) };
    Ok(DONE)
}

pub(super) unsafe extern "C" fn send(
    call: *mut abi::Call,
    dest: u32,
    buffer: *const Buffer,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    let start = || {
        // SAFETY: the plugin keeps the contracts of `running` and `to_send`.
        let (call, buffer) = unsafe { (running(call), to_send(buffer)) };
        call.check_rank(dest)?;
        let number = call.keep(call.invocation.isend(&buffer, dest));
        // SAFETY: `message` is null or writable, see `plugin.h`.
        unsafe { put(message, number, "a message's number") }
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, start) }
}

pub(super) unsafe extern "C" fn recv(
    call: *mut abi::Call,
    source: u32,
    buffer: *const Buffer,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    let start = || {
        // SAFETY: the plugin keeps the contracts of `running` and `to_recv`.
        let (call, buffer) = unsafe { (running(call), to_recv(buffer)) };
        call.check_rank(source)?;
        let number = call.keep(call.invocation.irecv(&buffer, source));
        // SAFETY: `message` is null or writable, see `plugin.h`.
        unsafe { put(message, number, "a message's number") }
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, start) }
}

pub(super) unsafe extern "C" fn test(call: *mut abi::Call, message: u64, why: *mut Why) -> c_int {
    // SAFETY: the plugin keeps the contract of `running`.
    let call = unsafe { running(call) };
    let test = || Ok(if call.test(message)? { DONE } else { PENDING });
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, test) }
}

pub(super) unsafe extern "C" fn wait(
    call: *mut abi::Call,
    messages: *const u64,
    count: usize,
    why: *mut Why,
) -> c_int {
    let wait = || {
        if messages.is_null() || count == 0 {
            return Ok(DONE);
        }
        // SAFETY: the plugin keeps the contract of `running`, and passes `count` numbers.
        let (call, numbers) =
            unsafe { (running(call), std::slice::from_raw_parts(messages, count)) };
        call.wait(numbers).map(|()| DONE)
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, wait) }
}

pub(super) unsafe extern "C" fn temporary(
    call: *mut abi::Call,
    of: *const abi::Type,
    count: i64,
    buffer: *mut Buffer,
    why: *mut Why,
) -> c_int {
    let take = || {
        // SAFETY: the plugin keeps the contract of `running`.
        let memory = unsafe { running(call) }.temporary(of, count)?;
        // SAFETY: `buffer` is null or writable, see `plugin.h`.
        unsafe { put(buffer, memory, "a buffer") }
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, take) }
}
