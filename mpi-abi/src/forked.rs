//! A process that was forked from one that has initialized MPI: it has a copy of the engine, but the peers know its parent alone.
//!
//! Messages of the child would be taken for the parent's and the other way round, so the child's first MPI call ends the child with a
//! sentence. Calls that only ask in which state MPI is are answered, since libraries make them when a process exits, and a child may end the job.
#![allow(unsafe_code)]

use crate::{functions, phase};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The process that has initialized MPI.
static PARENT: AtomicU32 = AtomicU32::new(0);

/// What a forked child may call.
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

/// What a forked child calls first.
static MARK: OnceLock<fn()> = OnceLock::new();

/// From now on a forked child calls `mark`, which only stores to atomics, as the child of a process with threads must.
pub fn watch(mark: fn()) {
    PARENT.store(std::process::id(), Relaxed);
    if MARK.set(mark).is_ok() {
        // SAFETY: the handler reads a cell that is set for good, and calls a function that stores to atomics.
        // If it cannot be registered, a child is as little known as before.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

extern "C" fn in_child() {
    if let Some(mark) = MARK.get() {
        mark();
    }
}

/// A call of a forked child begins: the process ends, unless the call is harmless.
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
    // SAFETY: ends the process without the handlers of the parent, whose copies in the child must not talk to the parent's peers.
    unsafe { libc::_exit(1) }
}
