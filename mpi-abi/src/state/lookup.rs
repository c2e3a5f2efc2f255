//! Lookup of objects by handle, for call arguments and for error handlers.

use super::state;
use crate::abi::*;
use crate::error::{Failure, Target};
use crate::handle::{FIRST_DYNAMIC, Kind, wrong};
use crate::host::host_name;
use crate::object::comm::CommObject;
use crate::object::file::FileObject;
use crate::object::session::SessionObject;
use crate::object::window::WinObject;
use mpi_core::Engine;
use mpi_core::datatype::Datatype;
use mpi_core::group::Group;
use mpi_core::op::Op;
use std::rc::{Rc, Weak};

/// Returns the engine. Returns an error before initialization and after finalization.
#[inline]
pub(crate) fn engine() -> Result<Engine, Failure> {
    state()
        .engines()
        .engine()
        .borrow()
        .clone()
        .ok_or_else(not_running)
}

/// Returns the failure of a call before initialization or after finalization.
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
        MPI_COMM_WORLD => state().tables().world().borrow().clone(),
        MPI_COMM_SELF => state().tables().myself().borrow().clone(),
        MPI_Comm(dynamic) => state().tables().comms().borrow().get(dynamic).cloned(),
    };
    found.ok_or_else(|| match handle {
        MPI_COMM_WORLD | MPI_COMM_SELF => not_running(),
        _ => wrong(Kind::Comm, handle.0),
    })
}

/// Returns a communicator that exists, or that was freed and still has active operations.
fn known_comm(handle: MPI_Comm) -> Option<Rc<CommObject>> {
    comm(handle).ok().or_else(|| {
        let freed = state().tables().freed_comms().borrow();
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
        .tables()
        .types()
        .borrow()
        .get(handle.0)
        .map(|t| t.datatype.clone())
        .ok_or_else(|| wrong(Kind::Datatype, handle.0))
}

/// Resolves the datatype of a buffer of `count` elements.
///
/// For a count of zero the handle may be `MPI_DATATYPE_NULL`.
/// The standard does not allow this null handle, but MPICH accepts it.
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
        .tables()
        .ops()
        .borrow()
        .get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::Op, handle.0))
}

/// Resolves a window argument.
#[inline(always)]
pub(crate) fn win(handle: MPI_Win) -> Result<Rc<WinObject>, Failure> {
    let wins = state().tables().wins().borrow();
    wins.get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::Win, handle.0))
}

/// Calls `visit` with a window and returns its result, or false if the window does not exist.
/// `visit` must not create or free a window.
#[inline(always)]
pub(crate) fn with_win(handle: MPI_Win, visit: impl FnOnce(&WinObject) -> bool) -> bool {
    let wins = state().tables().wins().borrow();
    wins.get(handle.0).is_some_and(|object| visit(object))
}

/// Resolves a file argument.
pub(crate) fn file(handle: MPI_File) -> Result<Rc<FileObject>, Failure> {
    let files = state().tables().files().borrow();
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
            .tables()
            .groups()
            .borrow()
            .get(handle.0)
            .map(|(group, _)| group.clone())
            .ok_or_else(|| wrong(Kind::Group, handle.0)),
    }
}

/// Resolves a session argument.
pub(crate) fn session(handle: MPI_Session) -> Result<Rc<SessionObject>, Failure> {
    state()
        .tables()
        .sessions()
        .borrow()
        .get(handle.0)
        .cloned()
        .ok_or_else(|| wrong(Kind::Session, handle.0))
}

/// Returns the error handler for a failure, and the object on which the handler was set.
///
/// Failures without an object or with an invalid handle are raised on `MPI_COMM_SELF` (9.3).
/// Up to MPI-3.1, these failures were raised on `MPI_COMM_WORLD`.
/// So if the program has set no handler on `MPI_COMM_SELF`, that of `MPI_COMM_WORLD` is used.
/// A handler that was set on `MPI_COMM_SELF` is always used, even `MPI_ERRORS_ARE_FATAL`.
pub fn errhandler(target: Target) -> (Target, MPI_Errhandler) {
    let own = match target {
        Target::Comm(c) => known_comm(c).map(|c| c.attached.errhandler()),
        Target::File(MPI_FILE_NULL) => Some(state().program().no_file().errhandler()),
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

/// Describes the object of a failure for messages, such as ` on MPI_COMM_WORLD`.
/// Returns an empty string if the target is not a communicator, window or file.
pub fn describe(target: Target) -> String {
    match target {
        Target::Comm(c) => known_comm(c).map_or(String::new(), |c| format!(" on {}", c.label())),
        Target::Win(w) => win(w).map_or(String::new(), |w| format!(" on {}", w.win.label())),
        Target::File(f) => file(f).map_or(String::new(), |f| format!(" on {}", f.file.label())),
        _ => String::new(),
    }
}

/// Describes this process for messages, such as `rank 3 on node7`.
/// Before the rank is known, the text has the process id.
pub fn this_rank() -> String {
    let host = host_name();
    match &*state().engines().engine().borrow() {
        Some(engine) => format!("rank {} on {host}", engine.me()),
        None => format!("process {} on {host}", std::process::id()),
    }
}
