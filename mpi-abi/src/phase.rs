//! Where in its life the MPI of this process is, and the launcher it came from.
//!
//! Both may be asked from any thread at any time, so they are atomic; only a call that initializes or finalizes changes them.

use crate::abi::MPI_THREAD_SINGLE;
use mpi_core::rte::Rte;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const AFTER: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(MPI_THREAD_SINGLE);
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);

/// The launcher; kept to the end of the process, because ending the job goes through it.
static LAUNCHER: OnceLock<Box<dyn Rte>> = OnceLock::new();

/// Whether initialization has happened, finalization included.
pub fn initialized() -> bool {
    PHASE.load(Relaxed) != BEFORE
}

pub fn finalized() -> bool {
    PHASE.load(Relaxed) == AFTER
}

/// Whether the world is there: initialized and not finalized.
pub(crate) fn running() -> bool {
    PHASE.load(Relaxed) == RUNNING
}

/// The calling thread has initialized, with this level of thread support.
pub(crate) fn begin(level: c_int) {
    THREAD_LEVEL.store(level, Relaxed);
    MAIN_THREAD.store(crate::lock::me(), Relaxed);
    PHASE.store(RUNNING, Relaxed);
}

/// The process has finalized.
pub(crate) fn end() {
    PHASE.store(AFTER, Relaxed);
}

/// The level of thread support that initialization chose.
pub fn thread_level() -> c_int {
    THREAD_LEVEL.load(Relaxed)
}

/// Whether the calling thread is the one that initialized.
pub fn is_main_thread() -> bool {
    MAIN_THREAD.load(Relaxed) == crate::lock::me()
}

/// The launcher, from initialization on.
pub fn launcher() -> Option<&'static dyn Rte> {
    LAUNCHER.get().map(|rte| &**rte)
}

/// Keeps the launcher; the one that was there first stays.
pub(crate) fn set_launcher(rte: Box<dyn Rte>) -> &'static dyn Rte {
    &**LAUNCHER.get_or_init(|| rte)
}
