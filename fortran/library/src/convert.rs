//! Conversion of values: LOGICALs, indices, lengths, and the error code.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

const UNDEFINED: i32 = -32766;
const SUCCESS: i32 = 0;

/// The compiler's values of `.TRUE.` and `.FALSE.`; the defaults are those of gfortran and flang.
static TRUE: AtomicI32 = AtomicI32::new(1);
static FALSE: AtomicI32 = AtomicI32::new(0);

/// Returns the compiler's values of `.TRUE.` and `.FALSE.`.
pub fn logical_values() -> (i32, i32) {
    (TRUE.load(Ordering::Relaxed), FALSE.load(Ordering::Relaxed))
}

/// Sets the compiler's values of `.TRUE.` and `.FALSE.`, which later calls return as LOGICALs.
pub fn set_logical_values((yes, no): (i32, i32)) {
    TRUE.store(yes, Ordering::Relaxed);
    FALSE.store(no, Ordering::Relaxed);
}

/// Converts a LOGICAL for C. Every value other than `.FALSE.` is true.
///
/// # Safety
/// `argument` points to a LOGICAL.
#[inline(always)]
pub unsafe fn logical(argument: *const i32) -> i32 {
    // SAFETY: `argument` points to a LOGICAL by this function's contract.
    let value = unsafe { *argument };
    let (yes, no) = logical_values();
    if value != yes && value != no {
        unknown(value, (yes, no));
    }
    i32::from(value != no)
}

/// Prints a warning, once, about a LOGICAL that has another value than `.TRUE.` and `.FALSE.`.
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

/// Converts an array of LOGICALs for C.
///
/// # Safety
/// `argument` has `count` elements.
pub unsafe fn logicals(argument: *const i32, count: usize) -> Vec<i32> {
    // SAFETY: `argument` has `count` elements by this function's contract.
    (0..count)
        .map(|n| unsafe { logical(argument.add(n)) })
        .collect()
}

/// Returns the compiler's LOGICAL for a truth value.
#[inline(always)]
pub fn of_logical(value: bool) -> i32 {
    if value {
        TRUE.load(Ordering::Relaxed)
    } else {
        FALSE.load(Ordering::Relaxed)
    }
}

/// Stores a C flag (nonzero is true) in a LOGICAL.
///
/// # Safety
/// `argument` points to a LOGICAL.
#[inline(always)]
pub unsafe fn set_logical(argument: *mut i32, flag: i32) {
    // SAFETY: `argument` points to a LOGICAL by this function's contract.
    unsafe { *argument = of_logical(flag != 0) }
}

/// Converts an index of C, counted from 0, to Fortran, counted from 1.
///
/// # Safety
/// `index` points to an INTEGER, which C has set if the outcome is success.
#[inline(always)]
pub unsafe fn one_based(outcome: i32, index: *mut i32) {
    // SAFETY: `index` points to an INTEGER by this function's contract.
    unsafe {
        if outcome == SUCCESS && *index != UNDEFINED {
            *index += 1;
        }
    }
}

/// Converts the first `*count` indices of an array from C to Fortran.
/// C sets the indices also if the outcome is MPI_ERR_IN_STATUS.
///
/// # Safety
/// `indices` has `*count` elements, unless `*count` is MPI_UNDEFINED.
pub unsafe fn all_one_based(outcome: i32, indices: *mut i32, count: *const i32) {
    const ERR_IN_STATUS: i32 = 19;
    if outcome != SUCCESS && outcome != ERR_IN_STATUS {
        return;
    }
    // SAFETY: `indices` has `*count` elements by this function's contract.
    unsafe {
        for n in 0..(*count).max(0) as usize {
            *indices.add(n) += 1;
        }
    }
}

/// Returns the length of an array; 0 for a negative count, which the C library rejects.
#[inline(always)]
pub fn length(count: i64) -> usize {
    count.max(0) as usize
}

/// Stores the error code if the program passed `ierror`.
///
/// # Safety
/// `ierror` is null (absent) or points to an INTEGER.
#[inline(always)]
pub unsafe fn report(ierror: *mut i32, outcome: i32) {
    if !ierror.is_null() {
        // SAFETY: `ierror` is not null, so it points to an INTEGER by this function's contract.
        unsafe { *ierror = outcome }
    }
}

/// Stores the error code of a procedure whose `ierror` is mandatory.
///
/// `mpif.h` has no interfaces, so a program can call a procedure without `ierror`.
/// What the library then finds in its place is the content of a register, often a null pointer.
///
/// # Safety
/// `ierror` points to an INTEGER, or is null.
#[inline(always)]
pub unsafe fn always_report(ierror: *mut i32, outcome: i32, procedure: &'static str) {
    if ierror.is_null() {
        return missing_ierror(procedure);
    }
    // SAFETY: `ierror` is not null, so it points to an INTEGER by this function's contract.
    unsafe { *ierror = outcome }
}

/// Prints an error, once, about a call without the mandatory argument `ierror`.
#[cold]
#[inline(never)]
fn missing_ierror(procedure: &'static str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        printable::eprintln!(
            "{procedure} was called without its last argument, ierror, which mpif.h and `use mpi` require. \
             Here a null pointer was in its place, so nothing was overwritten; such a call can overwrite data of the program. \
             Add the argument, or write `use mpi_f08`, where ierror is optional."
        );
    });
}
