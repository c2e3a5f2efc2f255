//! Functions with arrays of requests, which are updated in place, and with arrays of statuses.
//!
//! Results are copied to the program's arrays on drop, even if an exception unwinds the call.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::{Array, BLANK, ShortArray, StatusOut, code_out, handles_in, store};
use crate::family::{Family, Kind};
use std::ffi::c_int;

/// The program's array of requests, and the requests converted to the backend's ABI.
struct Requests<'a, F: Family> {
    converted: Array<'a, F::Below>,
    place: *mut F::Handle,
}

impl<'a, F: Family> Requests<'a, F> {
    /// # Safety
    /// `place` is null or has `count` requests.
    #[inline(always)]
    unsafe fn new(
        short: &'a mut ShortArray<F::Below>,
        place: *mut F::Handle,
        count: c_int,
    ) -> Self {
        Requests {
            // SAFETY: `place` is null or has `count` requests, by contract.
            converted: unsafe { handles_in::<F>(short, Kind::Request, place, count) },
            place,
        }
    }

    #[inline(always)]
    fn argument(&mut self) -> *mut F::Below {
        self.converted.argument_mut()
    }
}

impl<F: Family> Drop for Requests<'_, F> {
    /// Stores the requests that the backend has changed in the program's array.
    #[inline(always)]
    fn drop(&mut self) {
        for (i, request) in self.converted.elements().iter().enumerate() {
            let now = F::handle_out(Kind::Request, *request);
            // SAFETY: `i` is below the length of the program's array, by contract of `new`.
            unsafe {
                let place = self.place.add(i);
                let before = place.read_unaligned();
                if before != now {
                    F::request_left(F::handle_in(Kind::Request, before));
                    place.write_unaligned(now);
                }
            }
        }
    }
}

/// The program's array of statuses. The backend may fill only the first statuses.
struct Statuses<'a, F: Family> {
    filled: Array<'a, F::BelowStatus>,
    place: *mut F::Status,
}

impl<'a, F: Family> Statuses<'a, F> {
    /// # Safety
    /// `place` is null, ignored, or has `count` statuses.
    #[inline(always)]
    unsafe fn new(
        short: &'a mut ShortArray<F::BelowStatus>,
        place: *mut F::Status,
        count: c_int,
    ) -> Self {
        let is_ignored = place.is_null() || place.addr() == F::STATUS_IGNORE;
        Statuses {
            filled: Array::new(short, is_ignored, count, |_| F::status_below(&BLANK)),
            place,
        }
    }

    #[inline(always)]
    fn argument(&mut self) -> *mut F::BelowStatus {
        match self.filled.argument_mut() {
            none if none.is_null() => std::ptr::without_provenance_mut(F::BELOW_STATUS_IGNORE),
            statuses => statuses,
        }
    }
}

impl<F: Family> Drop for Statuses<'_, F> {
    #[inline(always)]
    fn drop(&mut self) {
        for (i, status) in self.filled.elements().iter().enumerate() {
            // SAFETY: `i` is below the length of the program's array, by contract of `new`.
            unsafe { store::<F>(status, self.place.add(i)) }
        }
    }
}

/// Calls `call` with converted requests, and stores changed requests in the program's array.
///
/// # Safety
/// `requests` is null or has `count` requests.
#[inline(always)]
unsafe fn updating<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    call: impl FnOnce(*mut F::Below) -> c_int,
) -> c_int {
    let mut short = ShortArray::new();
    // SAFETY: `requests` is null or has `count` requests, by contract.
    let mut list = unsafe { Requests::<F>::new(&mut short, requests, count) };
    let code = call(list.argument());
    code_out::<F>(code)
}

/// Calls `call` with converted requests, which the backend does not change.
///
/// # Safety
/// `requests` is null or has `count` requests.
#[inline(always)]
unsafe fn reading<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    call: impl FnOnce(*const F::Below) -> c_int,
) -> c_int {
    let mut short = ShortArray::new();
    // SAFETY: `requests` is null or has `count` requests, by contract.
    let list = unsafe { handles_in::<F>(&mut short, Kind::Request, requests, count) };
    code_out::<F>(call(list.argument()))
}

/// Calls `call` with an array of statuses, and stores the filled ones in the program's array.
///
/// # Safety
/// `statuses` is null, ignored, or has `count` statuses.
#[inline(always)]
unsafe fn filling<F: Family>(
    count: c_int,
    statuses: *mut F::Status,
    call: impl FnOnce(*mut F::BelowStatus) -> c_int,
) -> c_int {
    let mut short = ShortArray::new();
    // SAFETY: `statuses` is null, ignored, or has `count` statuses, by contract.
    let mut filled = unsafe { Statuses::<F>::new(&mut short, statuses, count) };
    call(filled.argument())
}

/// Calls `call` with one status, and stores it in the program's status.
///
/// # Safety
/// `status` is null, ignored, or points to a status.
#[inline(always)]
unsafe fn filling_one<F: Family>(
    status: *mut F::Status,
    call: impl FnOnce(*mut F::BelowStatus) -> c_int,
) -> c_int {
    // SAFETY: `status` is null, ignored, or points to a status, by contract.
    let mut filled = unsafe { StatusOut::<F>::new(status) };
    call(filled.argument())
}

pub unsafe fn MPI_Waitall<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            filling::<F>(count, statuses, |filled| {
                (backend::MPI_Waitall::<F>())(count, list, filled)
            })
        })
    }
}

pub unsafe fn MPI_Testall<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    flag: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            filling::<F>(count, statuses, |filled| {
                (backend::MPI_Testall::<F>())(count, list, flag, filled)
            })
        })
    }
}

pub unsafe fn MPI_Waitany<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    index: *mut c_int,
    status: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            filling_one::<F>(status, |filled| {
                (backend::MPI_Waitany::<F>())(count, list, index, filled)
            })
        })
    }
}

pub unsafe fn MPI_Testany<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            filling_one::<F>(status, |filled| {
                (backend::MPI_Testany::<F>())(count, list, index, flag, filled)
            })
        })
    }
}

pub unsafe fn MPI_Waitsome<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            filling::<F>(count, statuses, |filled| {
                (backend::MPI_Waitsome::<F>())(count, list, completed, indices, filled)
            })
        })
    }
}

pub unsafe fn MPI_Testsome<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            filling::<F>(count, statuses, |filled| {
                (backend::MPI_Testsome::<F>())(count, list, completed, indices, filled)
            })
        })
    }
}

pub unsafe fn MPI_Startall<F: Family>(count: c_int, requests: *mut F::Handle) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        updating::<F>(count, requests, |list| {
            (backend::MPI_Startall::<F>())(count, list)
        })
    }
}

pub unsafe fn MPI_Request_get_status_all<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    flag: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        reading::<F>(count, requests, |list| {
            filling::<F>(count, statuses, |filled| {
                (backend::MPI_Request_get_status_all::<F>())(count, list, flag, filled)
            })
        })
    }
}

pub unsafe fn MPI_Request_get_status_any<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        reading::<F>(count, requests, |list| {
            filling_one::<F>(status, |filled| {
                (backend::MPI_Request_get_status_any::<F>())(count, list, index, flag, filled)
            })
        })
    }
}

pub unsafe fn MPI_Request_get_status_some<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        reading::<F>(count, requests, |list| {
            filling::<F>(count, statuses, |filled| {
                (backend::MPI_Request_get_status_some::<F>())(
                    count, list, completed, indices, filled,
                )
            })
        })
    }
}
