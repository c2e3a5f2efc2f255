//! What every call does beside its work: it takes the lock, is traced, or is refused in a forked process.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The actions of a call beside its work, a set of the bits below; in most processes none.
static EXTRAS: AtomicU8 = AtomicU8::new(LOCKED);

/// Calls take the global lock; set until initialization has chosen a level below `MPI_THREAD_MULTIPLE`.
pub(super) const LOCKED: u8 = 1;

/// Calls are written to the trace.
pub(super) const TRACED: u8 = 2;

/// The process was forked from one that has initialized MPI ([`forked`](crate::forked)).
pub(super) const FORKED: u8 = 4;

/// The program has loaded the library of an accelerator, so buffers may be staged ([`device`](crate::device)).
pub(super) const STAGING: u8 = 8;

/// Marks this process as just forked; only stores to an atomic.
pub(crate) fn mark_forked() {
    EXTRAS.fetch_or(FORKED, Relaxed);
}

/// Returns true if this process was forked from one that has initialized MPI.
pub(crate) fn is_forked() -> bool {
    EXTRAS.load(Relaxed) & FORKED != 0
}

/// Returns true if calls are not traced.
#[inline(always)]
pub(crate) fn is_untraced() -> bool {
    EXTRAS.load(Relaxed) & TRACED == 0
}

/// Returns true if calls take no lock, so that the calling thread has the state to itself.
#[inline(always)]
pub(crate) fn is_unlocked() -> bool {
    EXTRAS.load(Relaxed) == 0
}

/// Makes calls keep the buffers that they stage.
pub(crate) fn set_staging() {
    set(STAGING, true);
}

/// Returns the actions of a call beside its work.
#[inline(always)]
pub(super) fn get() -> u8 {
    EXTRAS.load(Relaxed)
}

/// Adds or removes an action of every call.
pub(super) fn set(action: u8, wanted: bool) {
    match wanted {
        true => EXTRAS.fetch_or(action, Relaxed),
        false => EXTRAS.fetch_and(!action, Relaxed),
    };
}
