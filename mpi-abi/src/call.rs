//! The wrapper around every exported function: call accounting, panics, error handlers.
//!
//! Invariants: a panic never crosses the C boundary; a failure reaches the error handler that the standard names and leaves
//! null handles in the output arguments; a successful call costs no allocation, no lock and no lookup here.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::{Failure, Target};
use crate::raise;
use crate::state::{self, CallGuard};
use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of function `id` (an index into `functions`) and converts its outcome into an error code.
#[inline]
pub fn call(id: usize, target: Target, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    call_creating(id, target, || (), body)
}

/// As [`call`], for a body that creates handles; `on_error` stores null handles before an error handler runs.
#[inline]
pub fn call_creating(
    id: usize,
    target: Target,
    on_error: impl FnOnce(),
    body: impl FnOnce() -> Result<(), Failure>,
) -> c_int {
    let guard = state::enter(id);
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

/// Ends a call that failed: one out-of-line copy for all functions, since failures are not performance-critical.
#[cold]
#[inline(never)]
fn failed(id: usize, target: Target, failure: Failure, guard: CallGuard) -> c_int {
    if failure.is_of_fault_tolerance()
        && let Ok(engine) = state::engine()
    {
        // A program may repeat a call that fails at once until it is notified of a revocation or of another death.
        engine.poll_once();
    }
    let code = raise::raise(id, target, failure);
    state::leave(id, guard);
    code
}

/// Stores `null` in the output argument for a new handle, unless that pointer is null.
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

/// As [`call`], for the tool interface, whose errors are only returned (section 15.3.10).
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
