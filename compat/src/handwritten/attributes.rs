//! Predefined attributes whose values are ABI constants: ranks, error codes, window properties.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::code_out;
use crate::family::{Family, Kind, Word};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// Keyvals of the standard (`MPI_IO` etc.) whose attribute values differ between the ABIs.
const IO: c_int = 502;
const HOST: c_int = 503;
const LAST_USED_CODE: c_int = 506;
const CREATE_FLAVOR: c_int = 604;
const MODEL: c_int = 605;

/// Integers to which attribute values for the program point: the ABIs' constants and small ranks.
static SMALL: [c_int; 22] = [
    -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 311, 312, 313, 314, 321, 322,
];

/// The integer to which the value of `MPI_LASTUSEDCODE` points for the program.
static LAST_CODE: AtomicI32 = AtomicI32::new(0);

/// Converts an attribute value of the backend. Returns it unchanged if the ABIs have equal values.
unsafe fn value_out<F: Family>(keyval: c_int, value: *mut c_void) -> *mut c_void {
    let word = match keyval {
        IO | HOST => Word::Rank,
        LAST_USED_CODE => Word::Error,
        CREATE_FLAVOR => Word::Flavor,
        MODEL => Word::Model,
        _ => return value,
    };
    // SAFETY: these predefined attributes point to an `int` of the backend.
    let there = F::word_out(word, unsafe { value.cast::<c_int>().read() });
    if word == Word::Error {
        LAST_CODE.store(there, Ordering::Relaxed);
        return LAST_CODE.as_ptr().cast();
    }
    match SMALL.iter().find(|small| **small == there) {
        Some(small) => (&raw const *small).cast_mut().cast(),
        None => value,
    }
}

macro_rules! getter {
    ($name:ident<F: Family>, $kind:ident) => {
        pub unsafe fn $name<F: Family>(
            object: F::Handle,
            keyval: c_int,
            value: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let keyval = F::word_in(Word::Keyval, keyval);
                let object = F::handle_in(Kind::$kind, object);
                let code = (backend::$name::<F>())(object, keyval, value, flag);
                if code == 0 && !value.is_null() && !flag.is_null() && flag.read() != 0 {
                    let place = value.cast::<*mut c_void>();
                    let keyval = F::standard(Word::Keyval, keyval);
                    // The address may be unaligned, since programs pass any address.
                    place.write_unaligned(value_out::<F>(keyval, place.read_unaligned()));
                }
                code_out::<F>(code)
            }
        }
    };
}

getter!(MPI_Comm_get_attr<F: Family>, Comm);
getter!(MPI_Attr_get<F: Family>, Comm);
getter!(MPI_Win_get_attr<F: Family>, Win);
getter!(MPI_Type_get_attr<F: Family>, Datatype);
