//! Exceptions thrown by a function of the program that the library calls: C++ exceptions, or panics of a Rust program.
//!
//! An exception that unwound the library would leave its operations half done, and a collective call half done on all other ranks.
//! So it is caught around the call of the program's function ([`guarded`]) and kept for the calling thread, the operation runs to its
//! end without the function's result, and the exception is raised again when the program's MPI call returns ([`pass_on`]).
//! There the program catches it as if the call had thrown it; the library is in the state after a completed call.
//! The first exception is kept; those of later functions in the same call are deleted.
//!
//! Rust's own `catch_unwind` ends the process for a foreign exception, hence [`personality`].
#![allow(unsafe_code)]

mod personality;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of threads that keep an exception; all other calls check only this.
static KEPT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The exception to raise when this thread's MPI call returns; null for none.
    static EXCEPTION: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
}

/// Calls a function of the program; if it throws, the exception is kept and the result is `instead`.
///
/// The closure and its result are plain values, so the frames between `portcullis_try` and the function have nothing to drop: a cleanup
/// there would run with the library's own copy of the unwinder, which did not start this unwinding.
/// `Fn`, since calling a closure by `FnOnce` has a frame that drops it.
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
    // SAFETY: `guarded` passes a pointer to its local job of these types, which no other code uses during the call.
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

/// Returns the code of an exported function, or raises an exception that a function of the program has thrown meanwhile.
#[inline(always)]
pub fn pass_on(code: c_int) -> c_int {
    if KEPT.load(Relaxed) != 0 {
        raise_kept();
    }
    code
}

/// Raises the exception that this thread keeps, if any.
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

/// Ends the process if this thread, which has no caller in the program, keeps an exception.
pub fn end_if_kept() {
    if EXCEPTION.with(|kept| !kept.get().is_null()) {
        personality::end(
            "a function of the program has thrown an exception in the library's own progress thread, where no code of the program can catch it",
        );
    }
}
