//! The functions of the C interface, based on the ports of `barrier-driver`.
//!
//! A function that fails returns -1 and keeps the reason for `hwbarr_error`, for the calling thread.

#![allow(unsafe_code)]

use barrier_driver::ports::{self, BoxedIn, BoxedOut};
use barrier_driver::{ToggleBarrier, WaitError};
use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::thread;
use std::time::Duration;

/// One open node.
pub struct Hwbarr {
    barrier: ToggleBarrier<BoxedOut, BoxedIn>,
}

thread_local! {
    static REASON: RefCell<CString> = RefCell::default();
}

/// Keeps the reason of a failure for [`hwbarr_error`].
fn failed(reason: &str) -> c_int {
    let bytes = reason.bytes().filter(|&byte| byte != 0);
    REASON.set(CString::new(bytes.collect::<Vec<_>>()).unwrap_or_default());
    -1
}

fn open(port: &str) -> Result<Hwbarr, String> {
    let wires = ports::open(port).map_err(|e| e.to_string())?;
    let idle = || Ok::<(), Infallible>(());
    let barrier = ToggleBarrier::open(wires.out, wires.input, idle);
    let barrier = barrier.map_err(|e| format!("{port}: {e}"))?;
    Ok(Hwbarr { barrier })
}

fn wait(node: &mut Hwbarr, nanoseconds: u64) -> c_int {
    let limit = match nanoseconds {
        0 => Duration::MAX,
        limit => Duration::from_nanos(limit),
    };
    match node.barrier.wait(thread::yield_now, limit) {
        Ok(()) => 0,
        Err(WaitError::TimedOut { .. }) => 1,
        Err(e) => failed(&e.to_string()),
    }
}

/// Opens a port, such as "uio:/dev/uio0,node=3", and puts the node's wire to the barrier's level.
/// All nodes must have been opened before one of them enters its first barrier.
/// Returns 0 and the node in *node, or -1.
///
/// # Safety
///
/// `port` must be a C string, and `node` must point to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_open(port: *const c_char, node: *mut *mut Hwbarr) -> c_int {
    if port.is_null() || node.is_null() {
        return failed("hwbarr_open: port and node must not be null");
    }
    // SAFETY: the caller passes a C string, which is not null.
    let text = unsafe { CStr::from_ptr(port) }.to_string_lossy();
    let (opened, status) = match open(&text) {
        Ok(opened) => (Box::into_raw(Box::new(opened)), 0),
        Err(reason) => (ptr::null_mut(), failed(&reason)),
    };
    // SAFETY: the caller's pointer is not null and points to memory for a pointer.
    unsafe { node.write(opened) };
    status
}

/// Announces that this node has arrived. Returns 0, or -1.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_enter(node: *mut Hwbarr) -> c_int {
    // SAFETY: the pointer is null, or came from hwbarr_open, has not been closed and is not in use by another thread.
    match unsafe { node.as_mut() } {
        None => failed("hwbarr_enter: node must not be null"),
        Some(node) => match node.barrier.enter() {
            Ok(()) => 0,
            Err(e) => failed(&e.to_string()),
        },
    }
}

/// Reads once whether all nodes have arrived. Returns 1 if they have, or if this node is in no barrier, 0 if not, or -1.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_poll(node: *mut Hwbarr) -> c_int {
    // SAFETY: the pointer is null, or came from hwbarr_open, has not been closed and is not in use by another thread.
    match unsafe { node.as_mut() } {
        None => failed("hwbarr_poll: node must not be null"),
        Some(node) => match node.barrier.poll() {
            Ok(released) => c_int::from(released.is_ready()),
            Err(e) => failed(&e.to_string()),
        },
    }
}

/// Waits until all nodes have arrived, for at most this many nanoseconds, 0 for no limit.
/// Returns 0, or 1 when the time is over and the node is still in the barrier, or -1.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_wait(node: *mut Hwbarr, nanoseconds: u64) -> c_int {
    // SAFETY: the pointer is null, or came from hwbarr_open, has not been closed and is not in use by another thread.
    match unsafe { node.as_mut() } {
        None => failed("hwbarr_wait: node must not be null"),
        Some(node) => wait(node, nanoseconds),
    }
}

/// Enters and waits, as hwbarr_enter and hwbarr_wait do.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_barrier(node: *mut Hwbarr, nanoseconds: u64) -> c_int {
    // SAFETY: the pointer is null, or came from hwbarr_open, has not been closed and is not in use by another thread.
    let Some(node) = (unsafe { node.as_mut() }) else {
        return failed("hwbarr_barrier: node must not be null");
    };
    match node.barrier.enter() {
        Ok(()) => wait(node, nanoseconds),
        Err(e) => failed(&e.to_string()),
    }
}

/// Withdraws an arrival that has not been released, puts the wire to the barrier's level, and releases the port. Returns 0, or -1.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread; it is closed afterwards in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_close(node: *mut Hwbarr) -> c_int {
    if node.is_null() {
        return failed("hwbarr_close: node must not be null");
    }
    // SAFETY: the pointer was made by Box::into_raw in hwbarr_open, and the caller does not use it again.
    let node = unsafe { Box::from_raw(node) };
    match node.barrier.close() {
        Ok(()) => 0,
        Err(e) => failed(&e.to_string()),
    }
}

/// Returns why the last function of this thread failed, valid until its next failure.
#[unsafe(no_mangle)]
pub extern "C" fn hwbarr_error() -> *const c_char {
    REASON.with_borrow(|reason| reason.as_ptr())
}
