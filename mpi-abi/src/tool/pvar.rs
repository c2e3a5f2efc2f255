//! Performance variables (section 15.3.7): counters of the engine, and the sessions and handles through which tools read them.
//!
//! One table, [`PVARS`], serves the interface, `mpi-info --pvars` and the documents.
//! Most variables are 64-bit numbers that are always maintained, at no cost. Those of a communicator's peers are arrays that are counted from the first
//! `MPI_T_pvar_start` of such a variable on; before, no message pays for them.
//! Before `MPI_Init` and after `MPI_Finalize` variables read as zero, since there is no engine.

use crate::abi::*;
use crate::error::Failure;
use crate::state::{self, state};
use mpi_core::btl::Traffic;
use mpi_core::comm::Comm;
use mpi_core::matrix::{Amount, Kind, Matrix};
use mpi_core::{Engine, RunObserver};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A performance variable.
pub struct Pvar {
    pub name: &'static str,
    /// The framework that maintains it, which is its category.
    pub category: &'static str,
    pub class: c_int,
    pub help: &'static str,
    read: Read,
}

/// Where a variable's value comes from.
enum Read {
    /// A number of the process.
    Process(fn() -> u64),
    /// A number of a communicator.
    Comm(fn(&Comm) -> u64),
    /// A number for each rank of a communicator, counted while the handle is started.
    Peers(Kind, fn(Amount) -> u64),
}

/// Reads a value of the engine; zero if there is none.
fn of_engine(look: impl FnOnce(&Engine) -> u64) -> u64 {
    let engine = state().engines().engine().try_borrow();
    let engine = engine.ok().and_then(|engine| engine.clone());
    engine.map_or(0, |engine| look(&engine))
}

/// Reads the counts of transports that count: messages accepted and delivered.
fn of_traffic(look: fn(u64, u64) -> u64) -> u64 {
    of_engine(|engine| match engine.pml().bml().traffic() {
        Traffic::Counted { sent, received } => look(sent, received),
        Traffic::InMemory | Traffic::Uncounted => 0,
    })
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
        read: Read::Process(|| of_engine(|engine| engine.universe().foreign() as u64)),
    },
    Pvar {
        name: "btl_base_messages_received",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that transports between hosts have delivered",
        read: Read::Process(|| of_traffic(|_, received| received)),
    },
    Pvar {
        name: "btl_base_messages_sent",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that transports between hosts have accepted",
        read: Read::Process(|| of_traffic(|sent, _| sent)),
    },
    Pvar {
        name: "btl_base_stray_messages",
        category: "btl",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Active messages that came for a layer that has not asked for any",
        read: Read::Process(|| of_engine(|engine| engine.pml().bml().handlers().strays())),
    },
    Pvar {
        name: "mpi_base_calls",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Calls of MPI that have begun, without those that only return what is known",
        read: Read::Process(|| of_engine(|engine| engine.state().calls().div_ceil(2))),
    },
    Pvar {
        name: "mpi_base_communicators",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Communicators that the program has made and not freed",
        read: Read::Process(handles!(comms)),
    },
    Pvar {
        name: "mpi_base_datatypes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Datatypes that the program has made and not freed",
        read: Read::Process(handles!(types)),
    },
    Pvar {
        name: "mpi_base_files",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Files that are open",
        read: Read::Process(handles!(files)),
    },
    Pvar {
        name: "mpi_base_matrix_collective_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that collective operations bring to each rank of a communicator",
        read: Read::Peers(Kind::Collective, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_matrix_collective_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what collective operations bring to each rank of a communicator",
        read: Read::Peers(Kind::Collective, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_matrix_one_sided_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that one-sided accesses write to each rank of a communicator",
        read: Read::Peers(Kind::OneSided, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_matrix_one_sided_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what one-sided accesses write to each rank of a communicator",
        read: Read::Peers(Kind::OneSided, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_matrix_p2p_bytes",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_AGGREGATE,
        help: "Bytes that messages bring to each rank of a communicator",
        read: Read::Peers(Kind::P2p, |amount| amount.bytes),
    },
    Pvar {
        name: "mpi_base_matrix_p2p_messages",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Number of messages or accesses: what messages bring to each rank of a communicator",
        read: Read::Peers(Kind::P2p, |amount| amount.messages),
    },
    Pvar {
        name: "mpi_base_progress_steps",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Polls during waits that have found something",
        read: Read::Process(|| of_engine(|engine| engine.state().snapshot().progress)),
    },
    Pvar {
        name: "mpi_base_requests",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Request handles that the program holds",
        read: Read::Process(handles!(requests)),
    },
    Pvar {
        name: "mpi_base_waits_asleep",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Waits that lasted so long that the rank has slept",
        read: Read::Process(|| of_engine(|engine| engine.state().snapshot().quiet.waits)),
    },
    Pvar {
        name: "mpi_base_windows",
        category: "mpi",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Windows that the program has made and not freed",
        read: Read::Process(handles!(wins)),
    },
    Pvar {
        name: "pml_ob1_posted_receives",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Receives on a communicator that no message has matched",
        read: Read::Comm(|comm| comm.p2p().queue_lengths().0 as u64),
    },
    Pvar {
        name: "pml_ob1_protocol_errors",
        category: "pml",
        class: MPI_T_PVAR_CLASS_COUNTER,
        help: "Messages that were dropped because they were late or made no sense",
        read: Read::Process(|| of_engine(|engine| engine.pml().protocol_errors())),
    },
    Pvar {
        name: "pml_ob1_requests_under_way",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Operations that have not completed, those inside collective operations too",
        read: Read::Process(|| {
            of_engine(|engine| engine.pml().requests().under_way().len() as u64)
        }),
    },
    Pvar {
        name: "pml_ob1_unexpected_bytes",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Bytes that messages of other processes take which no receive has asked for",
        read: Read::Process(|| of_engine(|engine| engine.pml().unexpected_bytes().0)),
    },
    Pvar {
        name: "pml_ob1_unexpected_bytes_max",
        category: "pml",
        class: MPI_T_PVAR_CLASS_HIGHWATERMARK,
        help: "The most bytes that such messages have ever taken",
        read: Read::Process(|| of_engine(|engine| engine.pml().unexpected_bytes().1)),
    },
    Pvar {
        name: "pml_ob1_unexpected_messages",
        category: "pml",
        class: MPI_T_PVAR_CLASS_LEVEL,
        help: "Messages on a communicator that no receive has asked for",
        read: Read::Comm(|comm| comm.p2p().queue_lengths().1 as u64),
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

/// A handle of a variable.
#[derive(Clone, Default)]
struct Handle {
    /// The variable's index.
    index: usize,
    /// The communicator that it is bound to.
    comm: Option<MPI_Comm>,
    is_started: bool,
    /// For an array: the counts when it was started, and what was counted between earlier starts and stops.
    base: Vec<u64>,
    kept: Vec<u64>,
}

/// The handles of each session, by number. Numbers are not reused.
#[derive(Default)]
struct Sessions {
    last: usize,
    handles: BTreeMap<usize, BTreeMap<usize, Handle>>,
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

    fn of(&mut self, session: MPI_T_pvar_session) -> Result<&mut BTreeMap<usize, Handle>, Failure> {
        self.handles.get_mut(&session.0).ok_or_else(|| {
            let sentence = format!("{:#x} is no session of performance variables", session.0);
            Failure::new(MPI_T_ERR_INVALID_SESSION, sentence)
        })
    }

    fn handle(
        &mut self,
        session: MPI_T_pvar_session,
        handle: MPI_T_pvar_handle,
    ) -> Result<&mut Handle, Failure> {
        let found = self.of(session)?.get_mut(&handle.0);
        found.ok_or_else(|| no_handle(session, handle))
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

/// Creates a handle of the variable at an index, bound to a communicator if the variable is. Also returns the number of its values.
pub fn allocate(
    session: MPI_T_pvar_session,
    index: usize,
    comm: Option<MPI_Comm>,
) -> Result<(MPI_T_pvar_handle, usize), Failure> {
    let count = match PVARS.get(index) {
        Some(pvar) => pvar.count(comm)?,
        None => 1,
    };
    let mut sessions = sessions();
    sessions.of(session)?;
    let number = sessions.next();
    let handle = Handle {
        index,
        comm,
        kept: vec![0; count],
        base: vec![0; count],
        is_started: false,
    };
    sessions.of(session)?.insert(number, handle);
    Ok((MPI_T_pvar_handle(number), count))
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
    let index = sessions().handle(session, handle)?.index;
    PVARS.get(index).ok_or_else(|| no_handle(session, handle))
}

/// Returns the handles that a call means: one, or with `MPI_T_PVAR_ALL_HANDLES` those of the session that can be started, stopped and reset.
pub fn meant(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
) -> Result<Vec<MPI_T_pvar_handle>, Failure> {
    let mut sessions = sessions();
    let all = sessions.of(session)?;
    if handle != MPI_T_PVAR_ALL_HANDLES {
        return Ok(vec![handle]);
    }
    let counted = all.iter().filter(|(_, handle)| {
        PVARS
            .get(handle.index)
            .is_some_and(|pvar| !pvar.is_continuous())
    });
    Ok(counted
        .map(|(number, _)| MPI_T_pvar_handle(*number))
        .collect())
}

/// What a call does with a counted array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Start,
    Stop,
    Reset,
}

/// Starts, stops or resets an array; the handle belongs to one.
pub fn change(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    change: Change,
) -> Result<(), Failure> {
    let pvar = find(session, handle)?;
    if change == Change::Start {
        begin_to_count()?;
    }
    let comm = sessions().handle(session, handle)?.comm;
    let now = pvar.counts(comm)?;
    let mut sessions = sessions();
    let handle = sessions.handle(session, handle)?;
    match change {
        Change::Start if !handle.is_started => (handle.base, handle.is_started) = (now, true),
        Change::Stop if handle.is_started => {
            handle.kept = handle.counted(&now);
            handle.is_started = false;
        }
        Change::Reset => {
            handle.kept.fill(0);
            handle.base = now;
        }
        Change::Start | Change::Stop => {}
    }
    Ok(())
}

/// Returns the values of a handle.
pub fn read(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Result<Vec<u64>, Failure> {
    let pvar = find(session, handle)?;
    let copy = sessions().handle(session, handle)?.clone();
    match pvar.read {
        Read::Process(read) => Ok(vec![read()]),
        Read::Comm(read) => Ok(vec![read(&communicator(copy.comm)?)]),
        Read::Peers(..) => Ok(copy.counted(&pvar.counts(copy.comm)?)),
    }
}

impl Handle {
    /// Returns what was counted while the handle was started.
    fn counted(&self, now: &[u64]) -> Vec<u64> {
        let since = |(kept, (now, base)): (&u64, (&u64, &u64))| match self.is_started {
            true => kept.saturating_add(now.saturating_sub(*base)),
            false => *kept,
        };
        self.kept
            .iter()
            .zip(now.iter().zip(&self.base))
            .map(since)
            .collect()
    }
}

/// Returns the communicator of a bound handle.
fn communicator(comm: Option<MPI_Comm>) -> Result<Comm, Failure> {
    let null = || Failure::new(MPI_T_ERR_INVALID, "obj_handle is a null pointer");
    let comm = comm.ok_or_else(null)?;
    let object = state::comm(comm).map_err(|error| error.with_code(MPI_T_ERR_INVALID_HANDLE))?;
    Ok(object.comm.clone())
}

/// Counts messages from now on, if no message was counted before.
fn begin_to_count() -> Result<(), Failure> {
    let engine = state::engine()?;
    if engine.observer().is_none() {
        engine.set_observer(RunObserver::counting((engine.me(), engine.size())));
    }
    match engine.observer().and_then(RunObserver::matrix) {
        Some(_) => Ok(()),
        None => Err(Failure::new(
            MPI_T_ERR_PVAR_NO_STARTSTOP,
            "the run is traced, recorded or replayed, and messages are not counted beside that; mpirun --matrix counts them beside a trace",
        )),
    }
}

impl Pvar {
    /// Returns true if it is kept all the time, so that it cannot be started or stopped.
    pub fn is_continuous(&self) -> bool {
        !matches!(self.read, Read::Peers(..))
    }

    /// Returns true if its handles are bound to a communicator.
    pub fn is_of_comm(&self) -> bool {
        !matches!(self.read, Read::Process(_))
    }

    /// Returns the number of its values for this communicator.
    fn count(&self, comm: Option<MPI_Comm>) -> Result<usize, Failure> {
        Ok(match self.read {
            Read::Process(_) => 1,
            Read::Comm(_) => communicator(comm).map(|_| 1)?,
            Read::Peers(..) => communicator(comm)?.peers().size() as usize,
        })
    }

    /// Returns the counts of all ranks of a communicator so far.
    fn counts(&self, comm: Option<MPI_Comm>) -> Result<Vec<u64>, Failure> {
        let Read::Peers(kind, amount) = self.read else {
            return Ok(Vec::new());
        };
        let comm = communicator(comm)?;
        let matrix = comm.engine().observer().and_then(RunObserver::matrix);
        let sent = |matrix: &Rc<Matrix>, proc| amount(matrix.sent(kind, proc));
        let peers = comm.peers().iter();
        Ok(peers
            .map(|proc| matrix.map_or(0, |matrix| sent(matrix, proc)))
            .collect())
    }

    /// Returns its current value, if it is a number of the process.
    pub fn value(&self) -> Option<u64> {
        match self.read {
            Read::Process(read) => Some(read()),
            _ => None,
        }
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
