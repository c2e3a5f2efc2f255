//! Detection of a process that was forked after MPI initialization.
//!
//! The child has a copy of the engine, but the peers know only the parent.
//! Messages of the child would be mistaken for messages of the parent, and vice versa.
//! So the child's first MPI call prints an error and ends the child.
//! Queries of the MPI state are allowed, since libraries call them at process exit.
//! The child may also abort the job.
#![allow(unsafe_code)]

use crate::{functions, phase};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The id of the process that has initialized MPI.
static PARENT: AtomicU32 = AtomicU32::new(0);

/// The MPI functions that a forked child may call.
const ANSWERED: [&str; 8] = [
    "MPI_Abort",
    "MPI_Initialized",
    "MPI_Finalized",
    "MPI_Get_version",
    "MPI_Get_library_version",
    "MPI_Error_class",
    "MPI_Error_string",
    "MPI_Get_processor_name",
];

/// The function called in the child directly after a fork.
static MARK: OnceLock<fn()> = OnceLock::new();

/// Calls `mark` in each process that is forked after this call.
/// `mark` only stores to atomics, as required in the child of a multithreaded process.
pub fn watch(mark: fn()) {
    PARENT.store(std::process::id(), Relaxed);
    if MARK.set(mark).is_ok() {
        // SAFETY: the handler reads a write-once cell, and calls a function with atomic stores.
        // If the registration fails, a forked child is not detected.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

extern "C" fn in_child() {
    if let Some(mark) = MARK.get() {
        mark();
    }
}

/// Checks a call of a forked child: ends the process, unless the function is in `ANSWERED`.
#[cold]
pub fn called(id: usize, world_place: Option<(u32, u32)>) {
    let name = functions::name(id);
    if ANSWERED.contains(&name) {
        return;
    }
    let parent = match world_place {
        Some((rank, size)) => format!("rank {rank} of {size} (process {})", PARENT.load(Relaxed)),
        None => format!("process {}", PARENT.load(Relaxed)),
    };
    let when = match phase::finalized() {
        true => "had finalized MPI",
        false => "had initialized MPI",
    };
    printable::eprintln!(
        "process {}: {name}: this process was forked from {parent} after that {when}; only the process that called MPI_Init may call MPI. \
         Let the child execute a program without MPI, start other MPI processes with MPI_Comm_spawn, or fork before MPI_Init. This process ends.",
        std::process::id()
    );
    // SAFETY: `_exit` runs no exit handlers.
    // The child's copies of the parent's handlers would communicate with the parent's peers.
    unsafe { libc::_exit(1) }
}
