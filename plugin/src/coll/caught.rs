//! Wrappers for functions behind a C table: they turn a panic into a failure.
#![allow(unsafe_code)]

use super::abi::{FAILED, Why};
use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a function that can fail. On failure writes the reason to `why` and returns `FAILED`.
///
/// # Safety
/// `why` is null or writable.
pub unsafe fn answer(why: *mut Why, call: impl FnOnce() -> Result<c_int, String>) -> c_int {
    let reason = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(code)) => return code,
        Ok(Err(reason)) => reason,
        Err(panic) => panic_text(&*panic),
    };
    // SAFETY: `why` is null or writable by this function's contract.
    if let Some(why) = unsafe { why.as_mut() } {
        why.set(&reason);
    }
    FAILED
}

/// Calls a function that cannot return an error. If the function panics, returns `nothing`.
pub fn calm<T>(nothing: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(nothing)
}

/// Returns the text of a panic as a sentence.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it stopped at a defect: {}", text.unwrap_or("no text"))
}
