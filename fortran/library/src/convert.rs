//! Values: LOGICALs, indices, lengths, and the error code.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

const UNDEFINED: i32 = -32766;
const SUCCESS: i32 = 0;

/// `.TRUE.` and `.FALSE.` of the compiler; gfortran's and flang's until it is stated otherwise.
static TRUE: AtomicI32 = AtomicI32::new(1);
static FALSE: AtomicI32 = AtomicI32::new(0);

/// `.TRUE.` and `.FALSE.` as the compiler has them.
pub fn logical_values() -> (i32, i32) {
    (TRUE.load(Ordering::Relaxed), FALSE.load(Ordering::Relaxed))
}

/// States which values the compiler has for `.TRUE.` and `.FALSE.`; the values of LOGICALs that are returned from now on.
pub fn set_logical_values((yes, no): (i32, i32)) {
    TRUE.store(yes, Ordering::Relaxed);
    FALSE.store(no, Ordering::Relaxed);
}

/// A LOGICAL for C: everything but `.FALSE.` is true.
///
/// # Safety
/// `argument` points to a LOGICAL.
#[inline(always)]
pub unsafe fn logical(argument: *const i32) -> i32 {
    // SAFETY: the caller states that the argument is readable.
    let value = unsafe { *argument };
    let (yes, no) = logical_values();
    if value != yes && value != no {
        unknown(value, (yes, no));
    }
    i32::from(value != no)
}

/// Reports, once, a LOGICAL that is none of the two values.
#[cold]
#[inline(never)]
fn unknown(value: i32, (yes, no): (i32, i32)) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        printable::eprintln!(
            "a LOGICAL argument is {value}, but MPI takes {yes} for .TRUE. and {no} for .FALSE., as gfortran and flang have them; {value} is taken for .TRUE.. \
             Compile with the option for these values (ifx: -fpscomp logicals; nvfortran: -Munixlogical), \
             or call MPI_Abi_set_fortran_booleans(4, .TRUE., .FALSE.) before MPI_Init."
        );
    });
}

/// An array of LOGICALs for C.
///
/// # Safety
/// `argument` has `count` elements.
pub unsafe fn logicals(argument: *const i32, count: usize) -> Vec<i32> {
    // SAFETY: the caller states the number of elements.
    (0..count)
        .map(|n| unsafe { logical(argument.add(n)) })
        .collect()
}

/// The LOGICAL of a truth value.
#[inline(always)]
pub fn of_logical(value: bool) -> i32 {
    if value {
        TRUE.load(Ordering::Relaxed)
    } else {
        FALSE.load(Ordering::Relaxed)
    }
}

/// Returns a flag of C to Fortran.
///
/// # Safety
/// `argument` points to a LOGICAL.
#[inline(always)]
pub unsafe fn set_logical(argument: *mut i32, flag: i32) {
    // SAFETY: the caller states that the argument is writable.
    unsafe { *argument = of_logical(flag != 0) }
}

/// Counts an index from 1 that C has counted from 0.
///
/// # Safety
/// `index` points to an INTEGER that C has set if the outcome is success.
#[inline(always)]
pub unsafe fn one_based(outcome: i32, index: *mut i32) {
    // SAFETY: the caller states that the argument is readable and writable.
    unsafe {
        if outcome == SUCCESS && *index != UNDEFINED {
            *index += 1;
        }
    }
}

/// The same for the first `*count` elements of an array. An error in one of several requests leaves the indices valid.
///
/// # Safety
/// `indices` has `*count` elements, unless that is MPI_UNDEFINED.
pub unsafe fn all_one_based(outcome: i32, indices: *mut i32, count: *const i32) {
    const ERR_IN_STATUS: i32 = 19;
    if outcome != SUCCESS && outcome != ERR_IN_STATUS {
        return;
    }
    // SAFETY: the caller states the number of elements.
    unsafe {
        for n in 0..(*count).max(0) as usize {
            *indices.add(n) += 1;
        }
    }
}

/// The length of an array; the C library reports a negative one.
#[inline(always)]
pub fn length(count: i64) -> usize {
    count.max(0) as usize
}

/// Stores the error code, if the program has passed `ierror`.
///
/// # Safety
/// `ierror` is null, for an absent argument, or points to an INTEGER.
#[inline(always)]
pub unsafe fn report(ierror: *mut i32, outcome: i32) {
    if !ierror.is_null() {
        // SAFETY: it is not null, so it points to an INTEGER (contract of this function).
        unsafe { *ierror = outcome }
    }
}

/// Returns the error code to a procedure that must be passed a variable for it.
///
/// # Safety
/// `ierror` points to an INTEGER.
#[inline(always)]
pub unsafe fn always_report(ierror: *mut i32, outcome: i32) {
    // SAFETY: `ierror` points to an INTEGER (contract of this function).
    unsafe { *ierror = outcome }
}
