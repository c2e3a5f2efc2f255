//! Entry and exit of every MPI call.

use super::extras::{self, FOLLOWED, FORKED, LANES, LOCKED, STAGING, TRACED};
use super::{global_lock, tracing};
use crate::{device, forked, functions, thread_waits};
use mpi_core::trace::Trace;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// This process's rank in `MPI_COMM_WORLD` (upper half) and the size (lower half).
/// The word is 0 while there is no world.
static WORLD_PLACE: AtomicU64 = AtomicU64::new(0);

/// Sets this process's rank and the size of the world.
/// `None` if there is no world or this process is not a member.
pub(crate) fn set_world_place(place: Option<(u32, u32)>) {
    let word = place.map_or(0, |(rank, size)| u64::from(rank) << 32 | u64::from(size));
    WORLD_PLACE.store(word, Relaxed);
}

/// Returns rank and size in `MPI_COMM_WORLD`, or `None` while there is no world.
#[inline(always)]
pub(crate) fn world_place() -> Option<(u32, u32)> {
    match WORLD_PLACE.load(Relaxed) {
        0 => None,
        word => Some(((word >> 32) as u32, word as u32)),
    }
}

/// The function that runs at the end of each call.
static AFTER_CALL: OnceLock<fn()> = OnceLock::new();

/// Runs `follow` at the end of every call from now on, without the lock and without borrows.
/// Later calls of this function have no effect.
pub(crate) fn call_after_calls(follow: fn()) {
    let _ = AFTER_CALL.set(follow);
    extras::set(FOLLOWED, true);
}

/// The state of an active call, to be passed to [`leave`].
#[derive(Debug)]
#[must_use]
pub struct CallGuard {
    extras: u8,
    /// Start time on the trace's clock, if the call is traced.
    /// With lanes no call is traced, and the word is that of the enclosing call ([`thread_waits::enter_base`]).
    began: u64,
}

impl CallGuard {
    /// Returns true if the call has no extra actions.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.extras == 0
    }

    /// Returns true if the call records the buffers that it stages.
    #[inline(always)]
    pub fn is_staging(&self) -> bool {
        self.extras & STAGING != 0
    }
}

/// Begins a call of function `id`: performs the extra actions and publishes the call.
#[inline(always)]
pub fn enter(id: usize) -> CallGuard {
    let (extras, began) = match extras::any() {
        false => (0, 0),
        true => enter_with(id),
    };
    entered(id, extras, began)
}

/// Returns true if calls have extra actions.
#[inline(always)]
pub fn has_extras() -> bool {
    extras::any()
}

/// Begins a call of function `id` without extra actions.
#[inline(always)]
pub fn enter_plainly(id: usize) -> CallGuard {
    entered(id, 0, 0)
}

/// Begins a call of function `id` with extra actions.
#[inline(always)]
pub fn enter_with_extras(id: usize) -> CallGuard {
    let (extras, began) = enter_with(id);
    entered(id, extras, began)
}

/// Calls `lane` without the lock, if messages have lanes. Returns `None` if lane 0 executes the call.
#[inline(always)]
pub fn in_lane<T>(lane: impl FnOnce() -> Option<T>) -> Option<T> {
    match extras::is_forked() {
        true => None,
        false => global_lock::outside(lane),
    }
}

#[inline(always)]
fn entered(id: usize, extras: u8, began: u64) -> CallGuard {
    if let Some(page) = tracing::page() {
        page.enter(number(id));
    }
    CallGuard { extras, began }
}

/// Ends a call of function `id`: publishes its end and performs the extra actions.
#[inline(always)]
pub fn leave(id: usize, guard: CallGuard) {
    if let Some(page) = tracing::page() {
        page.leave(number(id));
    }
    if guard.extras != 0 {
        leave_with(id, guard);
    }
}

/// Converts a function id to its number on the state page. The numbers begin with 1.
#[inline(always)]
pub(crate) fn number(id: usize) -> u16 {
    id as u16 + 1
}

/// Returns the name of the program's current call; `None` outside of calls.
/// With `MPI_THREAD_MULTIPLE` the state page may name the call of another thread, so the result is `None`.
#[cold]
pub(crate) fn current_call() -> Option<&'static str> {
    if extras::get() & LOCKED != 0 {
        return None;
    }
    let call = tracing::page()?.snapshot().call;
    let id = usize::from(call.checked_sub(1)?);
    Some(functions::name(id))
}

/// Performs the extra actions at entry. Returns the actions of this call, and the word of [`CallGuard::began`].
#[cold]
fn enter_with(id: usize) -> (u8, u64) {
    if extras::get() & (FORKED | LANES) != 0 {
        return enter_rarely(id);
    }
    if extras::loader_has_loaded() {
        find_libraries();
    }
    let extras = extras::get();
    if extras & LOCKED != 0 {
        global_lock::acquire();
    }
    if extras & STAGING != 0 {
        device::enter();
    }
    match extras & TRACED {
        0 => (extras, 0),
        _ => (extras, tracing::trace().map_or(0, Trace::begins)),
    }
}

/// Performs the extra actions at entry in a forked process, or while messages have lanes.
/// With lanes, no call is traced.
#[cold]
fn enter_rarely(id: usize) -> (u8, u64) {
    let extras = extras::get();
    if extras & FORKED != 0 {
        forked::called(id, world_place());
        // The function `id` is allowed in a forked child. The call takes no lock:
        // a thread of the parent, which does not exist in the child, may hold the lock.
        return (0, 0);
    }
    global_lock::acquire();
    let outer = thread_waits::enter_base(number(id));
    if extras::loader_has_loaded() {
        find_libraries();
    }
    let extras = extras::get();
    if extras & STAGING != 0 {
        device::enter();
    }
    // This call has acquired the lock and releases it, although lanes may have ended since.
    (extras & (FOLLOWED | STAGING) | LANES, outer)
}

#[cold]
fn leave_rarely(guard: CallGuard) {
    if guard.extras & LANES != 0 {
        thread_waits::leave_base(guard.began);
        global_lock::release_lane();
    }
    if guard.extras & FOLLOWED != 0
        && let Some(follow) = AFTER_CALL.get()
    {
        follow();
    }
}

/// Enables staging if an accelerator library was loaded, and watches for the next library.
#[cold]
fn find_libraries() {
    if device::is_in_use() {
        extras::set(STAGING, true);
    }
    extras::watch_loader(device::loader_word());
}

#[cold]
fn leave_with(id: usize, guard: CallGuard) {
    // The bit is clear if tracing began during the call.
    if guard.extras & TRACED != 0 {
        tracing::trace_call(number(id), guard.began);
    }
    if guard.extras & STAGING != 0 {
        device::leave();
    }
    if guard.extras & LOCKED != 0 {
        global_lock::release();
    }
    if guard.extras & (FOLLOWED | LANES) != 0 {
        leave_rarely(guard);
    }
}
