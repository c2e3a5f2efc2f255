//! The recorder of MPI calls: hang report (`PORTCULLIS_HANG`), trace (`PORTCULLIS_TRACE`)
//! and exit skew of barriers (`PORTCULLIS_EXIT_SKEW`).
//!
//! # Protocol
//!
//! * Every rank of a job calls [`start`] after `MPI_Init`. For a report or trace, all ranks
//!   create a duplicate of `MPI_COMM_WORLD`, the list of host names and the node's state pages.
//! * [`record::around`] wraps each call: it stores the call and the awaited message in the
//!   state page, and appends the call to the event log ([`event_log`]).
//!   Communicators and requests are looked up by the library's handles.
//! * Every rank calls [`finish`] before `MPI_Finalize`.
//!   Rank 0 then receives the event logs and writes the file.
//!
//! If no feature is configured, each call costs one additional load.
//! Ranks of spawned jobs are not watched: they are numbered from 0 again, and have no trace file.
//!
//! | module | what it is |
//! |---|---|
//! | [`settings`] | the configuration |
//! | [`depth`] | detection of nested calls |
//! | [`call_args`] | the arguments of a call |
//! | [`record`] | recording of a call |
//! | [`arrivals`] | results of a call |
//! | [`waiting`] | the state page: what a call waits for |
//! | [`comms`] | communicators, with serial numbers that are equal at all members |
//! | [`pending`] | incomplete requests |
//! | [`event_log`] | the event log of this rank |
//! | [`exits`] | the exit skew of barriers |
//! | [`gather`] | the trace of all ranks |
//! | [`page`] | the state pages of a node |
//! | [`watcher`] | the thread that prints the report |
//! | [`functions`], [`constants`], [`fortran`] | the library's functions, constants and Fortran handles |

mod arrivals;
pub mod call_args;
mod comms;
mod constants;
pub mod depth;
mod event_log;
mod exits;
pub mod fortran;
mod functions;
mod gather;
mod page;
mod pending;
pub mod record;
mod settings;
mod waiting;
mod watcher;

use crate::names::NAMES;
use coll_hwbarr_foreign::library::{Handle, Library, done, of_program, place};
use comms::Comms;
use constants::LibraryConstants;
use event_log::EventLog;
use exits::Exits;
use fortran::Fortran;
use functions::Functions;
use gather::Wire;
use mpi_base::clock::now_ns;
use mpi_report::trace::clock::Clock;
use page::Pages;
use pending::Pendings;
use settings::Settings;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicU16};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use watcher::Watcher;

/// The recorder of this process.
pub struct Watch {
    pub library: &'static Library,
    functions: Functions,
    constants: LibraryConstants,
    pub fortran: Fortran,
    /// A duplicate of `MPI_COMM_WORLD` for the recorder's own messages.
    comm: Handle,
    group: Handle,
    rank: c_int,
    size: c_int,
    /// `hosts[i]` is the host of rank i.
    hosts: Arc<Vec<String>>,
    settings: Settings,
    /// `Some` if a report is configured.
    pages: Option<Pages>,
    /// `Some` if a trace is configured.
    event_log: Option<Mutex<EventLog>>,
    comms: Mutex<Comms>,
    pendings: Mutex<Pendings>,
    /// `Some` if the exit skew is configured.
    exits: Option<Mutex<Exits>>,
    clocks: Mutex<BTreeMap<String, Clock>>,
    watcher: Mutex<Option<Watcher>>,
    /// The polling call in the state page between two polls; 0 if there is none.
    polling: AtomicU16,
}

static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

/// Returns true if a recorder runs in this process.
#[inline(always)]
pub fn is_on() -> bool {
    !WATCH.load(Acquire).is_null()
}

/// Returns this process's recorder, which is never freed: other threads may use it.
#[allow(unsafe_code)]
fn get() -> Option<&'static Watch> {
    // SAFETY: the pointer is null or was leaked by `start`; the recorder is never freed.
    unsafe { WATCH.load(Acquire).as_ref() }
}

/// Returns the name of a call by its number.
fn call_name(call: u16) -> String {
    let name = usize::from(call)
        .checked_sub(1)
        .and_then(|at| NAMES.get(at));
    name.map_or_else(|| format!("MPI call {call}"), |name| (*name).to_owned())
}

/// Returns an identifier of the calling thread.
#[allow(unsafe_code)]
fn thread() -> u32 {
    thread_local!(static THREAD: u32 = {
        // SAFETY: `gettid` has no arguments and cannot fail.
        unsafe { libc::gettid() }.unsigned_abs()
    });
    THREAD.try_with(|thread| *thread).unwrap_or(0)
}

/// Starts the recorder after `MPI_Init` or `MPI_Init_thread`; `call` is the function's number.
pub fn start(call: u16, began: u64) {
    if is_on() {
        return;
    }
    let settings = match Settings::read() {
        Ok(None) => return,
        Ok(Some(settings)) => settings,
        Err(sentence) => return printable::eprintln!("portcullis: {sentence}; nothing is watched"),
    };
    match of_program()
        .map_err(str::to_owned)
        .and_then(|library| Watch::open(library, settings))
    {
        Ok(None) => {}
        Ok(Some(watch)) => {
            if let Some(mut event_log) = watch.event_log() {
                event_log.call(call, thread(), began, now_ns());
            }
            WATCH.store(Box::into_raw(Box::new(watch)), Release);
            coll_hwbarr_foreign::wire::notify(wire);
        }
        Err(reason) => printable::eprintln!("portcullis: the ranks cannot be watched: {reason}"),
    }
}

/// Records the time at which this rank has left a barrier on `MPI_COMM_WORLD`.
pub fn left_barrier(at: u64) {
    if let Some(exits) = get().and_then(|watch| watch.exits.as_ref()) {
        lock(exits).add(at);
    }
}

/// Returns the current time if the exit skew is configured.
pub fn exit_time() -> Option<u64> {
    get()?.exits.as_ref().map(|_| now_ns())
}

/// Records that a wire of the hardware barrier was driven or has changed.
fn wire(wire: u32, entered: u64, released: u64) {
    let Some(watch) = get() else {
        return;
    };
    if let Some(pages) = &watch.pages {
        pages.mine().set_barrier_wire(wire, entered, released);
    }
    if let Some(mut event_log) = watch.event_log() {
        event_log.wire(wire, entered, released, now_ns());
    }
}

/// Guard of `MPI_Finalize` after the recorder has stopped.
pub struct CallEnd(Option<(&'static Watch, u16)>);

/// Stops the recorder before `MPI_Finalize`; `call` is that function's number.
#[allow(unsafe_code)]
pub fn finish(call: u16) -> CallEnd {
    // SAFETY: the pointer is null or was leaked by `start`; the recorder is never freed.
    let Some(watch) = (unsafe { WATCH.swap(null_mut(), AcqRel).as_ref() }) else {
        return CallEnd(None);
    };
    let began = now_ns();
    watch.state().enters(call);
    if let Err(reason) = watch.compare_clocks() {
        printable::eprintln!("portcullis: {reason}");
    }
    if let Some(exits) = &watch.exits {
        let (own, clocks) = (lock(exits).take(), watch.clocks().clone());
        if let Err(reason) = exits::report(&watch.wire(), own, &watch.hosts, &clocks) {
            printable::eprintln!("portcullis: {reason}");
        }
    }
    if let Some(path) = &watch.settings.trace {
        let played = watch.event_log().map(|mut event_log| {
            event_log.call(call, thread(), began, now_ns());
            event_log.take()
        });
        if let Err(reason) = gather::write(watch, played.unwrap_or_default(), path) {
            printable::eprintln!("portcullis: {reason}");
        }
    }
    watch.close();
    CallEnd(Some((watch, call)))
}

impl Drop for CallEnd {
    fn drop(&mut self) {
        if let Some((watch, call)) = self.0 {
            if let Some(pages) = &watch.pages {
                pages.mine().leave(call);
                pages.mine().finalized();
            }
            drop(lock(&watch.watcher).take());
        }
    }
}

/// Creates the state pages and, in the first rank of each node, the watcher.
/// Rank 0 first checks that the trace file is writable.
/// Every rank of the job calls this function.
fn watched_states(
    wire: &Wire<'_>,
    functions: &Functions,
    hosts: &Arc<Vec<String>>,
    settings: &Settings,
) -> Result<(Option<Pages>, Option<Watcher>), String> {
    if let Some(path) = settings.trace.as_ref().filter(|_| wire.rank == 0) {
        gather::try_to_write(path)?;
    }
    if settings.patience.is_none() {
        return Ok((None, None));
    }
    let pages = Pages::open(wire.library, functions, wire.comm, wire.rank)?;
    pages
        .mine()
        .start(std::process::id(), wire.rank.unsigned_abs());
    pages.mine().run();
    let watcher = Watcher::start(&pages, hosts, settings)?;
    Ok((Some(pages), watcher))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Creates the recorder, or returns `None` for ranks of spawned jobs.
    /// Every rank of the job calls this function.
    #[allow(unsafe_code)]
    fn open(library: &'static Library, settings: Settings) -> Result<Option<Watch>, String> {
        let functions = Functions::find(library)?;
        let constants = LibraryConstants::of(library)?;
        let mut parent = place();
        // SAFETY: `parent` is a live local of the type that the function writes.
        let code = unsafe { (functions.comm_get_parent)(&raw mut parent) };
        done(code, "MPI_Comm_get_parent")?;
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        let world = library.constants.comm_world;
        // SAFETY: MPI is initialised, and `rank` is a live local.
        let code = unsafe { (library.functions.comm_rank)(world, &raw mut rank) };
        done(code, "MPI_Comm_rank")?;
        // SAFETY: MPI is initialised, and `size` is a live local.
        let code = unsafe { (library.functions.comm_size)(world, &raw mut size) };
        done(code, "MPI_Comm_size")?;
        if parent != constants.comm_null {
            if rank == 0 {
                printable::eprintln!("portcullis: ranks of a spawned job are not watched");
            }
            return Ok(None);
        }
        let (mut comm, mut group) = (place(), place());
        // SAFETY: MPI is initialised, and `comm` is a live local.
        let code = unsafe { (library.functions.comm_dup)(world, &raw mut comm) };
        done(code, "MPI_Comm_dup")?;
        // SAFETY: `comm` was just created, and `group` is a live local.
        let code = unsafe { (functions.comm_group)(comm, &raw mut group) };
        done(code, "MPI_Comm_group")?;
        let wire = Wire {
            library,
            comm,
            rank,
            size,
        };
        let hosts = Arc::new(wire.hosts()?);
        let mut clocks = BTreeMap::new();
        if settings.trace.is_some() || settings.exit_skew {
            wire.compare(&hosts, &mut clocks)?;
        }
        let seen = watched_states(&wire, &functions, &hosts, &settings);
        if !wire.agree(seen.is_ok())? {
            // A failed rank returns its error; the other ranks start no recorder.
            return seen.map(|_| None);
        }
        let (pages, watcher) = seen?;
        let is_traced = settings.trace.is_some();
        let watch = Watch {
            library,
            functions,
            constants,
            fortran: Fortran::of(library),
            comm,
            group,
            rank,
            size,
            hosts,
            pages,
            event_log: is_traced.then(|| Mutex::new(EventLog::new(settings.kept))),
            exits: settings.exit_skew.then(Mutex::default),
            settings,
            comms: Mutex::default(),
            pendings: Mutex::default(),
            clocks: Mutex::new(clocks),
            watcher: Mutex::new(watcher),
            polling: AtomicU16::new(0),
        };
        watch.register_predefined();
        Ok(Some(watch))
    }

    fn wire(&self) -> Wire<'_> {
        Wire {
            library: self.library,
            comm: self.comm,
            rank: self.rank,
            size: self.size,
        }
    }

    /// Compares the clocks before `MPI_Finalize`, if they are needed;
    /// every rank calls this function.
    fn compare_clocks(&self) -> Result<(), String> {
        match self.settings.trace.is_some() || self.exits.is_some() {
            true => self.wire().compare(&self.hosts, &mut self.clocks()),
            false => Ok(()),
        }
    }

    /// Frees the recorder's communicator and group.
    #[allow(unsafe_code)]
    fn close(&self) {
        let (mut comm, mut group) = (self.comm, self.group);
        // SAFETY: this recorder created both handles and does not use them afterwards.
        unsafe {
            (self.functions.group_free)(&raw mut group);
            (self.functions.comm_free)(&raw mut comm);
        }
    }

    fn comms(&self) -> MutexGuard<'_, Comms> {
        lock(&self.comms)
    }

    fn pendings(&self) -> MutexGuard<'_, Pendings> {
        lock(&self.pendings)
    }

    fn clocks(&self) -> MutexGuard<'_, BTreeMap<String, Clock>> {
        lock(&self.clocks)
    }

    fn event_log(&self) -> Option<MutexGuard<'_, EventLog>> {
        self.event_log.as_ref().map(lock)
    }
}
