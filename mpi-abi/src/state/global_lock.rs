//! The global lock of calls at `MPI_THREAD_MULTIPLE`.

use super::extras::{self, LANES, LOCKED};
use crate::lock::{
    GlobalLock, enter_again, home_of, leave_entirely, set_home, try_acquire, watcher,
};
use crate::thread_waits::polled_in_base;
use mpi_base::cpu::Cores;
use mpi_base::inbox::Inbox;
use mpi_core::engine::Threads;

static GLOBAL_LOCK: GlobalLock = GlobalLock::new(0);

/// Runs `f` under the lock, if no thread is inside MPI or waits for the lock.
pub(crate) fn locked_if_free(f: impl FnOnce()) -> bool {
    let taken = try_acquire(&GLOBAL_LOCK);
    if taken {
        f();
        GLOBAL_LOCK.release();
    }
    taken
}

/// Takes the lock at the entry of a call.
#[inline(always)]
pub(super) fn acquire() {
    GLOBAL_LOCK.acquire();
}

/// Releases the lock at the end of the call.
#[inline(always)]
pub(super) fn release() {
    GLOBAL_LOCK.release();
}

/// Releases the lock at the end of the call, while messages have lanes.
pub(super) fn release_lane() {
    watcher::leave(&GLOBAL_LOCK);
    GLOBAL_LOCK.release();
}

/// Releases the lock, also if the code under it panics.
struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        release_lane();
    }
}

/// Runs `f` under the lock that calls take. `f` is not part of a call of the program.
pub(crate) fn locked<R>(f: impl FnOnce() -> R) -> R {
    GLOBAL_LOCK.acquire();
    let held = Held;
    let result = f();
    drop(held);
    result
}

/// Runs `f` without the lock, also if the caller holds it, as a callback of the program does.
/// No part of the state is borrowed, and `f` does not panic.
#[inline]
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    let depth = leave_entirely(&GLOBAL_LOCK);
    let result = f();
    if depth > 0 {
        enter_again(&GLOBAL_LOCK, depth);
    }
    result
}

/// Sets the number of cores available to the threads of this process,
/// which has number `rank` among the ranks of its node, of which `ranks` share its cores.
pub(crate) fn set_cores_for_threads(cores: Cores, ranks: usize, rank: usize) {
    let each = cores.usable / ranks.max(1);
    GLOBAL_LOCK.set_cores(u32::try_from(each).unwrap_or(u32::MAX));
    set_home(&GLOBAL_LOCK, home_of(cores, ranks, rank));
}

/// Chooses whether calls take the global lock.
///
/// Called only by initialization, while no other thread is inside MPI.
pub(crate) fn set_locking(locking: bool) {
    extras::set(LOCKED, locking);
    if locking {
        GLOBAL_LOCK.reserve();
    }
}

/// The hooks through which the engine synchronizes waiting threads.
pub static THREADS: Threads = Threads {
    wait_step: |polled| {
        if extras::get() & LANES != 0 {
            polled_in_base(polled.busy);
        }
        GLOBAL_LOCK.wait_step(polled)
    },
    wanted: || GLOBAL_LOCK.is_wanted(),
    is_alone: || GLOBAL_LOCK.is_of_one_thread() && extras::get() & LANES == 0,
};

/// Sets the doorbell that a thread rings if it finds the lock taken: the owner may be asleep.
pub(crate) fn set_doorbell(inbox: &'static Inbox) {
    GLOBAL_LOCK.set_doorbell(inbox);
}

/// Admits other threads. The engine calls this function between two polls of a wait.
pub fn yield_lock() {
    if extras::get() & LOCKED != 0 {
        GLOBAL_LOCK.yield_to_waiters();
    }
}
