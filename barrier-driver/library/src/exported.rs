//! The functions of the C interface, based on the ports of `barrier-driver`.
//!
//! A function that fails returns -1, and stores the reason for `hwbarr_error` of the same thread.

#![allow(unsafe_code)]

use barrier_driver::ports::{self, BoxedIn, BoxedOut};
#[cfg(target_os = "linux")]
use barrier_driver::registers::{RegisterBlock, StartPulse};
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
    /// The description of the port, as passed to `hwbarr_open`.
    port: String,
}

thread_local! {
    static REASON: RefCell<CString> = RefCell::default();
}

/// Stores the reason of a failure for [`hwbarr_error`], and returns -1.
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
    let port = port.to_owned();
    Ok(Hwbarr { barrier, port })
}

/// The register block of a node that has a start pulse, the node's group, and the pulse's settings.
#[cfg(target_os = "linux")]
fn start_pulse(node: &Hwbarr) -> Result<(RegisterBlock, u32, StartPulse), String> {
    let (block, group) = ports::register_block(&node.port).map_err(|e| e.to_string())?;
    let pulse = block.start_pulse().ok_or_else(|| {
        format!(
            "the register block of {} has no start pulse: bit PULSE of its register CAPS is 0",
            node.port
        )
    })?;
    Ok((block, group, pulse))
}

#[cfg(target_os = "linux")]
fn set_start_pulse(node: &Hwbarr, cycles: u32, is_low: bool) -> Result<(), String> {
    let cycles = u16::try_from(cycles)
        .map_err(|_| format!("a start pulse has at most 65535 cycles, not {cycles}"))?;
    let (block, group, before) = start_pulse(node)?;
    let bit = 1 << group;
    let (groups, cycles) = match cycles {
        // The other groups keep their pulses.
        0 => (before.groups & !bit, before.cycles),
        cycles => (before.groups | bit, cycles),
    };
    block.set_start_pulse(StartPulse {
        groups,
        cycles,
        is_inverted: is_low,
    });
    Ok(())
}

#[cfg(target_os = "linux")]
fn start_time(node: &Hwbarr) -> Result<(u32, u32), String> {
    let (block, ..) = start_pulse(node)?;
    Ok((block.start_time(), block.clock_hz()))
}

#[cfg(not(target_os = "linux"))]
fn set_start_pulse(_: &Hwbarr, _: u32, _: bool) -> Result<(), String> {
    Err("only a register block has a start pulse, and its ports need Linux".into())
}

#[cfg(not(target_os = "linux"))]
fn start_time(_: &Hwbarr) -> Result<(u32, u32), String> {
    Err("only a register block has a start pulse, and its ports need Linux".into())
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
/// `port` must be a C string, and `node` must point to a variable for a pointer.
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

/// Sets the start pulse of the node's register block (ports uio and mem): after each release of the node's group
/// the line start_o is active for this many cycles of the block's clock, at most 65535; 0 for no pulse after this group.
/// The line is low in a pulse if is_low is not 0, and high otherwise. Width and level are those of all groups. Returns 0, or -1.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_set_start_pulse(
    node: *mut Hwbarr,
    cycles: u32,
    is_low: c_int,
) -> c_int {
    // SAFETY: the caller passes a node of hwbarr_open that is open and unused by others, or null.
    let Some(node) = (unsafe { node.as_ref() }) else {
        return failed("hwbarr_set_start_pulse: node must not be null");
    };
    match set_start_pulse(node, cycles, is_low != 0) {
        Ok(()) => 0,
        Err(reason) => failed(&reason),
    }
}

/// Writes the time of the release that began the last start pulse to *cycle, in cycles since the block's reset modulo 2^32,
/// 0 if there was no pulse, and the frequency of the block's clock in Hz to *hertz, 0 if the block does not know it. Returns 0, or -1.
///
/// # Safety
///
/// `node` must come from `hwbarr_open` and must not be closed or in use by another thread;
/// `cycle` and `hertz` must point to integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hwbarr_start_time(
    node: *mut Hwbarr,
    cycle: *mut u32,
    hertz: *mut u32,
) -> c_int {
    // SAFETY: the caller passes a node of hwbarr_open that is open and unused by others, or null.
    let Some(node) = (unsafe { node.as_ref() }) else {
        return failed("hwbarr_start_time: node must not be null");
    };
    if cycle.is_null() || hertz.is_null() {
        return failed("hwbarr_start_time: cycle and hertz must not be null");
    }
    match start_time(node) {
        Ok((time, frequency)) => {
            // SAFETY: the caller's pointers refer to integers, and are not null.
            unsafe {
                cycle.write(time);
                hertz.write(frequency);
            }
            0
        }
        Err(reason) => failed(&reason),
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
