//! Exceptions thrown by callbacks of the program: C++ exceptions, or panics of a Rust program.
//!
//! An exception that unwinds the library would leave an operation unfinished.
//! A collective would stay unfinished on all other ranks.
//! So the exception is caught at the call of the callback ([`guarded`]) and stored per thread.
//! The operation completes without the callback's result.
//! The exception is raised again when the program's MPI call returns ([`pass_on`]).
//! The program catches the exception as if the MPI call had thrown it.
//! The library is then in a regular state.
//! The first exception is kept. Exceptions of later callbacks in the same call are deleted.
//!
//! Rust's `catch_unwind` aborts the process for a foreign exception, hence [`personality`].
#![allow(unsafe_code)]

mod personality;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of threads with a stored exception. While it is 0, calls check nothing else.
static KEPT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The exception to raise when this thread's MPI call returns, or null.
    static EXCEPTION: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
}

/// Calls a callback. If it throws, the exception is stored and the result is `instead`.
///
/// The closure and its result are `Copy`.
/// So the frames between `portcullis_try` and the callback have nothing to drop.
/// A cleanup in such a frame would use the library's unwinder, which did not start the unwinding.
/// The bound is `Fn`, since a call by `FnOnce` has a frame that drops the closure.
pub fn guarded<R: Copy, F: Fn() -> R + Copy>(instead: R, call: F) -> R {
    let mut job = Job {
        call,
        result: instead,
    };
    let exception = personality::run(run::<R, F>, (&raw mut job).cast());
    if !exception.is_null() {
        keep(exception);
    }
    job.result
}

struct Job<R, F> {
    call: F,
    result: R,
}

unsafe extern "C-unwind" fn run<R: Copy, F: Fn() -> R + Copy>(job: *mut c_void) {
    // SAFETY: `guarded` passes a pointer to its local job of these types.
    // No other code uses the job during the call.
    let job = unsafe { &mut *job.cast::<Job<R, F>>() };
    job.result = (job.call)();
}

#[cold]
fn keep(exception: *mut c_void) {
    EXCEPTION.with(|kept| match kept.get().is_null() {
        true => {
            kept.set(exception);
            KEPT.fetch_add(1, Relaxed);
        }
        false => personality::delete(exception),
    });
}

/// Returns the code of an exported function, or raises the exception stored during the call.
#[inline(always)]
pub fn pass_on(code: c_int) -> c_int {
    if KEPT.load(Relaxed) != 0 {
        raise_kept();
    }
    code
}

/// Raises the exception stored for this thread, if any.
#[cold]
#[inline(never)]
fn raise_kept() {
    let exception = EXCEPTION.with(|kept| kept.replace(std::ptr::null_mut()));
    if exception.is_null() {
        return;
    }
    KEPT.fetch_sub(1, Relaxed);
    personality::raise(exception);
}

/// Ends the process if this thread has a stored exception.
/// For the library's own progress thread: no MPI call of the program could raise the exception.
pub fn end_if_kept() {
    if EXCEPTION.with(|kept| !kept.get().is_null()) {
        personality::end(
            "a function of the program has thrown an exception in the library's own progress thread, where no code of the program can catch it",
        );
    }
}
