//! What every call does beside its work: it takes the lock, is traced, is followed by events of a tool, stages buffers in device memory, or is refused in a forked process.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

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

/// A function follows each call ([`call_after_calls`](super::call_after_calls)).
pub(super) const FOLLOWED: u8 = 16;

/// Words for [`WATCHED`]: no call has anything to do beside its work, or each has.
static QUIET: AtomicUsize = AtomicUsize::new(0);
static ACTIVE: AtomicUsize = AtomicUsize::new(1);

/// The address of the word that every call reads: [`ACTIVE`] if [`EXTRAS`] has an action, else that of [`LOADER`].
static WATCHED: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::from_ref(&ACTIVE).cast_mut());

/// The address of a word of the loader that becomes different from 0 when a library is loaded, or of [`QUIET`].
static LOADER: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::from_ref(&QUIET).cast_mut());

/// Held while the actions or the loader's word change.
static CHANGE: Mutex<()> = Mutex::new(());

/// True if a tool calls its interface from threads of its own, so that calls keep taking the lock.
static TOOL_THREADS: AtomicBool = AtomicBool::new(false);

/// Keeps the lock of calls for the threads of a tool. Returns false if the program's calls take none, so that a tool's must not overlap with them.
pub(crate) fn admit_tool_threads() -> bool {
    let locked = EXTRAS.load(Relaxed) & LOCKED != 0;
    if locked {
        TOOL_THREADS.store(true, Relaxed);
    }
    locked
}

/// Returns true if a tool calls its interface from threads of its own.
pub(crate) fn tool_has_threads() -> bool {
    TOOL_THREADS.load(Relaxed)
}

/// Marks this process as just forked; only stores to an atomic.
pub(crate) fn mark_forked() {
    EXTRAS.fetch_or(FORKED, Relaxed);
    WATCHED.store(std::ptr::from_ref(&ACTIVE).cast_mut(), Relaxed);
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

/// Returns true if buffers may be staged.
#[inline(always)]
pub(crate) fn is_staging() -> bool {
    EXTRAS.load(Relaxed) & STAGING != 0
}

/// Returns true if a call has anything to do beside its work: one load more than that of a flag, and one branch.
#[inline(always)]
pub(super) fn any() -> bool {
    // SAFETY: the address of a static, or of a word of the loader that exists as long as the process (`watch_loader`).
    unsafe { &*WATCHED.load(Relaxed) }.load(Relaxed) != 0
}

/// Returns true if a library was loaded since [`watch_loader`].
pub(super) fn loader_has_loaded() -> bool {
    // SAFETY: as in `any`.
    unsafe { &*LOADER.load(Relaxed) }.load(Relaxed) != 0
}

/// Makes every call notice when this word of the loader becomes different from 0.
pub(crate) fn watch_loader(word: Option<&'static AtomicUsize>) {
    let _held = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    let word = word.unwrap_or(&QUIET);
    LOADER.store(std::ptr::from_ref(word).cast_mut(), Relaxed);
    choose_word();
}

/// Stores the word that calls read; the caller holds [`CHANGE`].
fn choose_word() {
    let word = match EXTRAS.load(Relaxed) {
        0 => LOADER.load(Relaxed),
        _ => std::ptr::from_ref(&ACTIVE).cast_mut(),
    };
    WATCHED.store(word, Relaxed);
}

/// Returns the actions of a call beside its work.
#[inline(always)]
pub(super) fn get() -> u8 {
    EXTRAS.load(Relaxed)
}

/// Adds or removes an action of every call.
pub(super) fn set(action: u8, wanted: bool) {
    let _held = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    match wanted {
        true => EXTRAS.fetch_or(action, Relaxed),
        false => EXTRAS.fetch_and(!action, Relaxed),
    };
    choose_word();
}
