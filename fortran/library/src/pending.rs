//! Copies of array sections that active operations use.
//!
//! A nonblocking or persistent call with a copied section (`copies`) puts the copy in a table.
//! The key is the INTEGER of the request. The procedure that completes the request copies the
//! result to the program's array.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Pmpi};
use crate::copies::{Copied, Copy};
use crate::handle::{self, input};
use std::collections::BTreeMap;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SUCCESS: i32 = 0;
const ERR_IN_STATUS: i32 = 19;
const REQUEST_NULL: i32 = 384;

/// The copies of one request.
pub struct Operation {
    #[allow(
        clippy::vec_box,
        reason = "copies arrive in boxes, and a box is cheaper to move"
    )]
    copies: Vec<Box<Copy>>,
    persistent: bool,
    /// True if the operation has been started and is not complete.
    active: bool,
}

/// The operations with copies, by the INTEGER of the request.
static OPERATIONS: Mutex<BTreeMap<i32, Operation>> = Mutex::new(BTreeMap::new());
/// The length of `OPERATIONS`: programs without copies compare it with 0 and take no lock.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

type Operations = BTreeMap<i32, Operation>;

/// Locks the table, changes it, and updates the number of operations.
fn change<T>(with: impl FnOnce(&mut Operations) -> T) -> T {
    let mut operations: MutexGuard<'_, Operations> =
        OPERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = with(&mut operations);
    NUMBER.store(operations.len(), Ordering::Relaxed);
    found
}

/// Returns true if the table is empty.
/// A relaxed load is enough: a thread that uses a request has synchronised with its creator.
#[inline(always)]
fn none() -> bool {
    NUMBER.load(Ordering::Relaxed) == 0
}

/// Stores the copies of an operation, if it has any, until its request is complete.
///
/// # Safety
/// `request` points to an INTEGER; after a success it is the request that the call has made.
#[inline(always)]
pub unsafe fn keep<const PERSISTENT: bool, const N: usize>(
    outcome: i32,
    request: *const i32,
    buffers: [Copied; N],
) {
    if !buffers.iter().any(Copied::is_copy) {
        // SAFETY: `request` points to an INTEGER by this function's contract.
        unsafe { made(outcome, request) };
    } else {
        let operation = Operation {
            copies: buffers.into_iter().filter_map(Copied::into_copy).collect(),
            persistent: PERSISTENT,
            active: false,
        };
        // SAFETY: `enter` has the same contract as this function.
        unsafe { enter(outcome, request, operation) };
    }
}

/// # Safety
/// The contract is that of [`keep`].
#[cold]
#[inline(never)]
unsafe fn enter(outcome: i32, request: *const i32, mut operation: Operation) {
    if outcome != SUCCESS {
        return;
    }
    // SAFETY: `request` points to an INTEGER by this function's contract.
    let number = unsafe { *request };
    if !operation.persistent {
        // MPI libraries may share one request among all operations that complete immediately.
        if number == REQUEST_NULL || is_complete(number) {
            operation.copies.iter().for_each(|c| c.restore());
            return;
        }
        operation.active = true;
    }
    let stale = change(|operations| operations.insert(number, operation));
    lost(stale);
}

/// Called after a request is created. On success, removes a stale table entry with its number,
/// which remains if C code has completed the earlier operation.
///
/// A failed call leaves the program's variable unchanged, possibly with an active request.
///
/// # Safety
/// `request` points to an INTEGER.
#[inline(always)]
pub unsafe fn made(outcome: i32, request: *const i32) {
    if !none() && outcome == SUCCESS {
        // SAFETY: `request` points to an INTEGER by this function's contract.
        remove_stale(unsafe { *request });
    }
}

#[cold]
#[inline(never)]
fn remove_stale(number: i32) {
    lost(change(|operations| operations.remove(&number)));
}

/// Clears the table in `MPI_Finalize`. C code has completed the remaining requests.
#[inline(always)]
pub fn end() {
    if !none() {
        let left = change(std::mem::take);
        left.into_values()
            .for_each(|operation| lost(Some(operation)));
    }
}

/// Prints a warning about an operation whose result was not copied to the program's array.
fn lost(operation: Option<Operation>) {
    if operation.is_some_and(|o| o.active && o.copies.iter().any(|c| c.is_written())) {
        printable::eprintln!(
            "a nonblocking collective with an array section that is not contiguous was completed by C code, so its result is not in the array: \
             complete the request by a Fortran procedure such as MPI_Wait, or pass a contiguous array."
        );
    }
}

/// Returns true if an operation is complete, without completing its request.
fn is_complete(number: i32) -> bool {
    let mut flag = 0i32;
    // SAFETY: the C library checks the handle; `flag` is a local, and a null status is ignored.
    unsafe {
        let request = input::<handle::Request>(&raw const number);
        let outcome = Pmpi::MPI_Request_get_status(request, (&raw mut flag).cast(), null_mut());
        outcome == SUCCESS && flag != 0
    }
}

/// The operations with copies among the requests of a call: position, request number, operation.
///
/// The operations are not in the table during the call, because another thread may create a request
/// with the number of a request that this call completes.
pub struct Watched(Vec<(usize, i32, Operation)>);

/// Removes the active operations from the table before a call that may complete them.
///
/// # Safety
/// `requests` has `count` elements.
#[inline(always)]
pub unsafe fn among(requests: *const i32, count: usize) -> Watched {
    if none() {
        return Watched(Vec::new());
    }
    // SAFETY: `found_among` has the same contract as this function.
    unsafe { found_among(requests, count) }
}

/// # Safety
/// `requests` has `count` elements.
#[cold]
#[inline(never)]
unsafe fn found_among(requests: *const i32, count: usize) -> Watched {
    // SAFETY: `n` is below `count`, the number of elements by this function's contract.
    let numbers = (0..count).map(|n| (n, unsafe { *requests.add(n) }));
    Watched(change(|operations| {
        let mut take = |number| match operations.get(&number) {
            Some(operation) if operation.active => operations.remove(&number),
            _ => None,
        };
        numbers
            .filter_map(|(n, number)| Some((n, number, take(number)?)))
            .collect()
    }))
}

/// The requests that a procedure has reported as complete, by their positions in Fortran.
pub struct Reported {
    all: bool,
    positions: *const i32,
    count: usize,
}

impl Reported {
    /// Returns a value that reports all requests as complete if `all`, else none.
    #[inline(always)]
    pub fn all(all: bool) -> Reported {
        Reported {
            all,
            positions: null(),
            count: 0,
        }
    }

    /// Returns a value that reports the request at a position; none for `MPI_UNDEFINED`.
    #[inline(always)]
    pub fn one(position: *const i32) -> Reported {
        Reported {
            all: false,
            positions: position,
            count: 1,
        }
    }

    /// Returns a value that reports the requests at `*count` positions.
    ///
    /// # Safety
    /// `count` points to an INTEGER.
    #[inline(always)]
    pub unsafe fn some(outcome: i32, positions: *const i32, count: *const i32) -> Reported {
        // After another error the positions are undefined.
        let known = outcome == SUCCESS || outcome == ERR_IN_STATUS;
        Reported {
            all: false,
            positions,
            count: if known {
                // SAFETY: `count` points to an INTEGER by this function's contract.
                unsafe { *count }.max(0) as usize
            } else {
                0
            },
        }
    }

    /// Returns true if the request at position `n` (counted from 0) is complete.
    ///
    /// # Safety
    /// The array of positions is still readable and has `count` elements.
    unsafe fn has(&self, n: usize) -> bool {
        // SAFETY: `i` is below `count` (contract of this function).
        let is_here = |i| unsafe { *self.positions.add(i) } as i64 == n as i64 + 1;
        self.all || (0..self.count).any(is_here)
    }
}

impl Watched {
    /// Copies the results of completed operations to the program's arrays.
    ///
    /// # Safety
    /// `requests` is the array that [`among`] got, and the arrays of `reported` are still readable.
    #[inline(always)]
    pub unsafe fn completed(self, requests: *const i32, reported: Reported) {
        if !self.0.is_empty() {
            // SAFETY: `completed` has the same contract as this function.
            unsafe { completed(self.0, requests, reported) }
        }
    }
}

/// # Safety
/// The contract is that of [`Watched::completed`].
#[cold]
#[inline(never)]
unsafe fn completed(
    watched: Vec<(usize, i32, Operation)>,
    requests: *const i32,
    reported: Reported,
) {
    for (n, number, mut operation) in watched {
        // SAFETY: `n` is a position that `among` found in the array (contract of this function).
        if unsafe { *requests.add(n) == REQUEST_NULL || reported.has(n) } {
            operation.copies.iter().for_each(|copy| copy.restore());
            operation.active = false;
        }
        // A persistent operation may be started again, and an incomplete one is still active.
        if operation.persistent || operation.active {
            change(|operations| operations.insert(number, operation));
        }
    }
}

/// Updates the copies of persistent operations, before a call starts the operations.
///
/// # Safety
/// `requests` has `count` elements.
#[inline(always)]
pub unsafe fn start(requests: *const i32, count: usize) {
    if !none() {
        // SAFETY: `refresh` has the same contract as this function.
        unsafe { refresh(requests, count) }
    }
}

/// # Safety
/// `requests` has `count` elements.
#[cold]
#[inline(never)]
unsafe fn refresh(requests: *const i32, count: usize) {
    change(|operations| {
        for n in 0..count {
            // SAFETY: `n` is below `count`, the number of elements by this function's contract.
            let number = unsafe { *requests.add(n) };
            if let Some(operation) = operations.get_mut(&number).filter(|o| o.persistent) {
                operation.copies.iter_mut().for_each(|c| c.refresh());
                operation.active = true;
            }
        }
    });
}

/// The operation of a request that the current call frees, and the INTEGER of the request.
pub struct Freeing(Option<(i32, Operation)>);

/// Removes the operation of a request from the table, before a call that frees the request.
///
/// # Safety
/// `request` points to an INTEGER.
#[inline(always)]
pub unsafe fn freeing(request: *const i32) -> Freeing {
    if none() {
        return Freeing(None);
    }
    // SAFETY: `request` points to an INTEGER by this function's contract.
    let number = unsafe { *request };
    Freeing(change(|operations| {
        Some((number, operations.remove(&number)?))
    }))
}

impl Freeing {
    /// Drops the copies if the request is freed, unless the operation is active and uses them.
    #[inline(always)]
    pub fn freed(self, outcome: i32) {
        if let Some((number, operation)) = self.0 {
            freed(outcome, number, operation);
        }
    }
}

#[cold]
#[inline(never)]
fn freed(outcome: i32, number: i32, operation: Operation) {
    if outcome != SUCCESS {
        change(|operations| operations.insert(number, operation));
    } else if operation.active {
        std::mem::forget(operation);
    }
}
