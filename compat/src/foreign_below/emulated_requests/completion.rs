//! Replacements of `MPI_Wait`, `MPI_Testall` etc. for arrays of emulated and backend requests.
//!
//! The backend receives the array with null requests in place of the emulated ones.
//! So the backend makes progress and reports errors as usual.
//! Between calls of the backend, the emulated requests and their backend operations are advanced.

use super::{
    End, State, advance, cancel, empty, free, is_emulated, place_of_status, start, take, tell,
};
use crate::family::{Kind, UNDEFINED};
use crate::foreign_below::Foreign;
use crate::foreign_below::fortran::class_below;
use crate::foreign_below::interposed::{original, put_in_front};
use crate::foreign_below::standard::class;
use std::ffi::c_int;

/// Redirects the slots of all functions with request arguments to the functions of this module.
pub fn prepare<F: Foreign>() {
    put_in_front! {
        MPI_Wait MPI_Test MPI_Waitall MPI_Testall MPI_Waitany MPI_Testany MPI_Waitsome MPI_Testsome
        MPI_Start MPI_Startall MPI_Request_free MPI_Cancel MPI_Request_get_status
    }
}

unsafe fn list<'a, F: Foreign>(requests: *mut F::Below, count: c_int) -> &'a mut [F::Below] {
    match usize::try_from(count) {
        // SAFETY: the program's array has `count` elements.
        Ok(count @ 1..) if !requests.is_null() => unsafe {
            std::slice::from_raw_parts_mut(requests, count)
        },
        _ => &mut [],
    }
}

/// Returns the indices of the emulated requests, and a copy of the array for the backend.
/// The copy has null requests at these indices. Returns `None` if no request is emulated.
fn split<F: Foreign>(all: &[F::Below]) -> Option<(Vec<usize>, Vec<F::Below>)> {
    let emulated: Vec<usize> = (0..all.len())
        .filter(|i| is_emulated::<F>(all[*i]))
        .collect();
    if emulated.is_empty() {
        return None;
    }
    let theirs = all.iter().map(|request| match is_emulated::<F>(*request) {
        true => F::null(Kind::Request),
        false => *request,
    });
    Some((emulated, theirs.collect()))
}

/// Copies the backend's requests to the program's array after a call, except the emulated ones.
fn join<F: Foreign>(all: &mut [F::Below], emulated: &[usize], theirs: &[F::Below]) {
    for (i, (request, now)) in all.iter_mut().zip(theirs).enumerate() {
        if !emulated.contains(&i) {
            *request = *now;
        }
    }
}

/// Returns the status with `MPI_ERROR` set to the operation's error code.
fn with_code<F: Foreign>((status, code): End<F>) -> F::BelowStatus {
    let mut inner = F::status_above(&status);
    inner.error = code;
    F::status_below(&inner)
}

/// Sets `MPI_ERROR` to success in the statuses of successful operations.
/// Used if an emulated operation in the same call has failed.
unsafe fn tell_that_all_is_well<F: Foreign>(
    statuses: *mut F::BelowStatus,
    these: impl Iterator<Item = usize>,
) {
    for i in these {
        let place = place_of_status::<F>(statuses, i);
        if place.addr() != F::BELOW_STATUS_IGNORE {
            // SAFETY: the caller's array has an element for each of these indices.
            // The backend has written these elements.
            unsafe { tell::<F>(place, &with_code::<F>((place.read(), 0))) };
        }
    }
}

/// Calls `ask` until it returns a result. Yields the core between calls.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::yield_now();
    }
}

/// Returns the result of an emulated request that has ended or is inactive, otherwise `None`.
unsafe fn ended<F: Foreign>(request: F::Below) -> Option<End<F>> {
    // SAFETY: only completion functions (`MPI_Test`, `MPI_Wait` and so on) call this function,
    // and the standard allows them only while MPI is initialized.
    match unsafe { advance::<F>(request) } {
        State::Inactive => Some((empty::<F>(), 0)),
        State::Ended(end) => Some(end),
        State::Pending => None,
    }
}

// SAFETY of all functions below: the exported functions call them, not the backend's functions.
// The arguments are the program's, which the standard requires to be valid.

unsafe extern "C-unwind" fn MPI_Test<F: Foreign>(
    request: *mut F::Below,
    flag: *mut c_int,
    status: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if !is_emulated::<F>(*request) {
            return original!(MPI_Test)(request, flag, status);
        }
        let end = ended::<F>(*request);
        flag.write(end.is_some().into());
        let Some((found, code)) = end else { return 0 };
        tell::<F>(status, &found);
        take::<F>(request);
        code
    }
}

unsafe extern "C-unwind" fn MPI_Wait<F: Foreign>(
    request: *mut F::Below,
    status: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if !is_emulated::<F>(*request) {
            return original!(MPI_Wait)(request, status);
        }
        let mut flag = 0;
        until(|| {
            let code = MPI_Test::<F>(request, &raw mut flag, status);
            (flag != 0).then_some(code)
        })
    }
}

unsafe extern "C-unwind" fn MPI_Request_get_status<F: Foreign>(
    request: F::Below,
    flag: *mut c_int,
    status: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if !is_emulated::<F>(request) {
            return original!(MPI_Request_get_status)(request, flag, status);
        }
        let end = ended::<F>(request);
        flag.write(end.is_some().into());
        if let Some((found, _)) = end {
            tell::<F>(status, &found);
        }
    }
    0
}

/// Stores the statuses of emulated requests, whose operations have ended, and ends the requests.
/// Returns the code of `MPI_Waitall` or `MPI_Testall`.
unsafe fn finish_all<F: Foreign>(
    all: &mut [F::Below],
    emulated: &[usize],
    code: c_int,
    statuses: *mut F::BelowStatus,
) -> c_int {
    let in_status = class_below::<F>(class::IN_STATUS);
    let mut result = code;
    let mut ends = Vec::with_capacity(emulated.len());
    // SAFETY: `all` and `statuses` are the caller's arrays, which have the same length.
    // `emulated` has indices of `all`.
    unsafe {
        for &i in emulated {
            let end = ended::<F>(all[i]).unwrap_or_else(|| (empty::<F>(), 0));
            if end.1 != 0 && result == 0 {
                result = in_status;
                let others = (0..all.len()).filter(|i| !emulated.contains(i));
                tell_that_all_is_well::<F>(statuses, others);
            }
            ends.push(end);
        }
        for (&i, end) in emulated.iter().zip(ends) {
            let shown = if result == 0 {
                end.0
            } else {
                with_code::<F>(end)
            };
            tell::<F>(place_of_status::<F>(statuses, i), &shown);
            take::<F>(&raw mut all[i]);
        }
    }
    result
}

unsafe extern "C-unwind" fn MPI_Waitall<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
    statuses: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let all = list::<F>(requests, count);
        let Some((emulated, mut theirs)) = split::<F>(all) else {
            return original!(MPI_Waitall)(count, requests, statuses);
        };
        until(|| {
            let all_ended = emulated.iter().all(|i| ended::<F>(all[*i]).is_some());
            all_ended.then_some(())
        });
        let code = original!(MPI_Waitall)(count, theirs.as_mut_ptr(), statuses);
        join::<F>(all, &emulated, &theirs);
        finish_all::<F>(all, &emulated, code, statuses)
    }
}

unsafe extern "C-unwind" fn MPI_Testall<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
    flag: *mut c_int,
    statuses: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let all = list::<F>(requests, count);
        let Some((emulated, mut theirs)) = split::<F>(all) else {
            return original!(MPI_Testall)(count, requests, flag, statuses);
        };
        flag.write(0);
        if emulated.iter().any(|i| ended::<F>(all[*i]).is_none()) {
            return 0;
        }
        let code = original!(MPI_Testall)(count, theirs.as_mut_ptr(), flag, statuses);
        join::<F>(all, &emulated, &theirs);
        if flag.read() == 0 {
            return code;
        }
        finish_all::<F>(all, &emulated, code, statuses)
    }
}

/// Tests once whether any operation has completed.
/// Returns the index of a completed operation, and true if any operation was active.
/// Returns the error code if the completed operation has failed.
unsafe fn any<F: Foreign>(
    all: &mut [F::Below],
    emulated: &[usize],
    theirs: &mut [F::Below],
    status: *mut F::BelowStatus,
) -> Result<(Option<usize>, bool), c_int> {
    let mut active = false;
    // SAFETY: these are the caller's arrays, which have the same length, and its status argument.
    unsafe {
        for &i in emulated {
            match advance::<F>(all[i]) {
                State::Inactive => {}
                State::Pending => active = true,
                State::Ended((found, code)) => {
                    tell::<F>(status, &found);
                    take::<F>(&raw mut all[i]);
                    return match code {
                        0 => Ok((Some(i), true)),
                        code => Err(code),
                    };
                }
            }
        }
        let (mut index, mut flag) = (UNDEFINED, 0);
        let count = c_int::try_from(theirs.len()).unwrap_or(c_int::MAX);
        let code = original!(MPI_Testany)(
            count,
            theirs.as_mut_ptr(),
            &raw mut index,
            &raw mut flag,
            status,
        );
        join::<F>(all, emulated, theirs);
        if code != 0 {
            return Err(code);
        }
        match (flag != 0, usize::try_from(index)) {
            (true, Ok(index)) => Ok((Some(index), true)),
            (true, Err(_)) => Ok((None, active)),
            (false, _) => Ok((None, true)),
        }
    }
}

unsafe extern "C-unwind" fn MPI_Testany<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let all = list::<F>(requests, count);
        let Some((emulated, mut theirs)) = split::<F>(all) else {
            return original!(MPI_Testany)(count, requests, index, flag, status);
        };
        index.write(UNDEFINED);
        match any::<F>(all, &emulated, &mut theirs, status) {
            Ok((Some(found), _)) => {
                index.write(found as c_int);
                flag.write(1);
                0
            }
            Ok((None, active)) => {
                if !active {
                    tell::<F>(status, &empty::<F>());
                }
                flag.write((!active).into());
                0
            }
            Err(code) => {
                flag.write(1);
                code
            }
        }
    }
}

unsafe extern "C-unwind" fn MPI_Waitany<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
    index: *mut c_int,
    status: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if split::<F>(list::<F>(requests, count)).is_none() {
            return original!(MPI_Waitany)(count, requests, index, status);
        }
        let mut flag = 0;
        until(|| {
            let code = MPI_Testany::<F>(count, requests, index, &raw mut flag, status);
            (code != 0 || flag != 0).then_some(code)
        })
    }
}

unsafe extern "C-unwind" fn MPI_Testsome<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let all = list::<F>(requests, count);
        let Some((emulated, mut theirs)) = split::<F>(all) else {
            return original!(MPI_Testsome)(count, requests, completed, indices, statuses);
        };
        let code =
            original!(MPI_Testsome)(count, theirs.as_mut_ptr(), completed, indices, statuses);
        join::<F>(all, &emulated, &theirs);
        let mut found = usize::try_from(completed.read()).unwrap_or(0);
        let mut active = completed.read() != UNDEFINED;
        let (mut result, before) = (code, found);
        for i in emulated {
            match advance::<F>(all[i]) {
                State::Inactive => {}
                State::Pending => active = true,
                State::Ended(end) => {
                    active = true;
                    if end.1 != 0 {
                        result = class_below::<F>(class::IN_STATUS);
                        if code == 0 {
                            tell_that_all_is_well::<F>(statuses, 0..before);
                        }
                    }
                    tell::<F>(place_of_status::<F>(statuses, found), &with_code::<F>(end));
                    indices.add(found).write(i as c_int);
                    found += 1;
                    take::<F>(&raw mut all[i]);
                }
            }
        }
        completed.write(if active { found as c_int } else { UNDEFINED });
        result
    }
}

unsafe extern "C-unwind" fn MPI_Waitsome<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
    completed: *mut c_int,
    indices: *mut c_int,
    statuses: *mut F::BelowStatus,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if split::<F>(list::<F>(requests, count)).is_none() {
            return original!(MPI_Waitsome)(count, requests, completed, indices, statuses);
        }
        until(|| {
            let code = MPI_Testsome::<F>(count, requests, completed, indices, statuses);
            (code != 0 || completed.read() != 0).then_some(code)
        })
    }
}

unsafe extern "C-unwind" fn MPI_Start<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        match is_emulated::<F>(*request) {
            true => start::<F>(*request),
            false => original!(MPI_Start)(request),
        }
    }
}

unsafe extern "C-unwind" fn MPI_Startall<F: Foreign>(
    count: c_int,
    requests: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let all = list::<F>(requests, count);
        if split::<F>(all).is_none() {
            return original!(MPI_Startall)(count, requests);
        }
        for request in all {
            match MPI_Start::<F>(request) {
                0 => {}
                code => return code,
            }
        }
    }
    0
}

unsafe extern "C-unwind" fn MPI_Request_free<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        match is_emulated::<F>(*request) {
            true => free::<F>(request),
            false => original!(MPI_Request_free)(request),
        }
    }
}

unsafe extern "C-unwind" fn MPI_Cancel<F: Foreign>(request: *mut F::Below) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        match is_emulated::<F>(*request) {
            true => cancel::<F>(*request),
            false => original!(MPI_Cancel)(request),
        }
    }
}
