//! The optional progress thread (`osc_am_progress_thread`), which polls during computation.
//!
//! Without this thread, a one-sided access by messages waits until its target is in an MPI call.
//! The progress thread polls the engine every [`PAUSE`].
//! The thread takes the global lock, so every MPI call takes the lock while this thread runs.
//! The thread ends when the engine is parked, and never runs a signal handler of the program.

#![allow(unsafe_code)]

use crate::error::Failure;
use crate::state::{self, state};
use crate::thrown;
use mpi_base::param::{Level, Param};
use mpi_core::Engine;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Enables the progress thread.
pub static PROGRESS_THREAD: Param<bool> = Param::new(
    "osc",
    "am",
    "progress_thread",
    "false",
    Level::USER,
    "Whether a thread of each rank answers one-sided accesses of other nodes while the program computes; calls of all ranks take longer then",
);

/// The sleep between two polls. A poll without a message costs a few microseconds.
const PAUSE: Duration = Duration::from_micros(100);

static RUNS: AtomicBool = AtomicBool::new(false);

/// Returns true if the user enabled the thread and the run is not recorded or replayed.
pub fn is_wanted(engine: &Engine) -> bool {
    // Record and replay require that the calls of a process have a fixed order.
    engine.script().is_none() && engine.params().get(&PROGRESS_THREAD).unwrap_or(false)
}

/// Starts the thread, unless it is running. Calls must already take the lock.
pub fn start() -> Result<(), Failure> {
    if RUNS.swap(true, Relaxed) {
        return Ok(());
    }
    let started = std::thread::Builder::new()
        .name("mpi-progress".into())
        .spawn(run);
    started.map(drop).map_err(|e| {
        RUNS.store(false, Relaxed);
        Failure::new(
            crate::abi::MPI_ERR_OTHER,
            format!("the thread that osc_am_progress_thread asks for cannot start: {e}"),
        )
    })
}

fn run() {
    block_signals();
    loop {
        std::thread::sleep(PAUSE);
        let goes_on = state::locked(|| {
            let engine = state().engines().engine().borrow().clone();
            let rests = engine.is_none();
            if let Some(engine) = engine {
                engine.poll_once();
                thrown::end_if_kept();
            }
            if rests {
                RUNS.store(false, Relaxed);
            }
            !rests
        });
        if !goes_on {
            return;
        }
    }
}

/// Blocks all signals in this thread, so that handlers run in the program's threads.
fn block_signals() {
    // SAFETY: both calls use a local signal set and the mask of this thread.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}
