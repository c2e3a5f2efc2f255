//! Arrays of requests, which are updated where they lie, and arrays of statuses.
#![allow(unsafe_code)]

use crate::below;
use crate::convert::{Array, BLANK, StatusOut, code_out, handles_in, store};
use crate::family::{Family, Kind};
use std::ffi::c_int;

/// The program's requests in the form of the library below.
struct Requests<F: Family> {
    converted: Array<F::Below>,
    place: *mut F::Handle,
    count: c_int,
}

impl<F: Family> Requests<F> {
    #[inline(always)]
    fn new(place: *mut F::Handle, count: c_int) -> Self {
        Requests {
            converted: Array::empty(),
            place,
            count,
        }
    }

    /// # Safety
    /// `place` is null or has `count` requests.
    #[inline(always)]
    unsafe fn argument(&mut self) -> *mut F::Below {
        if !self.place.is_null() {
            self.converted.fill(self.count, |i| {
                // SAFETY: as the caller says.
                F::handle_in(Kind::Request, unsafe { self.place.add(i).read_unaligned() })
            });
        }
        self.converted.argument_mut()
    }

    /// Writes those that the call changed.
    ///
    /// # Safety
    /// As for `argument`.
    #[inline(always)]
    unsafe fn finish(&self) {
        for (i, request) in self.converted.elements().iter().enumerate() {
            let now = F::handle_out(Kind::Request, *request);
            // SAFETY: the program's array has that many.
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

/// The program's array of statuses, which the call fills as far as it goes.
struct Statuses<F: Family> {
    filled: Array<F::BelowStatus>,
    place: *mut F::Status,
    count: c_int,
}

impl<F: Family> Statuses<F> {
    #[inline(always)]
    fn new(place: *mut F::Status, count: c_int) -> Self {
        Statuses {
            filled: Array::empty(),
            place,
            count,
        }
    }

    #[inline(always)]
    fn argument(&mut self) -> *mut F::BelowStatus {
        if self.place.is_null() || self.place.addr() == F::STATUS_IGNORE {
            return std::ptr::without_provenance_mut(F::BELOW_STATUS_IGNORE);
        }
        self.filled.fill(self.count, |_| F::status_below(&BLANK));
        self.filled.argument_mut()
    }

    /// # Safety
    /// The program's array has as many statuses as it said.
    #[inline(always)]
    unsafe fn finish(&self) {
        for (i, status) in self.filled.elements().iter().enumerate() {
            // SAFETY: passed on.
            unsafe { store::<F>(status, self.place.add(i)) }
        }
    }
}

pub unsafe fn MPI_Waitall<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let mut filled = Statuses::<F>::new(statuses, count);
        let code = (below::MPI_Waitall::<F>())(count, list.argument(), filled.argument());
        list.finish();
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Testall<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    flag: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let mut filled = Statuses::<F>::new(statuses, count);
        let code = (below::MPI_Testall::<F>())(count, list.argument(), flag, filled.argument());
        list.finish();
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Waitany<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    index: *mut c_int,
    status: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let mut filled = StatusOut::<F>::new(status);
        let code = (below::MPI_Waitany::<F>())(count, list.argument(), index, filled.argument());
        list.finish();
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Testany<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let mut filled = StatusOut::<F>::new(status);
        let code =
            (below::MPI_Testany::<F>())(count, list.argument(), index, flag, filled.argument());
        list.finish();
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Waitsome<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let mut filled = Statuses::<F>::new(statuses, count);
        let code = (below::MPI_Waitsome::<F>())(
            count,
            list.argument(),
            completed,
            indices,
            filled.argument(),
        );
        list.finish();
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Testsome<F: Family>(
    count: c_int,
    requests: *mut F::Handle,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let mut filled = Statuses::<F>::new(statuses, count);
        let code = (below::MPI_Testsome::<F>())(
            count,
            list.argument(),
            completed,
            indices,
            filled.argument(),
        );
        list.finish();
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Startall<F: Family>(count: c_int, requests: *mut F::Handle) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let mut list = Requests::<F>::new(requests, count);
        let code = (below::MPI_Startall::<F>())(count, list.argument());
        list.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Request_get_status_all<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    flag: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let list = handles_in::<F>(Kind::Request, requests, count);
        let mut filled = Statuses::<F>::new(statuses, count);
        let code = (below::MPI_Request_get_status_all::<F>())(
            count,
            list.argument(),
            flag,
            filled.argument(),
        );
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Request_get_status_any<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let list = handles_in::<F>(Kind::Request, requests, count);
        let mut filled = StatusOut::<F>::new(status);
        let code = (below::MPI_Request_get_status_any::<F>())(
            count,
            list.argument(),
            index,
            flag,
            filled.argument(),
        );
        filled.finish();
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_Request_get_status_some<F: Family>(
    count: c_int,
    requests: *const F::Handle,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::Status,
) -> c_int {
    // SAFETY: the arguments are the program's, which keeps to what the standard asks of a caller.
    unsafe {
        let list = handles_in::<F>(Kind::Request, requests, count);
        let mut filled = Statuses::<F>::new(statuses, count);
        let code = (below::MPI_Request_get_status_some::<F>())(
            count,
            list.argument(),
            completed,
            indices,
            filled.argument(),
        );
        filled.finish();
        code_out::<F>(code)
    }
}
