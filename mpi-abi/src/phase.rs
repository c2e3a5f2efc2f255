//! The MPI phase of this process (before, during, after initialization), and its launcher.
//!
//! Both may be queried from any thread at any time, so they are atomic; only a call that initializes or finalizes changes them.

use crate::abi::MPI_THREAD_SINGLE;
use mpi_core::rte::Rte;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const AFTER: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(MPI_THREAD_SINGLE);
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);

/// Whether the job continues after the death of a process.
static FAULT_TOLERANT: AtomicBool = AtomicBool::new(false);

/// The launcher; kept until process exit, because an abort needs it.
static LAUNCHER: OnceLock<Box<dyn Rte>> = OnceLock::new();

/// Returns true once initialization has happened, also after finalization.
pub fn initialized() -> bool {
    PHASE.load(Relaxed) != BEFORE
}

pub fn finalized() -> bool {
    PHASE.load(Relaxed) == AFTER
}

/// Returns true while the world exists: initialized and not finalized.
pub(crate) fn running() -> bool {
    PHASE.load(Relaxed) == RUNNING
}

/// Records that the calling thread has initialized with this thread level.
pub(crate) fn begin(level: c_int) {
    THREAD_LEVEL.store(level, Relaxed);
    MAIN_THREAD.store(crate::lock::me(), Relaxed);
    PHASE.store(RUNNING, Relaxed);
}

/// Records that the process has finalized.
pub(crate) fn end() {
    PHASE.store(AFTER, Relaxed);
}

/// Records whether the job continues after the death of a process.
pub(crate) fn set_fault_tolerant(is_fault_tolerant: bool) {
    FAULT_TOLERANT.store(is_fault_tolerant, Relaxed);
}

/// Returns true if the job continues after the death of a process.
pub(crate) fn is_fault_tolerant() -> bool {
    FAULT_TOLERANT.load(Relaxed)
}

/// Returns the thread level that initialization chose.
pub fn thread_level() -> c_int {
    THREAD_LEVEL.load(Relaxed)
}

/// Returns true if the calling thread is the one that initialized.
pub fn is_main_thread() -> bool {
    MAIN_THREAD.load(Relaxed) == crate::lock::me()
}

/// Returns the launcher, from initialization on.
pub fn launcher() -> Option<&'static dyn Rte> {
    LAUNCHER.get().map(|rte| &**rte)
}

/// Stores the launcher; an existing one stays.
pub(crate) fn set_launcher(rte: Box<dyn Rte>) -> &'static dyn Rte {
    &**LAUNCHER.get_or_init(|| rte)
}
