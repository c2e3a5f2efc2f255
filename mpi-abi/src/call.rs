//! The common code of all exported functions: call accounting, panics, error handlers.
//!
//! Buffers in device memory are staged in host memory during a call.
//! Results are copied back before the call returns or at the operation's end ([`BuffersUntil`]).
//!
//! Invariants: a panic never crosses the C boundary.
//! A failure calls the error handler that the standard names, and sets output handles to null.
//! This module allocates no memory, takes no lock and looks up nothing in a successful call.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::device;
use crate::error::{Failure, Outcome, Target};
use crate::raise;
use crate::registry::{request, window};
use crate::state::{self, CallGuard};
use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of function `id`, an index into `functions`, and returns an error code.
#[inline]
pub fn call(id: usize, target: Target, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    call_creating(id, target, || (), body)
}

/// Runs a body that creates handles, as [`call`] does.
/// `on_error` stores null handles before an error handler runs.
#[inline]
pub fn call_creating(
    id: usize,
    target: Target,
    on_error: impl FnOnce(),
    body: impl FnOnce() -> Result<(), Failure>,
) -> c_int {
    call_entered_by(state::enter, id, target, on_error, body)
}

/// Runs a body as [`call_creating`] does, in a call that begins with `enter`.
#[inline(always)]
pub fn call_entered_by(
    enter: impl FnOnce(usize) -> CallGuard,
    id: usize,
    target: Target,
    on_error: impl FnOnce(),
    body: impl FnOnce() -> Result<(), Failure>,
) -> c_int {
    let guard = enter(id);
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => {
            state::leave(id, guard);
            return MPI_SUCCESS;
        }
        Ok(Err(failure)) => failure,
        Err(panic) => from_panic(panic),
    };
    on_error();
    failed(id, target, failure, guard)
}

/// Executes a call in its lane, without the global lock, while messages have lanes.
/// Returns `None` if the call belongs to lane 0.
#[inline]
pub fn call_in_lane(
    id: usize,
    target: Target,
    on_error: impl FnOnce(),
    lane: impl FnOnce() -> Option<Outcome>,
) -> Option<c_int> {
    Some(match state::in_lane(|| attempt(lane))? {
        Ok(()) => MPI_SUCCESS,
        Err(failure) => failed_in_lane(id, target, on_error, failure),
    })
}

/// Calls `lane`, and converts a panic to a failure.
#[inline(never)]
fn attempt(lane: impl FnOnce() -> Option<Outcome>) -> Option<Outcome> {
    catch_unwind(AssertUnwindSafe(lane)).unwrap_or_else(|panic| Some(Err(from_panic(panic))))
}

/// Ends a call that has failed in its lane: error handlers belong to lane 0.
#[cold]
#[inline(never)]
fn failed_in_lane(id: usize, target: Target, on_error: impl FnOnce(), failure: Failure) -> c_int {
    let guard = state::enter(id);
    on_error();
    failed(id, target, failure, guard)
}

/// The time until which the operation of a call uses the buffers among its arguments.
#[derive(Clone, Copy)]
pub enum BuffersUntil {
    /// The operation uses the buffers until the call returns.
    Return,
    /// The operation uses the buffers until its request completes;
    /// the call stores the handle of the request at this address.
    Request(*mut MPI_Request),
    /// The operation uses the buffers until the window's accesses to this rank are synchronized.
    Synchronized(MPI_Win, c_int),
}

/// Runs a body with buffer arguments, which may be in device memory, as [`call_creating`] does.
#[inline]
pub fn call_with_buffers(
    id: usize,
    target: Target,
    on_error: impl FnOnce(),
    until: BuffersUntil,
    body: impl FnOnce() -> Result<(), Failure>,
) -> c_int {
    call_with_buffers_entered_by(state::enter, id, target, on_error, until, body)
}

/// Runs a body as [`call_with_buffers`] does, in a call that begins with `enter`.
#[inline(always)]
pub fn call_with_buffers_entered_by(
    enter: impl FnOnce(usize) -> CallGuard,
    id: usize,
    target: Target,
    on_error: impl FnOnce(),
    until: BuffersUntil,
    body: impl FnOnce() -> Result<(), Failure>,
) -> c_int {
    let guard = enter(id);
    let result = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) if guard.is_plain() => {
            state::leave(id, guard);
            return MPI_SUCCESS;
        }
        Ok(Ok(())) if !guard.is_staging() => {
            state::leave(id, guard);
            return MPI_SUCCESS;
        }
        result => result,
    };
    match settled(result, until, &guard) {
        Ok(()) => {
            state::leave(id, guard);
            MPI_SUCCESS
        }
        Err(failure) => {
            on_error();
            failed(id, target, failure, guard)
        }
    }
}

/// Copies back the buffers that a call has staged. For an active operation, leaves the copy
/// to the completion of the request or to the synchronization of the window.
#[cold]
#[inline(never)]
fn settled(
    result: std::thread::Result<Result<(), Failure>>,
    until: BuffersUntil,
    guard: &CallGuard,
) -> Result<(), Failure> {
    let outcome = result.unwrap_or_else(|panic| Err(from_panic(panic)));
    if !guard.is_staging() {
        return outcome;
    }
    let views = device::take();
    if views.is_empty() {
        return outcome;
    }
    match (&outcome, until) {
        (Ok(()), BuffersUntil::Request(place)) => {
            // SAFETY: the call has succeeded,
            // so it has stored a handle in `place`, which is not null.
            let handle = request::stage(unsafe { place.read() }, views)?;
            // SAFETY: the call has succeeded, so `place` is not null and valid for writing.
            unsafe { place.write(handle) };
            return Ok(());
        }
        // The origin of a put or accumulate is copied within the call, also for MPI_Rput.
        (Ok(()), BuffersUntil::Synchronized(win, rank)) if views.are_written() => {
            return window::stage(win, rank, views);
        }
        _ => {}
    }
    // A failed receive may have written a part of its buffer, so its host copy is copied back, too.
    let landed = views.land();
    if let Err(failure) = outcome {
        views.keep_if(failure.is_of_fault_tolerance());
        return Err(failure);
    }
    Ok(landed?)
}

/// Ends a failed call. Not inlined: one copy of the code is enough, as failures may be slow.
#[cold]
#[inline(never)]
fn failed(id: usize, target: Target, failure: Failure, guard: CallGuard) -> c_int {
    if failure.is_of_fault_tolerance()
        && let Ok(engine) = state::engine()
    {
        // A program may repeat a failing call in a loop until the engine reports a revocation
        // or another death, so a failing call must poll.
        engine.poll_once();
    }
    let code = raise::raise(id, target, failure);
    state::leave(id, guard);
    code
}

/// Stores `null` in the output argument of a new handle, unless the pointer is null.
///
/// # Safety
/// `place` is null or an output argument of the caller.
#[cold]
#[inline(never)]
pub unsafe fn reset_handle<T>(place: *mut T, null: T) {
    if !place.is_null() {
        // SAFETY: `place` is valid by the `# Safety` contract of this function.
        unsafe { place.write(null) };
    }
}

/// Runs a function of the tool interface without an error handler (section 15.3.10).
#[inline]
pub fn tool_call(id: usize, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let guard = state::enter(id);
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => MPI_SUCCESS,
        Ok(Err(failure)) => failure.code(),
        Err(_) => MPI_T_ERR_INVALID,
    };
    state::leave(id, guard);
    code
}

/// Converts a panic into a failure of class `MPI_ERR_INTERN`.
#[cold]
fn from_panic(panic: Box<dyn Any + Send>) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| s.to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_string());
    Failure::new(
        MPI_ERR_INTERN,
        format!("the library has an error of its own: {text}"),
    )
}
