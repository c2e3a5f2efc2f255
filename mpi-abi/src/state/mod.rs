//! Process-wide state: the only global data of the library.
//!
//! Protocol: every exported function holds a [`CallGuard`] while it runs.
//! At `MPI_THREAD_MULTIPLE`, and before initialization, the call also holds the global lock.
//! Below that level the program guarantees that its calls do not overlap.
//! So only one thread at a time accesses the state, and the tables need no locks.
//! No table may be borrowed while the engine waits or a callback of the program runs.
//!
//! | file | subject |
//! |---|---|
//! | `tables` | objects by handle |
//! | `engines` | the engine, and data with the lifetime of the process |
//! | `jobs` | the jobs to which this process is connected |
//! | `program` | state without a handle, such as keyvals and the attached buffer |
//! | `known_ops` | the loops of the pairs of operators and datatypes that have been used |
//! | `unfinished` | active operations whose handles were freed |
//! | `lookup` | the objects behind the arguments of a call |
//! | `entry` | entry and exit of every call |
//! | `extras` | extra actions of every call, such as tracing |
//! | `global_lock` | the global lock of calls |
//! | `tracing` | the state page and the trace |
#![allow(unsafe_code)]

mod engines;
mod entry;
mod extras;
mod global_lock;
mod jobs;
mod known_ops;
mod lookup;
mod program;
mod tables;
mod tracing;
mod unfinished;

pub use entry::{CallGuard, enter, enter_plainly, enter_with_extras, has_extras, in_lane, leave};
pub(crate) use entry::{call_after_calls, current_call, number, set_world_place, world_place};
pub(crate) use extras::{
    admit_tool_threads, have_lanes, is_forked, is_staging, is_unlocked, is_untraced, mark_forked,
    set_lanes, set_staging, tool_has_threads, watch_loader,
};
pub use global_lock::{THREADS, yield_lock};
pub(crate) use global_lock::{
    locked, locked_if_free, set_cores_for_threads, set_doorbell, set_locking,
};
pub(crate) use lookup::{
    comm, datatype, datatype_of, engine, file, group, not_running, op, session, win, with_win,
};
pub use lookup::{describe, errhandler, this_rank};
pub(crate) use tracing::{is_scripted, set_state_page, set_tracing};

use engines::Engines;
use jobs::Jobs;
pub(crate) use known_ops::COMMON;
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
    /// Returns the engine of the process, and data with the lifetime of the process.
    #[inline(always)]
    pub(crate) fn engines(&self) -> &Engines {
        &self.engines
    }

    /// Returns the tables of objects.
    #[inline(always)]
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the active operations whose handles were freed.
    #[inline(always)]
    pub(crate) fn unfinished(&self) -> &Unfinished {
        &self.unfinished
    }

    /// Returns the jobs to which this process is connected.
    #[inline(always)]
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Returns the state that no handle identifies, such as keyvals and the attached buffer.
    #[inline(always)]
    pub(crate) fn program(&self) -> &ProgramValues {
        &self.program
    }
}

struct Global(State);

// SAFETY: one thread at a time accesses the state, by the protocol in the head of this module.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(State {
    engines: Engines::new(),
    tables: Tables::new(),
    unfinished: Unfinished::new(),
    jobs: Jobs::new(),
    program: ProgramValues::new(),
});

/// Returns the state. Only functions that run within a call may use the state.
#[inline(always)]
pub(crate) fn state() -> &'static State {
    &GLOBAL.0
}
