//! Attributes: pointers in C, integers in Fortran.
//!
//! An attribute that Fortran sets is a pointer to a cell with the integer: that is what a C program has to get. Fortran gets the integer back, because
//! the addresses of cells are known. An attribute that C has set is its pointer as an integer.
//! There is one cell for each value, for as long as the process lives: C copies pointers to it when a communicator is duplicated.
//!
//! The values of predefined attributes are behind the pointers that C returns.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, input};
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

const TAG_UB: i32 = 501;
const UNIVERSE_SIZE: i32 = 507;
const WIN_DISP_UNIT: i32 = 602;
const WIN_SIZE: i32 = 603;
const WIN_CREATE_FLAVOR: i32 = 604;
const WIN_MODEL: i32 = 605;

/// The cells: by their values, and their addresses.
#[derive(Default)]
struct Cells {
    by_value: BTreeMap<i64, usize>,
    addresses: BTreeSet<usize>,
}

static CELLS: Mutex<Option<Cells>> = Mutex::new(None);

/// The pointer that C gets for an integer of Fortran.
pub(super) fn stored(value: i64) -> Ptr {
    let mut cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let cells = cells.get_or_insert_default();
    let address = *cells
        .by_value
        .entry(value)
        .or_insert_with(|| Box::into_raw(Box::new(value)).expose_provenance());
    cells.addresses.insert(address);
    std::ptr::with_exposed_provenance_mut(address)
}

/// The integer that Fortran gets for a pointer: the value of a cell, or the pointer that C has set.
pub(super) fn loaded(pointer: Ptr) -> i64 {
    let cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_cell = cells
        .as_ref()
        .is_some_and(|c| c.addresses.contains(&(pointer as usize)));
    if is_cell {
        // SAFETY: the address is one that `stored` has leaked from a box with an `i64`, and it has exposed its provenance.
        unsafe { *pointer.cast::<i64>() }
    } else {
        pointer as usize as i64
    }
}

/// The value in Fortran of an attribute that C has returned as a pointer.
///
/// # Safety
/// The C library has returned the pointer for this keyval.
unsafe fn value(keyval: i32, pointer: Ptr) -> i64 {
    // SAFETY: the values of these predefined keyvals are pointers to an `int`, that of MPI_WIN_SIZE is one to an `MPI_Aint` (MPI 5.0,
    // sections 9.1.2 and 12.2.6); any other pointer is not dereferenced unless it is one of the cells.
    unsafe {
        match keyval {
            _ if pointer.is_null() => 0,
            TAG_UB..=UNIVERSE_SIZE | WIN_DISP_UNIT | WIN_CREATE_FLAVOR | WIN_MODEL => {
                i64::from(*pointer.cast::<i32>())
            }
            WIN_SIZE => *pointer.cast::<i64>(),
            _ => loaded(pointer),
        }
    }
}

macro_rules! getters {
    ($($name:ident $c:ident $kind:ident;)*) => {
        $(
            pub unsafe fn $name<C: Calls>(
                object: *mut i32,
                keyval: *mut i32,
                attribute_val: *mut i64,
                flag: *mut i32,
            ) -> i32 {
                // SAFETY: the arguments are variables of these types in Fortran's interface; the results of the C function are variables
                // of this one, and `found` is read only if the function has set it.
                unsafe {
                    let (mut found, mut is_there): (Ptr, i32) = (null_mut(), 0);
                    let outcome = C::$c(
                        input::<handle::$kind>(object),
                        *keyval,
                        (&raw mut found).cast(),
                        (&raw mut is_there).cast(),
                    );
                    if outcome == 0 {
                        if is_there != 0 {
                            *attribute_val = value(*keyval, found);
                        }
                        convert::set_logical(flag, is_there);
                    }
                    outcome
                }
            }
        )*
    };
}

getters! {
    comm_get_attr MPI_Comm_get_attr Comm;
    type_get_attr MPI_Type_get_attr Datatype;
    win_get_attr MPI_Win_get_attr Win;
}

macro_rules! setters {
    ($($name:ident $c:ident $kind:ident;)*) => {
        $(
            pub unsafe fn $name<C: Calls>(
                object: *mut i32,
                keyval: *mut i32,
                attribute_val: *mut i64,
            ) -> i32 {
                // SAFETY: the arguments are variables of these types in Fortran's interface; the cell lives as long as the process.
                unsafe {
                    let cell = stored(*attribute_val) as usize as i64;
                    C::$c(input::<handle::$kind>(object), *keyval, cell)
                }
            }
        )*
    };
}

setters! {
    comm_set_attr MPI_Comm_set_attr Comm;
    type_set_attr MPI_Type_set_attr Datatype;
    win_set_attr MPI_Win_set_attr Win;
}

/// The deprecated form, whose value is an INTEGER.
pub unsafe fn attr_put<C: Calls>(comm: *mut i32, keyval: *mut i32, attribute_val: *mut i32) -> i32 {
    // SAFETY: the arguments are INTEGERs in Fortran's interface, and `value` is one variable of the wider type.
    unsafe {
        let mut value = i64::from(*attribute_val);
        comm_set_attr::<C>(comm, keyval, &raw mut value)
    }
}

/// The deprecated form, which cuts the value to an INTEGER.
pub unsafe fn attr_get<C: Calls>(
    comm: *mut i32,
    keyval: *mut i32,
    attribute_val: *mut i32,
    flag: *mut i32,
) -> i32 {
    // SAFETY: the arguments are INTEGERs and a LOGICAL in Fortran's interface; the results are variables of this function.
    unsafe {
        let (mut found, mut is_there) = (0i64, 0i32);
        let outcome = comm_get_attr::<C>(comm, keyval, &raw mut found, &raw mut is_there);
        if outcome == 0 {
            if convert::logical(&raw const is_there) != 0 {
                *attribute_val = found as i32;
            }
            *flag = is_there;
        }
        outcome
    }
}
