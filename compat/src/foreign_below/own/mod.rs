//! Requests of this library, for operations that the library below does not have.
//!
//! Such an operation is made of operations below, or of nothing but memory. The program gets a handle that no library gives out
//! ([`Foreign::own`]). With the first one, the slots of the functions that take requests get those of [`mixed`], which know both
//! kinds; until then a completion costs nothing more than before.
//!
//! Protocol: [`make`] enters an operation and returns its handle, [`advance`] moves it on and remembers how it ended, [`take`]
//! hands the end to the program, once; a persistent operation stays, inactive. What the program has freed while it was under way
//! goes on among the orphans.

pub mod buffers;
mod children;
pub mod codes;
pub mod large_types;
mod leaving;
mod mixed;
pub mod newer;
pub mod of_groups;
pub mod packed;
pub mod parts;
pub mod ports;
mod slots;
pub mod world;

pub use children::Children;
pub use slots::Original;
pub(super) use slots::{original, put, put_in_front};

use super::Foreign;
use super::fortran::class_below;
use super::standard::{MPI_COMM_SELF, class};
use crate::below;
use crate::family::Kind;
use crate::lock::lock;
use std::any::Any;
use std::ffi::c_int;
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Mutex, Once};

/// How an operation ended: its status, and the code of an error.
pub type End<F> = (<F as crate::Family>::BelowStatus, c_int);

/// An operation of this library. All codes, handles and statuses are those of the library below.
pub trait Operation<F: Foreign>: Send {
    /// Moves on; the end, if it is there.
    ///
    /// # Safety
    /// Between init and finalize.
    unsafe fn advance(&mut self) -> Option<End<F>>;

    /// Whether it can be started, and again when it has ended.
    fn is_persistent(&self) -> bool {
        false
    }

    /// Begins a persistent operation; the code of an error.
    ///
    /// # Safety
    /// It is persistent and not active.
    unsafe fn start(&mut self) -> c_int {
        0
    }

    /// # Safety
    /// It is active.
    unsafe fn cancel(&mut self) {}

    /// As a partitioned one.
    fn parts(&mut self) -> Option<&mut parts::Partitioned<F>> {
        None
    }
}

/// What belongs to a handle.
struct Own<F: Foreign> {
    operation: Box<dyn Operation<F>>,
    active: bool,
    end: Option<End<F>>,
}

type Entry = Arc<dyn Any + Send + Sync>;

static TABLE: Mutex<Vec<Option<Entry>>> = Mutex::new(Vec::new());
static ORPHANS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The handle of a new operation, which is under way unless it is persistent.
pub fn make<F: Foreign>(operation: Box<dyn Operation<F>>) -> F::Below {
    static ARMED: Once = Once::new();
    ARMED.call_once(mixed::prepare::<F>);
    let own = Own::<F> {
        active: !operation.is_persistent(),
        operation,
        end: None,
    };
    let entry: Entry = Arc::new(Mutex::new(own));
    let mut table = lock(&TABLE);
    let free = table.iter().position(Option::is_none);
    let index = free.unwrap_or_else(|| {
        table.push(None);
        table.len() - 1
    });
    if let Some(place) = table.get_mut(index) {
        *place = Some(entry);
    }
    F::own(Kind::Request, index)
}

/// The operation of a handle of this library.
fn find<F: Foreign>(request: F::Below) -> Option<Arc<Mutex<Own<F>>>> {
    let index = F::own_index(Kind::Request, request)?;
    let entry = lock(&TABLE).get(index)?.clone()?;
    entry.downcast().ok()
}

fn is_own<F: Foreign>(request: F::Below) -> bool {
    F::own_index(Kind::Request, request).is_some()
}

fn forget<F: Foreign>(request: F::Below) {
    let index = F::own_index(Kind::Request, request);
    if let Some(place) = index.and_then(|i| lock(&TABLE).get_mut(i).map(std::mem::take)) {
        drop(place);
    }
}

/// Where an operation stands.
enum State<F: Foreign> {
    /// Persistent and not started.
    Inactive,
    Pending,
    Ended(End<F>),
}

/// Moves an operation on. One that another thread is moving, or a function of the program that was called meanwhile, is pending.
unsafe fn advance<F: Foreign>(request: F::Below) -> State<F> {
    let Some(own) = find::<F>(request) else {
        return State::Ended((empty::<F>(), class_below::<F>(class::REQUEST)));
    };
    let Ok(mut own) = own.try_lock() else {
        return State::Pending;
    };
    if !own.active {
        return State::Inactive;
    }
    if own.end.is_none() {
        // SAFETY: the program asks for completion, which it may.
        own.end = unsafe { own.operation.advance() };
    }
    match own.end {
        Some(end) => State::Ended(end),
        None => State::Pending,
    }
}

/// The program has seen the end of an operation.
unsafe fn take<F: Foreign>(request: *mut F::Below) {
    // SAFETY: the caller's place.
    let handle = unsafe { request.read() };
    let persistent = find::<F>(handle).is_some_and(|own| {
        let mut own = lock(&own);
        own.active = false;
        own.end = None;
        own.operation.is_persistent()
    });
    if !persistent {
        forget::<F>(handle);
        // SAFETY: the caller's place.
        unsafe { request.write(F::null(Kind::Request)) };
    }
}

/// The status of what has nothing to tell.
pub fn empty<F: Foreign>() -> F::BelowStatus {
    let mut status = F::status_below(&crate::convert::BLANK);
    let (mut null, mut flag) = (F::null(Kind::Request), 0);
    // SAFETY: the null request, which is complete.
    unsafe { (below::MPI_Test::<F>())(&raw mut null, &raw mut flag, &raw mut status) };
    status
}

/// Writes a status unless the program wants none.
unsafe fn tell<F: Foreign>(status: *mut F::BelowStatus, value: &F::BelowStatus) {
    if !status.is_null() && status.addr() != F::BELOW_STATUS_IGNORE {
        // SAFETY: an output argument of the caller.
        unsafe { status.write(*value) };
    }
}

/// Lets the error handler of a communicator hear of an error class of the standard; its code below.
///
/// # Safety
/// Between init and finalize, with a communicator of the library below.
pub unsafe fn fail<F: Foreign>(comm: F::Below, class: c_int) -> c_int {
    let code = class_below::<F>(class);
    // SAFETY: as the caller says.
    unsafe { (below::MPI_Comm_call_errhandler::<F>())(comm, code) };
    code
}

/// The same where there is no communicator.
///
/// # Safety
/// As above.
pub unsafe fn fail_at_self<F: Foreign>(class: c_int) -> c_int {
    // SAFETY: as the caller says.
    unsafe { fail::<F>(F::handle_in(Kind::Comm, MPI_COMM_SELF), class) }
}

/// The null status argument.
pub fn ignore<F: Foreign>() -> *mut F::BelowStatus {
    without_provenance_mut(F::BELOW_STATUS_IGNORE)
}

/// Where the status of the i-th request of an array goes.
pub fn place_of_status<F: Foreign>(statuses: *mut F::BelowStatus, i: usize) -> *mut F::BelowStatus {
    match statuses.addr() == F::BELOW_STATUS_IGNORE || statuses.is_null() {
        true => ignore::<F>(),
        false => statuses.wrapping_add(i),
    }
}

/// Begins a persistent operation.
unsafe fn start<F: Foreign>(request: F::Below) -> c_int {
    let Some(own) = find::<F>(request) else {
        // SAFETY: passed on.
        return unsafe { fail_at_self::<F>(class::REQUEST) };
    };
    let mut own = lock(&own);
    if own.active || !own.operation.is_persistent() {
        drop(own);
        // SAFETY: passed on.
        return unsafe { fail_at_self::<F>(class::REQUEST) };
    }
    // SAFETY: persistent, and not active.
    let code = unsafe { own.operation.start() };
    own.active = code == 0;
    own.end = None;
    code
}

/// The program is done with a handle.
unsafe fn free<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: the caller's place.
    let handle = unsafe { request.read() };
    if let Some(own) = find::<F>(handle) {
        let active = { lock(&own).active };
        if active {
            lock(&ORPHANS).push(own);
        }
        forget::<F>(handle);
    }
    // SAFETY: as above.
    unsafe { request.write(F::null(Kind::Request)) };
    // SAFETY: as the caller of a completing function.
    unsafe { advance_orphans::<F>() };
    0
}

/// Moves on what the program has freed.
unsafe fn advance_orphans<F: Foreign>() {
    let orphans = std::mem::take(&mut *lock(&ORPHANS));
    let is_under_way = |entry: &Entry| {
        let Ok(own) = Arc::clone(entry).downcast::<Mutex<Own<F>>>() else {
            return false;
        };
        let mut own = lock(&own);
        // SAFETY: between init and finalize.
        unsafe { own.operation.advance() }.is_none()
    };
    let left: Vec<Entry> = orphans.into_iter().filter(is_under_way).collect();
    lock(&ORPHANS).extend(left);
}

unsafe fn cancel<F: Foreign>(request: F::Below) -> c_int {
    if let Some(own) = find::<F>(request) {
        let mut own = lock(&own);
        if own.active && own.end.is_none() {
            // SAFETY: it is active.
            unsafe { own.operation.cancel() };
        }
    }
    0
}

/// Asks something of a partitioned operation: the answer, and `MPI_ERR_REQUEST` where it is none or not active.
///
/// # Safety
/// Between init and finalize.
pub unsafe fn with_parts<F: Foreign>(
    request: F::Below,
    ask: impl FnOnce(&mut parts::Partitioned<F>, bool) -> Result<(), c_int>,
) -> c_int {
    let answer = match find::<F>(request) {
        None => Err(class::REQUEST),
        Some(own) => {
            let mut own = lock(&own);
            let active = own.active;
            match own.operation.parts() {
                Some(parts) => ask(parts, active),
                None => Err(class::REQUEST),
            }
        }
    };
    match answer {
        Ok(()) => 0,
        // SAFETY: as the caller says.
        Err(class) => unsafe { fail_at_self::<F>(class) },
    }
}
