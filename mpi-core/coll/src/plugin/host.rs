//! The host table: the services of the library for plugins, as C functions over a [`Seat`].
//!
//! Each function converts its C arguments, calls the seat, and converts the result.
//! A panic does not cross the ABI: the service fails with an error text.
#![allow(unsafe_code)]

use super::abi::{self, Call, Comm, DONE, FAILED, Host, PENDING, Why};
use super::seat::Seat;
use crate::{Invocation, select::Table};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The type behind `portcullis_call`.
pub(super) struct PluginCall {
    pub cx: Invocation,
    pub call: crate::Call,
}

/// The host table.
pub(super) static HOST: Host = Host {
    size: size_of::<Host>(),
    abi_version: abi::ABI_VERSION,
    reserved: 0,
    library: LIBRARY.as_ptr(),
    comm_rank: Some(comm_rank),
    comm_size: Some(comm_size),
    comm_name: Some(comm_name),
    comm_is_world: Some(comm_is_world),
    comm_node_ranks: Some(comm_node_ranks),
    send: Some(send),
    recv: Some(recv),
    fence: Some(fence),
    start_send: Some(start_send),
    start_recv: Some(start_recv),
    test_message: Some(test_message),
    progress: Some(progress),
    wait: Some(wait),
    ring: Some(ring),
    shared_memory: Some(shared_memory),
    param: Some(param),
    log: Some(log),
    now_ns: Some(now_ns),
    call_next: Some(call_next),
    component_data: Some(component_data),
    barrier_wire: Some(barrier_wire),
    failed_ranks: Some(failed_ranks),
};

const LIBRARY: &CStr = match CStr::from_bytes_with_nul(
    concat!("Portcullis ", env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"Portcullis",
};

/// The seat behind the pointer that a plugin passes.
///
/// # Safety
/// `comm` is the pointer that the host passed to `query`, and its module has not been freed: the rule of `plugin.h`.
unsafe fn seat<'a>(comm: *mut Comm) -> &'a Seat {
    // SAFETY: the host made the pointer from a `Seat` that lives until after the module's `free`, and the caller keeps the rule above.
    unsafe { &*comm.cast::<Seat>() }
}

/// Runs a service that can fail; returns its code, or writes the reason to `why` and returns `FAILED`.
///
/// # Safety
/// `why` is null or writable.
pub(super) unsafe fn answer(
    why: *mut Why,
    service: impl FnOnce() -> Result<c_int, String>,
) -> c_int {
    let reason = match catch_unwind(AssertUnwindSafe(service)) {
        Ok(Ok(code)) => return code,
        Ok(Err(reason)) => reason,
        Err(panic) => panic_text(&*panic),
    };
    // SAFETY: the caller guarantees that `why` is null or writable.
    if let Some(why) = unsafe { why.as_mut() } {
        why.set(&reason);
    }
    FAILED
}

/// The text of a panic.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it stopped at a defect: {}", said.unwrap_or("no text"))
}

/// Runs a service that cannot fail; returns `nothing` after a panic.
fn calm<T>(nothing: T, service: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(service)).unwrap_or(nothing)
}

unsafe extern "C" fn comm_rank(comm: *mut Comm) -> u32 {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    unsafe { seat(comm) }.rank
}

unsafe extern "C" fn comm_size(comm: *mut Comm) -> u32 {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    unsafe { seat(comm) }.size
}

unsafe extern "C" fn comm_name(comm: *mut Comm) -> *const c_char {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    unsafe { seat(comm) }.name().as_ptr()
}

unsafe extern "C" fn comm_is_world(comm: *mut Comm) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    unsafe { seat(comm) }.is_world.into()
}

unsafe extern "C" fn comm_node_ranks(comm: *mut Comm, ranks: *mut u32, capacity: u32) -> u32 {
    // SAFETY: the plugin keeps the contract of `seat`, and `ranks` is null or writable for `capacity` ranks, see `plugin.h`.
    unsafe { list(seat(comm).node_ranks(), ranks, capacity) }
}

unsafe extern "C" fn failed_ranks(comm: *mut Comm, ranks: *mut u32, capacity: u32) -> u32 {
    // SAFETY: the plugin keeps the contract of `seat`, and `ranks` is null or writable for `capacity` ranks, see `plugin.h`.
    unsafe { list(seat(comm).failed_ranks().into_iter(), ranks, capacity) }
}

/// Writes at most `capacity` ranks into a plugin's array; returns the number of ranks.
///
/// # Safety
/// `to` is null or writable for `capacity` ranks.
unsafe fn list(ranks: impl ExactSizeIterator<Item = u32>, to: *mut u32, capacity: u32) -> u32 {
    let count = ranks.len() as u32;
    if !to.is_null() {
        for (i, rank) in ranks.take(capacity as usize).enumerate() {
            // SAFETY: `i < capacity`, and the caller guarantees that `to` is writable for `capacity` ranks.
            unsafe { to.add(i).write(rank) };
        }
    }
    count
}

unsafe extern "C" fn send(
    comm: *mut Comm,
    dest: u32,
    data: *const c_void,
    bytes: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`, and `data` is readable for `bytes`.
    let (seat, data) = unsafe { (seat(comm), bytes_at(data, bytes)) };
    // SAFETY: the plugin passes `why`, null or writable.
    unsafe { answer(why, || seat.send(dest, data).map(|()| DONE)) }
}

unsafe extern "C" fn recv(
    comm: *mut Comm,
    source: u32,
    data: *mut c_void,
    bytes: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`; `data` is writable for `bytes` and not used by other code during the call.
    let (seat, data) = unsafe { (seat(comm), bytes_at_mut(data, bytes)) };
    // SAFETY: the plugin passes `why`, null or writable.
    unsafe { answer(why, || seat.recv(source, data).map(|()| DONE)) }
}

unsafe extern "C" fn fence(comm: *mut Comm, why: *mut Why) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`, and `why` is null or writable.
    unsafe { answer(why, || seat(comm).fence().map(|()| DONE)) }
}

unsafe extern "C" fn start_send(
    comm: *mut Comm,
    dest: u32,
    data: *const c_void,
    bytes: usize,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`, and `data` is readable for `bytes`.
    let (seat, data) = unsafe { (seat(comm), bytes_at(data, bytes)) };
    // SAFETY: the plugin passes `why` and `message`, each null or writable.
    unsafe { answer(why, || name_message(message, seat.start_send(dest, data)?)) }
}

unsafe extern "C" fn start_recv(
    comm: *mut Comm,
    source: u32,
    bytes: usize,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`; `why` and `message` are null or writable.
    unsafe {
        answer(why, || {
            name_message(message, seat(comm).start_recv(source, bytes)?)
        })
    }
}

/// # Safety
/// `place` is null or writable.
unsafe fn name_message(place: *mut u64, message: u64) -> Result<c_int, String> {
    // SAFETY: the caller guarantees that `place` is null or writable.
    match unsafe { place.as_mut() } {
        Some(place) => *place = message,
        None => return Err("a message was started without a place for its number".into()),
    }
    Ok(DONE)
}

unsafe extern "C" fn test_message(
    comm: *mut Comm,
    message: u64,
    data: *mut c_void,
    bytes: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`; `data` is writable for `bytes` and not used by other code during the call.
    let (seat, data) = unsafe { (seat(comm), bytes_at_mut(data, bytes)) };
    // SAFETY: the plugin passes `why`, null or writable.
    unsafe {
        answer(why, || {
            Ok(if seat.test_message(message, data)? {
                DONE
            } else {
                PENDING
            })
        })
    }
}

unsafe extern "C" fn progress(comm: *mut Comm) -> c_int {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    let seat = unsafe { seat(comm) };
    calm(0, || seat.progress().into())
}

unsafe extern "C" fn wait(
    comm: *mut Comm,
    ready: Option<abi::Ready>,
    argument: *mut c_void,
    limit_ns: u64,
    why: *mut Why,
) -> c_int {
    let wait = || {
        let ready = ready.ok_or("the service wait was called without a function to ask")?;
        let limit = (limit_ns != 0).then(|| Duration::from_nanos(limit_ns));
        // SAFETY: the plugin keeps the contract of `seat`, and `ready` accepts `argument`: the plugin passes both.
        let came = unsafe { seat(comm).wait(limit, || ready(argument) != 0) }?;
        Ok(if came { DONE } else { PENDING })
    };
    // SAFETY: the plugin passes `why`, null or writable.
    unsafe { answer(why, wait) }
}

unsafe extern "C" fn ring(comm: *mut Comm, rank: u32) {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    let seat = unsafe { seat(comm) };
    calm((), || seat.ring(rank));
}

unsafe extern "C" fn shared_memory(
    comm: *mut Comm,
    bytes: usize,
    align: usize,
    memory: *mut *mut c_void,
    why: *mut Why,
) -> c_int {
    let take = || {
        // SAFETY: the plugin passes `memory`, null or writable.
        let memory = unsafe { memory.as_mut() }
            .ok_or("the service shared_memory was called without a place for the address")?;
        // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
        *memory = unsafe { seat(comm) }.shared_memory(bytes, align)?.cast();
        Ok(DONE)
    };
    // SAFETY: the plugin passes `why`, null or writable.
    unsafe { answer(why, take) }
}

unsafe extern "C" fn param(comm: *mut Comm, name: *const c_char) -> *const c_char {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the plugin keeps the contract of `seat`; `name` is not null, and the plugin passes a NUL-terminated string.
    let (seat, name) = unsafe { (seat(comm), CStr::from_ptr(name)) };
    let value = name.to_str().ok().and_then(|name| seat.param(name));
    value.map_or(std::ptr::null(), CStr::as_ptr)
}

unsafe extern "C" fn log(comm: *mut Comm, level: c_int, line: *const c_char) {
    if line.is_null() {
        return;
    }
    // SAFETY: the plugin keeps the contract of `seat`; `line` is not null, and the plugin passes a NUL-terminated string.
    let (seat, line) = unsafe { (seat(comm), CStr::from_ptr(line)) };
    calm((), || seat.log(level, &line.to_string_lossy()));
}

unsafe extern "C" fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The monotonic clock counts from boot, so neither field is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

unsafe extern "C" fn call_next(call: *mut Call, why: *mut Why) -> c_int {
    let next = || {
        // SAFETY: the host made the pointer from a `PluginCall` that lives until the plugin's function returns.
        let PluginCall { cx, call } = unsafe { &*call.cast::<PluginCall>() };
        if !cx.engine().may_block() {
            return Err("call_next was called from inside progress, where nothing may wait".into());
        }
        Table::run_next(cx, call)
            .map(|()| DONE)
            .map_err(|e| e.to_string())
    };
    // SAFETY: the plugin passes `why`, null or writable.
    unsafe { answer(why, next) }
}

unsafe extern "C" fn component_data(comm: *mut Comm) -> *mut *mut c_void {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    unsafe { seat(comm) }.component_data.as_ptr()
}

unsafe extern "C" fn barrier_wire(comm: *mut Comm, wire: u32, entered: u64, released: u64) {
    // SAFETY: the plugin keeps the contract of `seat`, see `plugin.h`.
    let seat = unsafe { seat(comm) };
    calm((), || seat.engine.tell_wire(wire, entered, released));
}

/// # Safety
/// `data` is readable for `bytes`, or null, or `bytes` is 0.
unsafe fn bytes_at<'a>(data: *const c_void, bytes: usize) -> &'a [u8] {
    if data.is_null() || bytes == 0 {
        return &[];
    }
    // SAFETY: not null, and the caller guarantees that `bytes` are readable.
    unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
}

/// # Safety
/// `data` is writable for `bytes` and not used by other code, or null, or `bytes` is 0.
unsafe fn bytes_at_mut<'a>(data: *mut c_void, bytes: usize) -> &'a mut [u8] {
    if data.is_null() || bytes == 0 {
        return &mut [];
    }
    // SAFETY: not null, and the caller guarantees that `bytes` are writable and used by no other code.
    unsafe { std::slice::from_raw_parts_mut(data.cast(), bytes) }
}
