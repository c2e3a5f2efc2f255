//! Attributes, whose values are pointers in C and integers in Fortran.
//!
//! C reads an attribute that Fortran has set as a pointer to a cell (an `i64` in memory).
//! Fortran reads it as the integer, since this module knows the addresses of all cells.
//! Fortran reads an attribute that C has set as the pointer's value.
//! The cell of a value is never freed, because C programs may copy the pointer.
//!
//! C returns pointers to the values of predefined attributes.
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

/// The addresses of the cells, indexed by the cells' values, and the addresses of all cells.
#[derive(Default)]
struct Cells {
    by_value: BTreeMap<i64, usize>,
    addresses: BTreeSet<usize>,
}

static CELLS: Mutex<Option<Cells>> = Mutex::new(None);

/// Returns the pointer that C gets for an integer of Fortran.
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

/// Returns the integer that Fortran gets for a pointer: a cell's value, or the pointer itself.
pub(super) fn loaded(pointer: Ptr) -> i64 {
    let cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_cell = cells
        .as_ref()
        .is_some_and(|c| c.addresses.contains(&(pointer as usize)));
    if is_cell {
        // SAFETY: `stored` leaked this address from a box with an `i64` and exposed its provenance.
        unsafe { *pointer.cast::<i64>() }
    } else {
        pointer as usize as i64
    }
}

/// Returns the Fortran value of an attribute that C has returned as a pointer.
///
/// # Safety
/// The C library has returned the pointer for this keyval.
unsafe fn value(keyval: i32, pointer: Ptr) -> i64 {
    // SAFETY: predefined keyvals have pointers to an `int`, MPI_WIN_SIZE to an `MPI_Aint` (MPI 5.0,
    // sections 9.1.2 and 12.2.6). Any other pointer is dereferenced only if it is a cell.
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
                // SAFETY: arguments have the types of Fortran's interface. Results are locals,
                // and `found` is read only if the C function has set it.
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
                // SAFETY: arguments have the types of Fortran's interface; cells are never freed.
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

/// MPI_ATTR_PUT: the deprecated form of MPI_COMM_SET_ATTR, whose value is an INTEGER.
pub unsafe fn attr_put<C: Calls>(comm: *mut i32, keyval: *mut i32, attribute_val: *mut i32) -> i32 {
    // SAFETY: the arguments are INTEGERs in Fortran's interface; `value` is a local variable.
    unsafe {
        let mut value = i64::from(*attribute_val);
        comm_set_attr::<C>(comm, keyval, &raw mut value)
    }
}

/// MPI_ATTR_GET: the deprecated form of MPI_COMM_GET_ATTR; truncates the value to an INTEGER.
pub unsafe fn attr_get<C: Calls>(
    comm: *mut i32,
    keyval: *mut i32,
    attribute_val: *mut i32,
    flag: *mut i32,
) -> i32 {
    // SAFETY: the arguments have the types of Fortran's interface; the results are locals.
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
