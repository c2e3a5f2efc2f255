//! The phase of MPI in this process (before, during or after MPI), and its launcher.
//!
//! Any thread may query phase and launcher at any time, so both are atomic.
//! Only initialization and finalization change phase and launcher.

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

/// True if the job continues after the death of a rank.
static FAULT_TOLERANT: AtomicBool = AtomicBool::new(false);

/// The launcher, which exists until process exit, because an abort needs the launcher.
static LAUNCHER: OnceLock<Box<dyn Rte>> = OnceLock::new();

/// Returns true after initialization, and also after finalization.
pub fn initialized() -> bool {
    PHASE.load(Relaxed) != BEFORE
}

pub fn finalized() -> bool {
    PHASE.load(Relaxed) == AFTER
}

/// Returns true between initialization and finalization of the world model.
pub(crate) fn running() -> bool {
    PHASE.load(Relaxed) == RUNNING
}

/// Records that the calling thread has initialized MPI with this thread level.
pub(crate) fn begin(level: c_int) {
    THREAD_LEVEL.store(level, Relaxed);
    MAIN_THREAD.store(crate::lock::me(), Relaxed);
    PHASE.store(RUNNING, Relaxed);
}

/// Records that the process has finalized MPI.
pub(crate) fn end() {
    PHASE.store(AFTER, Relaxed);
}

/// Sets whether the job continues after the death of a rank.
pub(crate) fn set_fault_tolerant(is_fault_tolerant: bool) {
    FAULT_TOLERANT.store(is_fault_tolerant, Relaxed);
}

/// Returns true if the job continues after the death of a rank.
pub(crate) fn is_fault_tolerant() -> bool {
    FAULT_TOLERANT.load(Relaxed)
}

/// Returns the thread level provided by initialization.
pub fn thread_level() -> c_int {
    THREAD_LEVEL.load(Relaxed)
}

/// Returns true if the calling thread has initialized MPI.
pub fn is_main_thread() -> bool {
    MAIN_THREAD.load(Relaxed) == crate::lock::me()
}

/// Returns the launcher, or `None` before initialization.
pub fn launcher() -> Option<&'static dyn Rte> {
    LAUNCHER.get().map(|rte| &**rte)
}

/// Stores the launcher, unless a launcher is already stored.
pub(crate) fn set_launcher(rte: Box<dyn Rte>) -> &'static dyn Rte {
    &**LAUNCHER.get_or_init(|| rte)
}
