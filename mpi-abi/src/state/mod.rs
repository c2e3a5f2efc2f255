//! Process-wide state: the only global data of the library.
//!
//! Protocol: every exported function holds a [`CallGuard`] while it runs. At `MPI_THREAD_MULTIPLE`, and until initialization has
//! chosen a lower level, that holds the global lock; below it the program guarantees that its calls do not overlap.
//! So one thread at a time accesses the state, and the tables need no locks of their own; but none may be borrowed while the
//! engine waits or a callback of the program runs.
//!
//! | file | subject |
//! |---|---|
//! | `tables` | objects by handle |
//! | `engines` | the engine, and what lives as long as the process |
//! | `jobs` | the jobs that this process is connected with |
//! | `program` | values of the program that belong to no handle |
//! | `unfinished` | operations whose handles were freed before they ended |
//! | `lookup` | the objects behind the arguments of a call |
//! | `entry` | the entry and the end of every call |
//! | `extras` | what every call does beside its work |
//! | `global_lock` | the lock of calls |
//! | `tracing` | the state page and the trace, on which calls are published |
#![allow(unsafe_code)]

mod engines;
mod entry;
mod extras;
mod global_lock;
mod jobs;
mod lookup;
mod program;
mod tables;
mod tracing;
mod unfinished;

pub use entry::{CallGuard, enter, leave};
pub(crate) use entry::{call_after_calls, set_world_place, world_place};
pub(crate) use extras::{
    admit_tool_threads, is_forked, is_staging, is_unlocked, is_untraced, mark_forked, set_staging,
    tool_has_threads, watch_loader,
};
pub use global_lock::{THREADS, yield_lock};
pub(crate) use global_lock::{locked, set_cores_for_threads, set_doorbell, set_locking};
pub(crate) use lookup::{
    comm, datatype, datatype_of, engine, file, group, not_running, op, session, win, with_win,
};
pub use lookup::{describe, errhandler, this_rank};
pub(crate) use tracing::{is_scripted, set_state_page, set_tracing};

use engines::Engines;
use jobs::Jobs;
use program::ProgramValues;
use tables::Tables;
use unfinished::Unfinished;

/// The state of the process.
pub struct State {
    engines: Engines,
    tables: Tables,
    unfinished: Unfinished,
    jobs: Jobs,
    program: ProgramValues,
}

impl State {
    /// The engine of the process, and what lives as long as it.
    #[inline(always)]
    pub(crate) fn engines(&self) -> &Engines {
        &self.engines
    }

    /// The objects of the process by handle.
    #[inline(always)]
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Operations whose handles were freed before they ended.
    #[inline(always)]
    pub(crate) fn unfinished(&self) -> &Unfinished {
        &self.unfinished
    }

    /// The jobs that this process is connected with.
    #[inline(always)]
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Values of the program that belong to no handle.
    #[inline(always)]
    pub(crate) fn program(&self) -> &ProgramValues {
        &self.program
    }
}

struct Global(State);

// SAFETY: one thread at a time is inside, by the protocol at the head of this module.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(State {
    engines: Engines::new(),
    tables: Tables::new(),
    unfinished: Unfinished::new(),
    jobs: Jobs::new(),
    program: ProgramValues::new(),
});

/// Returns the state; only functions that run inside a call may use it.
#[inline(always)]
pub(crate) fn state() -> &'static State {
    &GLOBAL.0
}
