//! Performance variables (section 15.3.7): counters of the engine, and the sessions and handles through which tools read them.
//!
//! Every variable is a 64-bit number of the whole process that is always maintained, at no cost, and can only be read.
//! Before `MPI_Init` and after `MPI_Finalize` it reads as zero, since there is no engine.

use crate::abi::*;
use crate::error::Failure;
use crate::state::state;
use mpi_core::Engine;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A performance variable.
pub struct Pvar {
    pub name: &'static str,
    /// The framework that maintains it, which is its category.
    pub category: &'static str,
    pub class: c_int,
    pub help: &'static str,
    read: fn() -> u64,
}

/// Reads a value of the engine; zero if there is none.
fn of_engine(look: impl FnOnce(&Engine) -> u64) -> u64 {
    let engine = state().engines().engine().try_borrow();
    let engine = engine.ok().and_then(|engine| engine.clone());
    engine.map_or(0, |engine| look(&engine))
}

/// The number of handles of a kind that the program holds.
macro_rules! handles {
    ($table:ident) => {
        || {
            state()
                .tables()
                .$table()
                .try_borrow()
                .map_or(0, |table| table.iter().count() as u64)
        }
    };
}

/// All variables, grouped by category, categories in the order of their names.
pub static PVARS: &[Pvar] = &[
    Pvar {
        name: "btl_base_foreign_processes",
        category: "btl",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Processes of other jobs that some communicator of this process names",
        read: || of_engine(|engine| engine.universe().foreign() as u64),
    },
    Pvar {
        name: "btl_base_stray_messages",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Active messages that came for a layer that has not asked for any",
        read: || of_engine(|engine| engine.pml().bml().handlers().strays()),
    },
    Pvar {
        name: "mpi_base_communicators",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Communicators that the program has made and not freed",
        read: handles!(comms),
    },
    Pvar {
        name: "mpi_base_datatypes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Datatypes that the program has made and not freed",
        read: handles!(types),
    },
    Pvar {
        name: "mpi_base_files",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Files that are open",
        read: handles!(files),
    },
    Pvar {
        name: "mpi_base_requests",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Request handles that the program holds",
        read: handles!(requests),
    },
    Pvar {
        name: "mpi_base_windows",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Windows that the program has made and not freed",
        read: handles!(wins),
    },
    Pvar {
        name: "pml_ob1_protocol_errors",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that were dropped because they were late or made no sense",
        read: || of_engine(|engine| engine.pml().protocol_errors()),
    },
    Pvar {
        name: "pml_ob1_requests_under_way",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Operations that have not completed, those inside collective operations too",
        read: || of_engine(|engine| engine.pml().requests().under_way().len() as u64),
    },
    Pvar {
        name: "pml_ob1_unexpected_bytes",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Bytes that messages of other processes take which no receive has asked for",
        read: || of_engine(|engine| engine.pml().unexpected_bytes().0),
    },
    Pvar {
        name: "pml_ob1_unexpected_bytes_max",
        category: "pml",
        class: MPI_T_PVAR_CLASS_HIGHWATERMARK,
        help: "The most bytes that such messages have ever taken",
        read: || of_engine(|engine| engine.pml().unexpected_bytes().1),
    },
];

/// Returns the index of the first variable of a category, and their number.
pub fn of_category(category: &str) -> (usize, usize) {
    let first = PVARS.iter().position(|pvar| pvar.category == category);
    let len = PVARS
        .iter()
        .filter(|pvar| pvar.category == category)
        .count();
    (first.unwrap_or(0), len)
}

/// The handles of each session, by number, with the index of the variable. Numbers are not reused.
#[derive(Default)]
struct Sessions {
    last: usize,
    handles: BTreeMap<usize, BTreeMap<usize, usize>>,
}

static SESSIONS: Mutex<Sessions> = Mutex::new(Sessions {
    last: 0,
    handles: BTreeMap::new(),
});

fn sessions() -> MutexGuard<'static, Sessions> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    /// Returns an unused number that is no predefined handle.
    fn next(&mut self) -> usize {
        self.last = self.last.max(MPI_T_PVAR_ALL_HANDLES.0) + 1;
        self.last
    }

    fn of(&mut self, session: MPI_T_pvar_session) -> Result<&mut BTreeMap<usize, usize>, Failure> {
        self.handles.get_mut(&session.0).ok_or_else(|| {
            let sentence = format!("{:#x} is no session of performance variables", session.0);
            Failure::new(MPI_T_ERR_INVALID_SESSION, sentence)
        })
    }
}

fn no_handle(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Failure {
    let sentence = format!(
        "{:#x} is not the handle of a performance variable in the session {:#x}",
        handle.0, session.0
    );
    Failure::new(MPI_T_ERR_INVALID_HANDLE, sentence)
}

pub fn begin_session() -> MPI_T_pvar_session {
    let mut sessions = sessions();
    let number = sessions.next();
    sessions.handles.insert(number, BTreeMap::new());
    MPI_T_pvar_session(number)
}

/// Ends a session with all of its handles.
pub fn end_session(session: MPI_T_pvar_session) -> Result<(), Failure> {
    let mut sessions = sessions();
    sessions.of(session)?;
    sessions.handles.remove(&session.0);
    Ok(())
}

/// Creates a handle of the variable at an index.
pub fn allocate(session: MPI_T_pvar_session, index: usize) -> Result<MPI_T_pvar_handle, Failure> {
    let mut sessions = sessions();
    sessions.of(session)?;
    let number = sessions.next();
    sessions.of(session)?.insert(number, index);
    Ok(MPI_T_pvar_handle(number))
}

pub fn release(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Result<(), Failure> {
    let mut sessions = sessions();
    let removed = sessions.of(session)?.remove(&handle.0);
    removed.map(drop).ok_or_else(|| no_handle(session, handle))
}

/// Returns the variable of a handle.
pub fn find(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
) -> Result<&'static Pvar, Failure> {
    let index = sessions().of(session)?.get(&handle.0).copied();
    let found = index.and_then(|index| PVARS.get(index));
    found.ok_or_else(|| no_handle(session, handle))
}

/// Returns true if the handle is `MPI_T_PVAR_ALL_HANDLES`; its session must exist.
pub fn means_all(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Result<bool, Failure> {
    sessions().of(session)?;
    Ok(handle == MPI_T_PVAR_ALL_HANDLES)
}

impl Pvar {
    /// Returns its current value.
    pub fn value(&self) -> u64 {
        (self.read)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_category_stand_together_under_names_of_their_own() {
        let mut names: Vec<&str> = PVARS.iter().map(|pvar| pvar.name).collect();
        names.sort_unstable();
        assert!(
            names
                .iter()
                .zip(PVARS)
                .all(|(name, pvar)| *name == pvar.name)
        );
        for pvar in PVARS {
            let (first, len) = of_category(pvar.category);
            let all = &PVARS[first..first + len];
            assert!(all.iter().all(|other| other.category == pvar.category));
            assert!(pvar.name.starts_with(pvar.category));
        }
    }
}
