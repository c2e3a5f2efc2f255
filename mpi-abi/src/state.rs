//! Process-wide state: the only global data of the library.
//!
//! Protocol: every exported function holds a [`CallGuard`] while it runs. At `MPI_THREAD_MULTIPLE`, and until initialization has
//! chosen a lower level, that holds the global lock; below it the program guarantees that its calls do not overlap.
//! So one thread at a time accesses the state, and the tables need no locks of their own; but none may be borrowed while the
//! engine waits or a callback of the program runs.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::{Failure, Target};
use crate::forked;
use crate::handle::{FIRST_DYNAMIC, Kind, Table, wrong};
use crate::host::host_name;
use crate::lock::GlobalLock;
use crate::object::Attached;
use crate::object::attribute::Keyvals;
use crate::object::buffer::UserBuffer;
use crate::object::comm::CommObject;
use crate::object::datatype::TypeObject;
use crate::object::file::FileObject;
use crate::object::request::{FreedGeneral, Orphan, RequestObject};
use crate::object::session::SessionObject;
use crate::object::window::WinObject;
use mpi_base::inbox::Inbox;
use mpi_base::node::ShmBlock;
use mpi_base::state::StatePage;
use mpi_core::Engine;
use mpi_core::datatype::Datatype;
use mpi_core::dynamic::PortName;
use mpi_core::engine::Threads;
use mpi_core::group::Group;
use mpi_core::op::{DenseOp, Op};
use mpi_core::plugin::Catalogue;
use mpi_core::pml::Message;
use mpi_core::trace::Trace;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering::Relaxed};

/// The state of the process.
pub struct State {
    /// The engine, while the world or a session exists.
    pub engine: RefCell<Option<Engine>>,
    /// The engine between two sessions: it cannot be created twice, since other processes refer to its memory.
    pub parked: RefCell<Option<Engine>>,
    /// The catalogue of plugin components, whose strings live as long as the process.
    pub plugins: RefCell<Option<Catalogue>>,
    /// True if some user of the engine may call from several threads at once.
    pub multiple: Cell<bool>,
    /// `MPI_COMM_WORLD` and `MPI_COMM_SELF`, from initialization to finalization.
    pub world: RefCell<Option<Rc<CommObject>>>,
    pub myself: RefCell<Option<Rc<CommObject>>>,
    pub comms: RefCell<Table<Rc<CommObject>>>,
    /// The communicator with the job that spawned this one, if any.
    pub parent: Cell<MPI_Comm>,
    /// The jobs that this process is connected with, as last reported to the launcher.
    pub connections: RefCell<Vec<u64>>,
    /// Jobs that are being spawned: their names, and the ports at which this process waits for them.
    pub spawning: RefCell<Vec<(String, PortName)>>,
    /// Freed communicators that operations in progress keep alive; failures of those are reported to their handlers.
    pub freed_comms: RefCell<Vec<Weak<CommObject>>>,
    /// Groups, each with the session it derives from.
    pub groups: RefCell<Table<(Group, Option<Rc<SessionObject>>)>>,
    pub sessions: RefCell<Table<Rc<SessionObject>>>,
    pub requests: RefCell<Table<RequestObject>>,
    /// Operations whose handles were freed before they completed.
    pub orphans: RefCell<Vec<Orphan>>,
    /// Generalized requests whose handles were freed before they were complete.
    pub freed_general: RefCell<Vec<FreedGeneral>>,
    /// Messages taken by a matched probe.
    pub messages: RefCell<Table<(Message, Rc<CommObject>)>>,
    pub types: RefCell<Table<Rc<TypeObject>>>,
    /// Predefined datatypes to which the program has attached something, by handle.
    pub named_types: RefCell<Vec<(usize, Rc<TypeObject>)>>,
    pub ops: RefCell<Table<Op>>,
    pub wins: RefCell<Table<Rc<WinObject>>>,
    pub files: RefCell<Table<Rc<FileObject>>>,
    /// Data representations registered by the program, by name.
    pub datareps: RefCell<Vec<(String, Rc<dyn mpi_core::io::Conversion>)>>,
    /// Blocks that `MPI_Alloc_mem` has taken from the node's memory, by address.
    pub heap: RefCell<BTreeMap<usize, ShmBlock>>,
    /// The predefined operator and datatype that were combined last, and their function.
    pub last_op: Cell<Option<(MPI_Op, MPI_Datatype, DenseOp)>>,
    pub keyvals: Keyvals,
    /// The buffer that `MPI_Buffer_attach` attached to the process.
    pub buffer: UserBuffer,
    /// Holds the error handler of files that are opened later, which is set on `MPI_FILE_NULL` (section 14.7).
    pub no_file: Attached,
    /// Values that live as long as the process; leak checkers find them reachable here.
    kept: RefCell<Vec<&'static dyn Any>>,
}

impl State {
    /// Keeps a value until process exit.
    pub fn keep<T: 'static>(&self, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        self.kept.borrow_mut().push(value);
        value
    }
}

struct Global(State);

// SAFETY: one thread at a time is inside, by the protocol at the head of this module.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(State {
    engine: RefCell::new(None),
    parked: RefCell::new(None),
    plugins: RefCell::new(None),
    multiple: Cell::new(false),
    world: RefCell::new(None),
    myself: RefCell::new(None),
    comms: RefCell::new(Table::new(Kind::Comm)),
    parent: Cell::new(MPI_COMM_NULL),
    connections: RefCell::new(Vec::new()),
    spawning: RefCell::new(Vec::new()),
    freed_comms: RefCell::new(Vec::new()),
    groups: RefCell::new(Table::new(Kind::Group)),
    sessions: RefCell::new(Table::new(Kind::Session)),
    requests: RefCell::new(Table::new(Kind::Request)),
    orphans: RefCell::new(Vec::new()),
    freed_general: RefCell::new(Vec::new()),
    messages: RefCell::new(Table::new(Kind::Message)),
    types: RefCell::new(Table::new(Kind::Datatype)),
    named_types: RefCell::new(Vec::new()),
    ops: RefCell::new(Table::new(Kind::Op)),
    wins: RefCell::new(Table::new(Kind::Win)),
    files: RefCell::new(Table::new(Kind::File)),
    datareps: RefCell::new(Vec::new()),
    heap: RefCell::new(BTreeMap::new()),
    last_op: Cell::new(None),
    keyvals: Keyvals::new(),
    buffer: UserBuffer::new(),
    no_file: Attached::with_errhandler(MPI_ERRORS_RETURN),
    kept: RefCell::new(Vec::new()),
});

/// Returns the state; only functions that run inside a call may use it.
pub(crate) fn state() -> &'static State {
    &GLOBAL.0
}

static GLOBAL_LOCK: GlobalLock = GlobalLock::new();

/// The actions of a call beside its work, a set of the bits below; in most processes none.
static EXTRAS: AtomicU8 = AtomicU8::new(LOCKED);

/// Calls take the global lock; set until initialization has chosen a level below `MPI_THREAD_MULTIPLE`.
const LOCKED: u8 = 1;

/// Calls are written to [`TRACE`].
const TRACED: u8 = 2;

/// The process was forked from one that has initialized MPI ([`forked`]).
const FORKED: u8 = 4;

/// Marks this process as just forked; only stores to an atomic.
pub(crate) fn mark_forked() {
    EXTRAS.fetch_or(FORKED, Relaxed);
}

/// Returns true if this process was forked from one that has initialized MPI.
pub(crate) fn is_forked() -> bool {
    EXTRAS.load(Relaxed) & FORKED != 0
}

/// This process's rank in the world (upper half) and the size of the world (lower half); 0 while there is no world.
static WORLD_PLACE: AtomicU64 = AtomicU64::new(0);

/// Sets this process's rank and the size of the world; `None` if there is no world or it is no member.
pub(crate) fn set_world_place(place: Option<(u32, u32)>) {
    let word = place.map_or(0, |(rank, size)| u64::from(rank) << 32 | u64::from(size));
    WORLD_PLACE.store(word, Relaxed);
}

/// Returns rank and size in the world; `None` while there is no world.
#[inline(always)]
pub(crate) fn world_place() -> Option<(u32, u32)> {
    match WORLD_PLACE.load(Relaxed) {
        0 => None,
        word => Some(((word >> 32) as u32, word as u32)),
    }
}

/// Returns true if calls are not traced.
#[inline(always)]
pub(crate) fn is_untraced() -> bool {
    EXTRAS.load(Relaxed) & TRACED == 0
}

/// Returns true if calls take no lock, so that the calling thread has the state to itself.
#[inline(always)]
pub(crate) fn is_unlocked() -> bool {
    EXTRAS.load(Relaxed) == 0
}

/// The page on which this process publishes its state; null while there is none.
static PAGE: AtomicPtr<StatePage> = AtomicPtr::new(std::ptr::null_mut());

/// The trace that calls are written to; null without tracing.
static TRACE: AtomicPtr<Trace> = AtomicPtr::new(std::ptr::null_mut());

/// True if this run is recorded or replayed.
static SCRIPTED: AtomicBool = AtomicBool::new(false);

/// The state of a running call, to be passed to [`leave`].
#[derive(Debug)]
#[must_use]
pub struct CallGuard {
    extras: u8,
    /// Start time on the trace's clock, if the call is traced.
    began: u64,
}

/// Enters function `id`.
#[inline(always)]
pub fn enter(id: usize) -> CallGuard {
    let extras = EXTRAS.load(Relaxed);
    let (extras, began) = match extras {
        0 => (0, 0),
        _ => enter_with(id, extras),
    };
    if let Some(page) = page() {
        page.enter(number(id));
    }
    CallGuard { extras, began }
}

/// Leaves function `id`.
#[inline(always)]
pub fn leave(id: usize, inside: CallGuard) {
    if let Some(page) = page() {
        page.leave(number(id));
    }
    if inside.extras != 0 {
        leave_with(id, inside);
    }
}

/// The page numbers functions from 1.
#[inline(always)]
fn number(id: usize) -> u16 {
    id as u16 + 1
}

/// Performs the extra actions at entry; returns those that apply to this call and its start time.
#[cold]
fn enter_with(id: usize, extras: u8) -> (u8, u64) {
    if extras & FORKED != 0 {
        forked::called(id, world_place());
        // The function is harmless, and takes no lock: a thread that does not exist in this process may hold it.
        return (0, 0);
    }
    if extras & LOCKED != 0 {
        GLOBAL_LOCK.acquire();
    }
    match extras & TRACED {
        0 => (extras, 0),
        _ => (extras, trace().map_or(0, Trace::begins)),
    }
}

#[cold]
fn leave_with(id: usize, inside: CallGuard) {
    // False if tracing began inside the call.
    if inside.extras & TRACED != 0 {
        trace_call(id, inside.began);
    }
    if inside.extras & LOCKED != 0 {
        GLOBAL_LOCK.release();
    }
}

/// Returns the trace, if calls are traced.
fn trace() -> Option<&'static Trace> {
    // SAFETY: null, or a trace that `set_tracing` received with lifetime `'static`.
    unsafe { TRACE.load(Relaxed).as_ref() }
}

/// Writes a returning call to the trace.
fn trace_call(id: usize, began: u64) {
    if let Some(trace) = trace() {
        // SAFETY: `pthread_self` has no preconditions and always succeeds.
        let thread = unsafe { libc::pthread_self() } as u32;
        trace.called(number(id), began, thread);
    }
}

/// Starts tracing calls, and sets whether the run is recorded or replayed.
pub(crate) fn set_tracing(trace: Option<&'static Trace>, scripted: bool) {
    if let Some(trace) = trace {
        TRACE.store(std::ptr::from_ref(trace).cast_mut(), Relaxed);
        EXTRAS.fetch_or(TRACED, Relaxed);
    }
    SCRIPTED.store(scripted, Relaxed);
}

/// Returns true if this run is recorded or replayed.
#[inline]
pub(crate) fn is_scripted() -> bool {
    SCRIPTED.load(Relaxed)
}

#[inline(always)]
fn page() -> Option<&'static StatePage> {
    // SAFETY: null, or a page that `set_state_page` received with lifetime `'static`.
    unsafe { PAGE.load(Relaxed).as_ref() }
}

/// Publishes calls on this page from now on.
pub(crate) fn set_state_page(page: &'static StatePage) {
    PAGE.store(std::ptr::from_ref(page).cast_mut(), Relaxed);
}

/// Runs `f`, which is not a call of the program, under the lock that calls take.
pub(crate) fn locked<R>(f: impl FnOnce() -> R) -> R {
    GLOBAL_LOCK.acquire();
    let result = f();
    GLOBAL_LOCK.release();
    result
}

/// Chooses whether calls take the global lock.
///
/// Only initialization calls it, when no other thread is inside.
pub(crate) fn set_locking(locking: bool) {
    if locking {
        EXTRAS.fetch_or(LOCKED, Relaxed);
        GLOBAL_LOCK.reserve();
    } else {
        EXTRAS.fetch_and(!LOCKED, Relaxed);
    }
}

/// The hooks by which the engine lets threads wait together.
pub const THREADS: Threads = Threads {
    follow: |busy, slept| GLOBAL_LOCK.follow(busy, slept),
    wanted: || GLOBAL_LOCK.is_wanted(),
};

/// Makes a thread that finds the lock taken ring this bell from now on, since the owner may be asleep.
pub(crate) fn set_bell(inbox: &'static Inbox) {
    GLOBAL_LOCK.set_bell(inbox);
}

/// Called by the engine between two polls of a wait, to admit other threads.
pub fn yield_lock() {
    if EXTRAS.load(Relaxed) & LOCKED != 0 {
        GLOBAL_LOCK.yield_to_waiters();
    }
}

/// Returns the engine, while the process is initialized.
#[inline]
pub(crate) fn engine() -> Result<Engine, Failure> {
    state().engine.borrow().clone().ok_or_else(not_running)
}

/// The failure of a call before initialization or after finalization.
#[cold]
pub(crate) fn not_running() -> Failure {
    let when = if crate::phase::finalized() {
        "has been finalized"
    } else {
        "has not been initialized"
    };
    Failure::new(MPI_ERR_OTHER, format!("MPI {when}"))
}

/// Resolves a communicator argument.
#[inline(always)]
pub(crate) fn comm(handle: MPI_Comm) -> Result<Rc<CommObject>, Failure> {
    let found = match handle {
        MPI_COMM_WORLD => state().world.borrow().clone(),
        MPI_COMM_SELF => state().myself.borrow().clone(),
        MPI_Comm(dynamic) => state().comms.borrow().get(dynamic).cloned(),
    };
    found.ok_or_else(|| match handle {
        MPI_COMM_WORLD | MPI_COMM_SELF => not_running(),
        _ => wrong(Kind::Comm, handle.0),
    })
}

/// Returns a communicator that exists, or that was freed and is still in use.
fn known_comm(handle: MPI_Comm) -> Option<Rc<CommObject>> {
    comm(handle).ok().or_else(|| {
        let freed = state().freed_comms.borrow();
        let mut alive = freed.iter().filter_map(Weak::upgrade);
        alive.find(|object| object.handle() == handle)
    })
}

/// Resolves a datatype argument.
#[inline]
pub(crate) fn datatype(handle: MPI_Datatype) -> Result<Datatype, Failure> {
    if handle.0 < FIRST_DYNAMIC {
        return Datatype::named(handle.0).ok_or_else(|| wrong(Kind::Datatype, handle.0));
    }
    state()
        .types
        .borrow()
        .get(handle.0)
        .map(|t| t.datatype.clone())
        .ok_or_else(|| wrong(Kind::Datatype, handle.0))
}

/// Resolves the datatype of a buffer of `count` elements.
///
/// For a count of zero it may be `MPI_DATATYPE_NULL`: the standard does not allow it, but MPICH accepts it, and it is harmless.
#[inline]
pub(crate) fn datatype_of(count: i64, handle: MPI_Datatype) -> Result<Datatype, Failure> {
    match handle {
        MPI_DATATYPE_NULL if count == 0 => datatype(MPI_BYTE),
        handle => datatype(handle),
    }
}

/// Resolves an operator argument.
#[inline]
pub(crate) fn op(handle: MPI_Op) -> Result<Op, Failure> {
    if handle.0 < FIRST_DYNAMIC {
        return Op::predefined(handle.0).ok_or_else(|| wrong(Kind::Op, handle.0));
    }
    state()
        .ops
        .borrow()
        .get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::Op, handle.0))
}

/// Resolves a window argument.
#[inline(always)]
pub(crate) fn win(handle: MPI_Win) -> Result<Rc<WinObject>, Failure> {
    let wins = state().wins.borrow();
    wins.get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::Win, handle.0))
}

/// Calls `look` with a window; `look` creates and frees none. Returns false if the window does not exist.
#[inline(always)]
pub(crate) fn with_win(handle: MPI_Win, look: impl FnOnce(&WinObject) -> bool) -> bool {
    let wins = state().wins.borrow();
    wins.get(handle.0).is_some_and(|object| look(object))
}

/// Resolves a file argument.
pub(crate) fn file(handle: MPI_File) -> Result<Rc<FileObject>, Failure> {
    let files = state().files.borrow();
    files
        .get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::File, handle.0))
}

/// Resolves a group argument.
pub(crate) fn group(handle: MPI_Group) -> Result<Group, Failure> {
    match handle {
        MPI_GROUP_EMPTY => Ok(Group::empty()),
        _ => state()
            .groups
            .borrow()
            .get(handle.0)
            .map(|(group, _)| group.clone())
            .ok_or_else(|| wrong(Kind::Group, handle.0)),
    }
}

/// Resolves a session argument.
pub(crate) fn session(handle: MPI_Session) -> Result<Rc<SessionObject>, Failure> {
    state()
        .sessions
        .borrow()
        .get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::Session, handle.0))
}

/// Returns the error handler for a failure, and the object that it was found on.
///
/// A failure that concerns no object, or one whose handle is wrong, is raised on `MPI_COMM_SELF` (section 9.3).
/// Up to MPI-3.1 that was `MPI_COMM_WORLD`, so if the program has set no handler on the former, that of the latter is used;
/// a handler that was set on the former is used, also a fatal one.
pub fn errhandler(target: Target) -> (Target, MPI_Errhandler) {
    let own = match target {
        Target::Comm(c) => known_comm(c).map(|c| c.attached.errhandler()),
        Target::File(MPI_FILE_NULL) => Some(state().no_file.errhandler()),
        Target::Session(s) => session(s).ok().map(|s| s.attached.errhandler()),
        Target::New(handler) => Some(handler),
        Target::Win(w) => win(w).ok().map(|w| w.attached.errhandler()),
        Target::File(f) => file(f).ok().map(|f| f.attached.errhandler()),
        Target::None => None,
    };
    if let Some(handler) = own {
        return (target, handler);
    }
    let of = |c| comm(c).map_or(MPI_ERRORS_ARE_FATAL, |c| c.attached.errhandler());
    let chosen = comm(MPI_COMM_SELF).is_ok_and(|c| c.attached.errhandler_is_chosen());
    let hears = if chosen {
        MPI_COMM_SELF
    } else {
        MPI_COMM_WORLD
    };
    (Target::Comm(hears), of(hears))
}

/// Returns ` on MPI_COMM_WORLD` for messages, or nothing if no communicator, window or file is concerned.
pub fn describe(target: Target) -> String {
    match target {
        Target::Comm(c) => known_comm(c).map_or(String::new(), |c| format!(" on {}", c.label())),
        Target::Win(w) => win(w).map_or(String::new(), |w| format!(" on {}", w.win.label())),
        Target::File(f) => file(f).map_or(String::new(), |f| format!(" on {}", f.file.label())),
        _ => String::new(),
    }
}

/// Returns `rank 3 on node7`, or the process id before it has a rank.
pub fn this_rank() -> String {
    let host = host_name();
    match &*state().engine.borrow() {
        Some(engine) => format!("rank {} on {host}", engine.me()),
        None => format!("process {} on {host}", std::process::id()),
    }
}
