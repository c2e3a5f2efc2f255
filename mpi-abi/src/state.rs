//! What is process-wide: the one place below which everything is a value.
//!
//! Protocol: every exported function holds an [`Inside`] while it runs.  At `MPI_THREAD_MULTIPLE`, and until initialization has
//! said otherwise, that is the giant lock; below it the program promises that its calls do not overlap.
//! So one thread at a time is in here, and the tables need no locks of their own, only care that none is borrowed while the
//! engine waits or a callback of the program runs.

use crate::abi::*;
use crate::call::Target;
use crate::error::Failure;
use crate::handle::{FIRST_DYNAMIC, Kind, Table, wrong};
use crate::lock::Giant;
use crate::object::attribute::Keyvals;
use crate::object::datatype::TypeObject;
use mpi_core::datatype::Datatype;
use mpi_core::op::Op;
use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The state of the process.
#[derive(Debug)]
pub struct State {
    pub types: RefCell<Table<Rc<TypeObject>>>,
    /// Predefined datatypes on which the program has hung something, by handle.
    pub named_types: RefCell<Vec<(usize, Rc<TypeObject>)>>,
    pub ops: RefCell<Table<Op>>,
    pub keyvals: Keyvals,
}

struct Global(State);

// SAFETY: one thread at a time is inside, by the protocol at the head of this module.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(State {
    types: RefCell::new(Table::new(Kind::Datatype)),
    named_types: RefCell::new(Vec::new()),
    ops: RefCell::new(Table::new(Kind::Op)),
    keyvals: Keyvals::new(),
});

/// The state; only functions that run inside a call use it.
pub(crate) fn state() -> &'static State {
    &GLOBAL.0
}

static GIANT: Giant = Giant::new();

/// Whether calls take the giant lock: until initialization has chosen a level below `MPI_THREAD_MULTIPLE`.
static LOCKING: AtomicBool = AtomicBool::new(true);

/// What a call holds while it runs.
#[derive(Debug)]
pub struct Inside {
    locked: bool,
}

/// Notes that function `id` runs.
#[inline]
pub fn enter(_id: usize) -> Inside {
    let locked = LOCKING.load(Relaxed);
    if locked {
        GIANT.acquire();
    }
    Inside { locked }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            GIANT.release();
        }
    }
}

/// What the engine calls between two looks of a wait, so that other threads get in.
pub fn relax() {
    if LOCKING.load(Relaxed) {
        GIANT.relax();
    }
}

/// The error handler of an object, and the object it was found on.
///
/// A failure that concerns no object, or one whose handle is wrong, is raised on `MPI_COMM_SELF`.
pub fn errhandler(_target: Target) -> (Target, MPI_Errhandler) {
    (Target::Comm(MPI_COMM_SELF), MPI_ERRORS_ARE_FATAL)
}

/// ` on MPI_COMM_WORLD`, or nothing.
pub fn describe(_target: Target) -> String {
    String::new()
}

/// `rank 3 on node7`.
pub fn who_am_i() -> String {
    format!("process {}", std::process::id())
}

/// Ends the job.
pub fn abort(code: c_int) -> ! {
    std::process::exit(code.clamp(1, 255))
}

/// The name of this machine.
pub fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is a local of the length given, whose last byte stays zero.
    let failed = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let name = std::ffi::CStr::from_bytes_until_nul(&buffer);
    match (failed, name) {
        (0, Ok(name)) if !name.is_empty() => name.to_string_lossy().into_owned(),
        _ => "localhost".to_string(),
    }
}

/// A datatype argument.
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

/// An operator argument.
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
