//! Publication of calls on the state page and in the trace.
#![allow(unsafe_code)]

use super::extras::{self, TRACED};
use mpi_base::state::StatePage;
use mpi_core::trace::Trace;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

/// The state page of this process, or null.
static PAGE: AtomicPtr<StatePage> = AtomicPtr::new(std::ptr::null_mut());

/// The trace of calls, or null.
static TRACE: AtomicPtr<Trace> = AtomicPtr::new(std::ptr::null_mut());

/// True if this run is recorded or replayed.
static SCRIPTED: AtomicBool = AtomicBool::new(false);

/// Returns the trace, if calls are traced.
pub(super) fn trace() -> Option<&'static Trace> {
    // SAFETY: the pointer is null, or the `'static` trace that `set_tracing` received.
    unsafe { TRACE.load(Relaxed).as_ref() }
}

/// Writes a returning call to the trace. Function numbers begin with 1.
pub(super) fn trace_call(number: u16, began: u64) {
    if let Some(trace) = trace() {
        // SAFETY: `pthread_self` has no preconditions and always succeeds.
        let thread = unsafe { libc::pthread_self() } as u32;
        trace.called(number, began, thread);
    }
}

/// Starts tracing calls, and sets whether the run is recorded or replayed.
pub(crate) fn set_tracing(trace: Option<&'static Trace>, scripted: bool) {
    if let Some(trace) = trace {
        TRACE.store(std::ptr::from_ref(trace).cast_mut(), Relaxed);
        extras::set(TRACED, true);
    }
    SCRIPTED.store(scripted, Relaxed);
}

/// Returns true if this run is recorded or replayed.
#[inline]
pub(crate) fn is_scripted() -> bool {
    SCRIPTED.load(Relaxed)
}

/// Returns the state page of this process, if it exists.
#[inline(always)]
pub(super) fn page() -> Option<&'static StatePage> {
    // SAFETY: the pointer is null, or the `'static` page that `set_state_page` received.
    unsafe { PAGE.load(Relaxed).as_ref() }
}

/// Publishes calls on this state page from now on.
pub(crate) fn set_state_page(page: &'static StatePage) {
    PAGE.store(std::ptr::from_ref(page).cast_mut(), Relaxed);
}
