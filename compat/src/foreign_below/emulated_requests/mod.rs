//! Emulated requests, for operations that the backend does not have.
//!
//! An emulated operation consists of backend operations, or of a condition that this library tests.
//! The program gets a handle value that no backend returns ([`Foreign::emulated`]).
//! When the first such handle is created, functions of [`completion`] replace all backend functions
//! with request arguments.
//! They accept emulated and backend requests. Until then, completions have no overhead.
//!
//! Protocol: [`make`] registers an operation and returns its handle.
//! [`advance`] makes progress and records the result.
//! [`take`] ends the request after its result was returned. A persistent one becomes inactive.
//! An active operation whose handle was freed continues in the list of orphans.

pub mod buffers;
mod children;
mod completion;
pub mod packed;
pub mod partitioned;

pub use children::Children;

use super::Foreign;
use super::fortran::class_below;
use super::refusal::{fail_at_self, refuse_on};
use super::standard::{MPI_COMM_SELF, class};
use crate::backend::{self, slot};
use crate::family::Kind;
use crate::lock::lock;
use std::any::Any;
use std::ffi::c_int;
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Mutex, Once};

/// The result of an operation: its status and error code, in the backend's ABI.
pub type End<F> = (<F as crate::Family>::BelowStatus, c_int);

/// An emulated operation. All error codes, handles and statuses are in the backend's ABI.
pub trait Operation<F: Foreign>: Send {
    /// Makes progress. Returns the result if the operation has ended, otherwise `None`.
    ///
    /// # Safety
    /// MPI is initialized and not finalized.
    unsafe fn advance(&mut self) -> Option<End<F>>;

    /// Returns true for a persistent operation, which can be started repeatedly.
    fn is_persistent(&self) -> bool {
        false
    }

    /// Starts a persistent operation. Returns 0 or an error code.
    ///
    /// # Safety
    /// The operation is persistent and not active.
    unsafe fn start(&mut self) -> c_int {
        0
    }

    /// Cancels the active operation. If this is impossible, returns the name of the operation,
    /// such as "a partitioned send or receive".
    ///
    /// # Safety
    /// MPI is initialized and not finalized.
    unsafe fn cancel(&mut self) -> Result<(), &'static str>;

    /// Returns the communicator on which a refused call raises an error, if not `MPI_COMM_SELF`.
    fn comm(&self) -> Option<F::Below> {
        None
    }

    /// Returns this operation if it is partitioned, otherwise `None`.
    fn parts(&mut self) -> Option<&mut partitioned::Partitioned<F>> {
        None
    }
}

/// The operation of an emulated request, and its state.
struct Emulated<F: Foreign> {
    operation: Box<dyn Operation<F>>,
    active: bool,
    end: Option<End<F>>,
}

type Entry = Arc<dyn Any + Send + Sync>;

static TABLE: Mutex<Vec<Option<Entry>>> = Mutex::new(Vec::new());
static ORPHANS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Registers an operation and returns its handle. The operation is active unless it is persistent.
pub fn make<F: Foreign>(operation: Box<dyn Operation<F>>) -> F::Below {
    static ARMED: Once = Once::new();
    ARMED.call_once(completion::prepare::<F>);
    let emulated = Emulated::<F> {
        active: !operation.is_persistent(),
        operation,
        end: None,
    };
    let entry: Entry = Arc::new(Mutex::new(emulated));
    let mut table = lock(&TABLE);
    let free = table.iter().position(Option::is_none);
    let index = free.unwrap_or_else(|| {
        table.push(None);
        table.len() - 1
    });
    if let Some(place) = table.get_mut(index) {
        *place = Some(entry);
    }
    F::emulated(Kind::Request, index)
}

/// Returns the emulated request of a handle, or `None` for a handle of the backend.
fn find<F: Foreign>(request: F::Below) -> Option<Arc<Mutex<Emulated<F>>>> {
    let index = F::emulated_index(Kind::Request, request)?;
    let entry = lock(&TABLE).get(index)?.clone()?;
    entry.downcast().ok()
}

fn is_emulated<F: Foreign>(request: F::Below) -> bool {
    F::emulated_index(Kind::Request, request).is_some()
}

fn forget<F: Foreign>(request: F::Below) {
    let index = F::emulated_index(Kind::Request, request);
    if let Some(place) = index.and_then(|i| lock(&TABLE).get_mut(i).map(std::mem::take)) {
        drop(place);
    }
}

/// The state of an emulated request, as completion functions see it.
enum State<F: Foreign> {
    /// A persistent request that is not started.
    Inactive,
    Pending,
    Ended(End<F>),
}

/// Makes progress on the operation of an emulated request, and returns the request's state.
/// The state is pending, too, if another thread or an outer call is advancing the operation.
unsafe fn advance<F: Foreign>(request: F::Below) -> State<F> {
    let Some(emulated) = find::<F>(request) else {
        return State::Ended((empty::<F>(), class_below::<F>(class::REQUEST)));
    };
    let Ok(mut emulated) = emulated.try_lock() else {
        return State::Pending;
    };
    if !emulated.active {
        return State::Inactive;
    }
    if emulated.end.is_none() {
        // SAFETY: the caller is a completion function, which needs an initialized MPI.
        emulated.end = unsafe { emulated.operation.advance() };
    }
    match emulated.end {
        Some(end) => State::Ended(end),
        None => State::Pending,
    }
}

/// Ends a request after its result was returned. Stores the null request unless it is persistent.
unsafe fn take<F: Foreign>(request: *mut F::Below) {
    // SAFETY: `request` is the argument of a completion function, a valid pointer by the standard.
    let handle = unsafe { request.read() };
    let persistent = find::<F>(handle).is_some_and(|emulated| {
        let mut emulated = lock(&emulated);
        emulated.active = false;
        emulated.end = None;
        emulated.operation.is_persistent()
    });
    if !persistent {
        forget::<F>(handle);
        // SAFETY: `request` is a valid pointer, as completion functions require.
        unsafe { request.write(F::null(Kind::Request)) };
    }
}

/// Returns the backend's empty status.
pub fn empty<F: Foreign>() -> F::BelowStatus {
    let mut status = F::status_below(&crate::convert::BLANK);
    let (mut null, mut flag) = (F::null(Kind::Request), 0);
    // SAFETY: a call with the null request completes immediately.
    // All pointers refer to local variables.
    unsafe { (backend::MPI_Test::<F>())(&raw mut null, &raw mut flag, &raw mut status) };
    status
}

/// Stores a status in the program's variable unless the program ignores the status.
unsafe fn tell<F: Foreign>(status: *mut F::BelowStatus, value: &F::BelowStatus) {
    if !status.is_null() && status.addr() != F::BELOW_STATUS_IGNORE {
        // SAFETY: the status is not null and not ignored, so it is a valid output argument.
        unsafe { status.write(*value) };
    }
}

/// Returns the backend's `MPI_STATUS_IGNORE`.
pub fn ignore<F: Foreign>() -> *mut F::BelowStatus {
    without_provenance_mut(F::BELOW_STATUS_IGNORE)
}

/// Returns the address of the i-th status of an array, or the backend's `MPI_STATUS_IGNORE`.
pub fn place_of_status<F: Foreign>(statuses: *mut F::BelowStatus, i: usize) -> *mut F::BelowStatus {
    match statuses.addr() == F::BELOW_STATUS_IGNORE || statuses.is_null() {
        true => ignore::<F>(),
        false => statuses.wrapping_add(i),
    }
}

/// Starts a persistent operation. Returns 0 or an error code.
unsafe fn start<F: Foreign>(request: F::Below) -> c_int {
    let Some(emulated) = find::<F>(request) else {
        // SAFETY: the caller is `MPI_Start`, which the program calls only in initialized MPI.
        return unsafe { fail_at_self::<F>(class::REQUEST) };
    };
    let mut emulated = lock(&emulated);
    if emulated.active || !emulated.operation.is_persistent() {
        drop(emulated);
        // SAFETY: the caller is `MPI_Start`, which the program calls only in initialized MPI.
        return unsafe { fail_at_self::<F>(class::REQUEST) };
    }
    // SAFETY: the operation is persistent and inactive, which was checked above under its lock.
    let code = unsafe { emulated.operation.start() };
    emulated.active = code == 0;
    emulated.end = None;
    code
}

/// Frees an emulated request. An active operation becomes an orphan.
unsafe fn free<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: `request` is the argument of `MPI_Request_free`, a valid pointer by the standard.
    let handle = unsafe { request.read() };
    if let Some(emulated) = find::<F>(handle) {
        let active = { lock(&emulated).active };
        if active {
            lock(&ORPHANS).push(emulated);
        }
        forget::<F>(handle);
    }
    // SAFETY: `request` is the argument of `MPI_Request_free`, a valid pointer by the standard.
    unsafe { request.write(F::null(Kind::Request)) };
    // SAFETY: the caller is `MPI_Request_free`, which the program calls only in initialized MPI.
    unsafe { advance_orphans::<F>() };
    0
}

/// Makes progress on orphans (active operations of freed requests), and drops completed ones.
unsafe fn advance_orphans<F: Foreign>() {
    let orphans = std::mem::take(&mut *lock(&ORPHANS));
    let is_under_way = |entry: &Entry| {
        let Ok(emulated) = Arc::clone(entry).downcast::<Mutex<Emulated<F>>>() else {
            return false;
        };
        let mut emulated = lock(&emulated);
        // SAFETY: the caller is a completion function, which needs an initialized MPI.
        unsafe { emulated.operation.advance() }.is_none()
    };
    let left: Vec<Entry> = orphans.into_iter().filter(is_under_way).collect();
    lock(&ORPHANS).extend(left);
}

/// Cancels the operation of an emulated request, or returns an error if this is impossible.
/// Without the error, a program that relies on the cancellation would wait indefinitely.
unsafe fn cancel<F: Foreign>(request: F::Below) -> c_int {
    let (cancelled, comm) = match find::<F>(request) {
        Some(emulated) => {
            let mut emulated = lock(&emulated);
            // SAFETY: the caller is `MPI_Cancel`, which the program calls only in initialized MPI.
            (
                unsafe { emulated.operation.cancel() },
                emulated.operation.comm(),
            )
        }
        None => (Err("no operation of this process"), None),
    };
    let Err(kind) = cancelled else { return 0 };
    let what = format!(
        "the request is of {kind}, which cannot be cancelled; only nonblocking and persistent sends and receives can, so complete it by MPI_Wait"
    );
    let comm = comm.unwrap_or_else(|| F::handle_in(Kind::Comm, MPI_COMM_SELF));
    // SAFETY: the program keeps the communicator of an operation until it has freed the request.
    unsafe { refuse_on::<F>(comm, slot::MPI_Cancel, class::REQUEST, &what) }
}

/// Calls `ask` with the partitioned operation of a request, and returns an error code or 0.
/// The error is `MPI_ERR_REQUEST` if the request is not partitioned.
///
/// # Safety
/// MPI is initialized and not finalized.
pub unsafe fn with_parts<F: Foreign>(
    request: F::Below,
    ask: impl FnOnce(&mut partitioned::Partitioned<F>, bool) -> Result<(), c_int>,
) -> c_int {
    let answer = match find::<F>(request) {
        None => Err(class::REQUEST),
        Some(emulated) => {
            let mut emulated = lock(&emulated);
            let active = emulated.active;
            match emulated.operation.parts() {
                Some(parts) => ask(parts, active),
                None => Err(class::REQUEST),
            }
        }
    };
    match answer {
        Ok(()) => 0,
        // SAFETY: MPI is initialized, by contract.
        Err(class) => unsafe { fail_at_self::<F>(class) },
    }
}
