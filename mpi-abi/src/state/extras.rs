//! Extra actions of every call, beside the work of the call itself.
//!
//! A call may take the lock, be traced, deliver events to tools, or stage buffers in device memory.
//! In a forked process, a call may be refused.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The extra actions of each call, a set of the bits below. Most processes have none.
static EXTRAS: AtomicU8 = AtomicU8::new(LOCKED);

/// Calls take the global lock.
/// Set until initialization has chosen a thread level below `MPI_THREAD_MULTIPLE`.
pub(super) const LOCKED: u8 = 1;

/// Calls are written to the trace.
pub(super) const TRACED: u8 = 2;

/// The process was forked from a process that has initialized MPI ([`forked`](crate::forked)).
pub(super) const FORKED: u8 = 4;

/// An accelerator library is loaded, so buffers may be staged ([`device`](crate::device)).
pub(super) const STAGING: u8 = 8;

/// A function runs after each call ([`call_after_calls`](super::call_after_calls)).
pub(super) const FOLLOWED: u8 = 16;

/// Messages of some communicators have lanes of their own ([`lanes`](crate::lanes)).
pub(super) const LANES: u8 = 32;

/// Targets of [`WATCHED`]: 0 if calls have no extra action (`QUIET`), 1 if they have (`ACTIVE`).
static QUIET: AtomicUsize = AtomicUsize::new(0);
static ACTIVE: AtomicUsize = AtomicUsize::new(1);

/// The address of the word that every call reads; the call has extra actions if it is not 0.
/// The address is that of [`ACTIVE`] if [`EXTRAS`] has an action, else the address in [`LOADER`].
static WATCHED: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::from_ref(&ACTIVE).cast_mut());

/// The address of a loader variable that becomes nonzero at the next `dlopen`, or of [`QUIET`].
static LOADER: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::from_ref(&QUIET).cast_mut());

/// The mutex for changes of the actions or of the loader's word.
static CHANGE: Mutex<()> = Mutex::new(());

/// True if calls must continue to take the lock: a tool calls its interface from its own threads.
static TOOL_THREADS: AtomicBool = AtomicBool::new(false);

/// Makes calls continue to take the lock, since a tool calls its interface from its own threads.
/// Returns false if calls take no lock. The tool's calls must then not overlap with MPI calls.
pub(crate) fn admit_tool_threads() -> bool {
    let locked = EXTRAS.load(Relaxed) & LOCKED != 0;
    if locked {
        TOOL_THREADS.store(true, Relaxed);
    }
    locked
}

/// Returns true if a tool calls its interface from its own threads.
pub(crate) fn tool_has_threads() -> bool {
    TOOL_THREADS.load(Relaxed)
}

/// Marks this process as forked. Stores only to atomics.
pub(crate) fn mark_forked() {
    EXTRAS.fetch_or(FORKED, Relaxed);
    WATCHED.store(std::ptr::from_ref(&ACTIVE).cast_mut(), Relaxed);
}

/// Returns true if this process was forked from a process that has initialized MPI.
pub(crate) fn is_forked() -> bool {
    EXTRAS.load(Relaxed) & FORKED != 0
}

/// Returns true if calls are not traced.
#[inline(always)]
pub(crate) fn is_untraced() -> bool {
    EXTRAS.load(Relaxed) & TRACED == 0
}

/// Returns true if calls take no lock, so that the calling thread has exclusive access.
#[inline(always)]
pub(crate) fn is_unlocked() -> bool {
    EXTRAS.load(Relaxed) == 0
}

/// Makes calls record the buffers that they stage.
pub(crate) fn set_staging() {
    set(STAGING, true);
}

/// Returns true if buffers may be staged.
#[inline(always)]
pub(crate) fn is_staging() -> bool {
    EXTRAS.load(Relaxed) & STAGING != 0
}

/// Returns true if calls have extra actions. Costs two dependent loads and one branch.
#[inline(always)]
pub(super) fn any() -> bool {
    // SAFETY: the pointer refers to a static, or to a loader word that exists until process exit.
    // Only `choose_word` stores this pointer.
    unsafe { &*WATCHED.load(Relaxed) }.load(Relaxed) != 0
}

/// Returns true if messages have lanes. Costs a load and one branch.
#[inline(always)]
pub(crate) fn have_lanes() -> bool {
    EXTRAS.load(Relaxed) & LANES != 0
}

/// Sets whether each call determines the lane of its communicator or request.
pub(crate) fn set_lanes(wanted: bool) {
    set(LANES, wanted);
}

/// Returns true if a library was loaded since [`watch_loader`].
pub(super) fn loader_has_loaded() -> bool {
    // SAFETY: the pointer refers to a static, or to a loader word that exists until process exit.
    // Only `watch_loader` stores this pointer.
    unsafe { &*LOADER.load(Relaxed) }.load(Relaxed) != 0
}

/// Sets the loader word that calls read: it becomes nonzero when a library is loaded.
pub(crate) fn watch_loader(word: Option<&'static AtomicUsize>) {
    let _held = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    let word = word.unwrap_or(&QUIET);
    LOADER.store(std::ptr::from_ref(word).cast_mut(), Relaxed);
    choose_word();
}

/// Stores the address of the word that calls read. The caller holds [`CHANGE`].
fn choose_word() {
    let word = match EXTRAS.load(Relaxed) {
        0 => LOADER.load(Relaxed),
        _ => std::ptr::from_ref(&ACTIVE).cast_mut(),
    };
    WATCHED.store(word, Relaxed);
}

/// Returns the extra actions of a call.
#[inline(always)]
pub(super) fn get() -> u8 {
    EXTRAS.load(Relaxed)
}

/// Adds or removes an extra action of every call.
pub(super) fn set(action: u8, wanted: bool) {
    let _held = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    match wanted {
        true => EXTRAS.fetch_or(action, Relaxed),
        false => EXTRAS.fetch_and(!action, Relaxed),
    };
    choose_word();
}
