//! What ranks do, written down: for a report of a job that hangs (`PORTCULLIS_HANG`), and for a trace (`PORTCULLIS_TRACE`).
//!
//! # Protocol
//!
//! * [`start`] is called behind `MPI_Init` by every rank of a job. Where the user wants anything, all ranks meet: a duplicate of the
//!   world, the ranks' hosts, the node's state pages.
//! * [`record::around`] is called around each call: it tells the state page what the call is and what it waits for, and the tape
//!   what it was. Handles stay the library's; they are words by which communicators and requests are found again.
//! * [`finish`] is called in front of `MPI_Finalize` by every rank: the tapes go to rank 0, which writes the file.
//!
//! What is not asked for costs a look at one word in each call.
//! Ranks of jobs that were spawned are not watched: they have numbers of their own, and no file.
//!
//! | module | what it is |
//! |---|---|
//! | [`settings`] | what the user wants |
//! | [`depth`] | calls inside calls |
//! | [`said`] | what a call says of itself |
//! | [`record`] | a call is written down |
//! | [`arrivals`] | what a call has received or completed |
//! | [`waiting`] | what a call waits for, on the state page |
//! | [`comms`] | communicators, by numbers that all members know |
//! | [`pending`] | requests under way |
//! | [`tape`] | what this rank did |
//! | [`gather`] | the trace of all ranks |
//! | [`page`] | the state pages of a node |
//! | [`watcher`] | the thread that makes the report |
//! | [`functions`], [`words`], [`fortran`] | the library's functions, constants and handles of Fortran |

mod arrivals;
mod comms;
pub mod depth;
pub mod fortran;
mod functions;
mod gather;
mod page;
mod pending;
pub mod record;
pub mod said;
mod settings;
mod tape;
mod waiting;
mod watcher;
mod words;

use crate::names::NAMES;
use coll_hwbarr_foreign::library::{Handle, Library, done, of_program, place};
use comms::Comms;
use fortran::Fortran;
use functions::Functions;
use gather::Wire;
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
use tape::Tape;
use watcher::Watcher;
use words::Words;

/// All of it, in a process that is watched.
pub struct Watch {
    pub library: &'static Library,
    functions: Functions,
    words: Words,
    pub fortran: Fortran,
    /// A duplicate of the world, and the world's group.
    comm: Handle,
    group: Handle,
    rank: c_int,
    size: c_int,
    /// The host of each rank.
    hosts: Arc<Vec<String>>,
    settings: Settings,
    /// Where a report is wanted.
    pages: Option<Pages>,
    /// Where a trace is wanted.
    tape: Option<Mutex<Tape>>,
    comms: Mutex<Comms>,
    pendings: Mutex<Pendings>,
    clocks: Mutex<BTreeMap<String, Clock>>,
    watcher: Mutex<Option<Watcher>>,
    /// The call that looks again and again and that the state page shows between its calls; 0 if there is none.
    polling: AtomicU16,
}

static WATCH: AtomicPtr<Watch> = AtomicPtr::new(null_mut());

/// Whether this process is watched.
#[inline(always)]
pub fn is_on() -> bool {
    !WATCH.load(Acquire).is_null()
}

/// What watches this process; it stays for ever, since other threads may be in it.
#[allow(unsafe_code)]
fn get() -> Option<&'static Watch> {
    // SAFETY: it was leaked by `start`.
    unsafe { WATCH.load(Acquire).as_ref() }
}

/// The clock of the state page and the tape, CLOCK_MONOTONIC.
#[allow(unsafe_code)]
pub fn now() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for the time; this clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The name of a call by its number.
fn call_name(call: u16) -> String {
    let name = usize::from(call)
        .checked_sub(1)
        .and_then(|at| NAMES.get(at));
    name.map_or_else(|| format!("MPI call {call}"), |name| (*name).to_owned())
}

/// Tells the threads of this process apart.
#[allow(unsafe_code)]
fn thread() -> u32 {
    thread_local!(static THREAD: u32 = {
        // SAFETY: it takes nothing and cannot fail.
        unsafe { libc::gettid() }.unsigned_abs()
    });
    THREAD.try_with(|thread| *thread).unwrap_or(0)
}

/// MPI has begun, in a call of this number.
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
            if let Some(mut tape) = watch.tape() {
                tape.call(call, thread(), began, now());
            }
            WATCH.store(Box::into_raw(Box::new(watch)), Release);
            coll_hwbarr_foreign::wire::hear(wire);
        }
        Err(reason) => printable::eprintln!("portcullis: the ranks cannot be watched: {reason}"),
    }
}

/// The wire of the hardware barrier was driven, or was seen to have changed.
fn wire(wire: u32, entered: u64, released: u64) {
    let Some(watch) = get() else {
        return;
    };
    if let Some(pages) = &watch.pages {
        pages.mine().gate(wire, entered, released);
    }
    if let Some(mut tape) = watch.tape() {
        tape.wire(wire, entered, released, now());
    }
}

/// Watching has ended, and `MPI_Finalize` runs until this is dropped.
pub struct Ending(Option<(&'static Watch, u16)>);

/// MPI is about to end, by a call of this number.
#[allow(unsafe_code)]
pub fn finish(call: u16) -> Ending {
    // SAFETY: it was leaked by `start`.
    let Some(watch) = (unsafe { WATCH.swap(null_mut(), AcqRel).as_ref() }) else {
        return Ending(None);
    };
    let began = now();
    watch.enters(call);
    if let Some(path) = &watch.settings.trace {
        let played = watch.tape().map(|mut tape| {
            tape.call(call, thread(), began, now());
            tape.take()
        });
        if let Err(reason) = gather::write(watch, played.unwrap_or_default(), path) {
            printable::eprintln!("portcullis: {reason}");
        }
    }
    watch.close();
    Ending(Some((watch, call)))
}

impl Drop for Ending {
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

/// Whether the file can be written, the state pages and, in one rank of each node, the watcher; every rank of the job calls.
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
    /// Every rank of the job calls; nothing for ranks that were spawned.
    #[allow(unsafe_code)]
    fn open(library: &'static Library, settings: Settings) -> Result<Option<Watch>, String> {
        let functions = Functions::find(library)?;
        let words = Words::of(library)?;
        let mut parent = place();
        // SAFETY: a place for a handle, here and below places for the answers.
        let code = unsafe { (functions.comm_get_parent)(&raw mut parent) };
        done(code, "MPI_Comm_get_parent")?;
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        let world = library.constants.comm_world;
        // SAFETY: as above.
        let code = unsafe { (library.functions.comm_rank)(world, &raw mut rank) };
        done(code, "MPI_Comm_rank")?;
        // SAFETY: as above.
        let code = unsafe { (library.functions.comm_size)(world, &raw mut size) };
        done(code, "MPI_Comm_size")?;
        if parent != words.comm_null {
            if rank == 0 {
                printable::eprintln!("portcullis: ranks of a spawned job are not watched");
            }
            return Ok(None);
        }
        let (mut comm, mut group) = (place(), place());
        // SAFETY: as above.
        let code = unsafe { (library.functions.comm_dup)(world, &raw mut comm) };
        done(code, "MPI_Comm_dup")?;
        // SAFETY: as above.
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
        if settings.trace.is_some() {
            wire.compare(&hosts, &mut clocks)?;
        }
        let seen = watched_states(&wire, &functions, &hosts, &settings);
        if !wire.agree(seen.is_ok())? {
            // The others have nothing to say about it.
            return seen.map(|_| None);
        }
        let (pages, watcher) = seen?;
        let tape = settings.trace.is_some();
        let watch = Watch {
            library,
            functions,
            words,
            fortran: Fortran::of(library),
            comm,
            group,
            rank,
            size,
            hosts,
            pages,
            tape: tape.then(|| Mutex::new(Tape::new(settings.kept))),
            settings,
            comms: Mutex::default(),
            pendings: Mutex::default(),
            clocks: Mutex::new(clocks),
            watcher: Mutex::new(watcher),
            polling: AtomicU16::new(0),
        };
        watch.learn_first();
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

    /// What the library has given for watching goes back.
    #[allow(unsafe_code)]
    fn close(&self) {
        let (mut comm, mut group) = (self.comm, self.group);
        // SAFETY: both are this watch's own, and not used any more.
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

    fn tape(&self) -> Option<MutexGuard<'_, Tape>> {
        self.tape.as_ref().map(lock)
    }
}
