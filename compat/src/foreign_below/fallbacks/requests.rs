//! Fallbacks for `MPI_Request_get_status_all` etc., which query the requests one by one.

use super::Foreign;
use crate::backend;
use crate::family::{Kind, UNDEFINED};
use crate::foreign_below::emulated_requests::place_of_status;
use std::ffi::c_int;

unsafe fn ask<F: Foreign>(
    requests: *const F::Below,
    i: usize,
    status: *mut F::BelowStatus,
) -> Result<bool, c_int> {
    let mut complete = 0;
    // SAFETY: `i` is below the length of the caller's arrays.
    let code = unsafe {
        (backend::MPI_Request_get_status::<F>())(*requests.add(i), &mut complete, status)
    };
    if code == 0 {
        Ok(complete != 0)
    } else {
        Err(code)
    }
}

fn many(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

pub unsafe extern "C-unwind" fn MPI_Request_get_status_all<F: Foreign>(
    count: c_int,
    requests: *const F::Below,
    flag: *mut c_int,
    statuses: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        flag.write(1);
        for i in 0..many(count) {
            match ask::<F>(requests, i, place_of_status::<F>(statuses, i)) {
                Ok(true) => {}
                Ok(false) => flag.write(0),
                Err(code) => return code,
            }
        }
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_Request_get_status_any<F: Foreign>(
    count: c_int,
    requests: *const F::Below,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut F::BelowStatus,
) -> c_int {
    let mut active = false;
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        for i in 0..many(count) {
            if *requests.add(i) == F::null(Kind::Request) {
                continue;
            }
            active = true;
            match ask::<F>(requests, i, status) {
                Ok(true) => {
                    index.write(i as c_int);
                    flag.write(1);
                    return 0;
                }
                Ok(false) => {}
                Err(code) => return code,
            }
        }
        index.write(UNDEFINED);
        flag.write((!active).into());
        if !active {
            let null = F::null(Kind::Request);
            let mut complete = 0;
            let code = (backend::MPI_Request_get_status::<F>())(null, &mut complete, status);
            if code == 0 && status.addr() != F::BELOW_STATUS_IGNORE {
                // `MPI_ERROR` in the empty status is `MPI_SUCCESS`.
                // The backend does not set this field.
                let mut empty = F::status_above(&status.read());
                empty.error = 0;
                status.write(F::status_below(&empty));
            }
            return code;
        }
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_Request_get_status_some<F: Foreign>(
    count: c_int,
    requests: *const F::Below,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::BelowStatus,
) -> c_int {
    let (mut active, mut found) = (false, 0);
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        for i in 0..many(count) {
            if *requests.add(i) == F::null(Kind::Request) {
                continue;
            }
            active = true;
            match ask::<F>(requests, i, place_of_status::<F>(statuses, found)) {
                Ok(true) => {
                    indices.add(found).write(i as c_int);
                    found += 1;
                }
                Ok(false) => {}
                Err(code) => return code,
            }
        }
        completed.write(if active { found as c_int } else { UNDEFINED });
    }
    0
}
