//! Attributes: pointers in C, integers in Fortran.
//!
//! The values of predefined attributes are behind the pointers that C returns.

use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, input};
use std::ptr::null_mut;

const TAG_UB: i32 = 501;
const UNIVERSE_SIZE: i32 = 507;
const WIN_DISP_UNIT: i32 = 602;
const WIN_SIZE: i32 = 603;
const WIN_CREATE_FLAVOR: i32 = 604;
const WIN_MODEL: i32 = 605;

/// The value in Fortran of an attribute that C has returned as a pointer.
unsafe fn value(keyval: i32, pointer: Ptr) -> i64 {
    unsafe {
        match keyval {
            _ if pointer.is_null() => 0,
            TAG_UB..=UNIVERSE_SIZE | WIN_DISP_UNIT | WIN_CREATE_FLAVOR | WIN_MODEL => {
                i64::from(*pointer.cast::<i32>())
            }
            WIN_SIZE => *pointer.cast::<i64>(),
            _ => pointer as usize as i64,
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

/// The deprecated form, which cuts the value to an INTEGER.
pub unsafe fn attr_get<C: Calls>(
    comm: *mut i32,
    keyval: *mut i32,
    attribute_val: *mut i32,
    flag: *mut i32,
) -> i32 {
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
