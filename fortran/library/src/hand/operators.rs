//! Reduction operators: C passes the datatype as a handle; Fortran expects an INTEGER.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, number, output};
use crate::pool::{self, Pool};
use std::ptr::null_mut;

/// The type of a program's reduction function; `L` is the integer type of the length.
type Fortran<L> = unsafe extern "C" fn(Ptr, Ptr, *mut L, *mut i32);
type Slot<L> = unsafe extern "C" fn(Ptr, Ptr, *mut L, *mut Ptr);

static FUNCTIONS: Pool = Pool::new();
static LARGE_FUNCTIONS: Pool = Pool::new();

unsafe extern "C" fn slot<const N: usize>(a: Ptr, b: Ptr, length: *mut i32, datatype: *mut Ptr) {
    // SAFETY: C gets function N of the pool only after `enter` has stored a function of this type.
    // The C library passes the addresses of a length and of a datatype.
    unsafe {
        let function: Fortran<i32> = std::mem::transmute(FUNCTIONS.at(N));
        let mut datatype = number::<handle::Datatype>(*datatype);
        function(a, b, length, &raw mut datatype);
    }
}

unsafe extern "C" fn large_slot<const N: usize>(
    a: Ptr,
    b: Ptr,
    length: *mut i64,
    datatype: *mut Ptr,
) {
    // SAFETY: C gets function N of the pool only after `enter` has stored a function of this type.
    // The C library passes the addresses of a length and of a datatype.
    unsafe {
        let function: Fortran<i64> = std::mem::transmute(LARGE_FUNCTIONS.at(N));
        let mut datatype = number::<handle::Datatype>(*datatype);
        function(a, b, length, &raw mut datatype);
    }
}

static SLOTS: [[Slot<i32>; 16]; 16] = instances!(slot);
static LARGE_SLOTS: [[Slot<i64>; 16]; 16] = instances!(large_slot);

pub unsafe fn op_create<C: Calls>(user_fn: Ptr, commute: *mut i32, op: *mut i32) -> i32 {
    // SAFETY: `commute` and `op` have the types of Fortran's interface; `made` is a local.
    unsafe {
        let Some(place) = FUNCTIONS.enter(user_fn as usize) else {
            return pool::full("MPI_Op_create");
        };
        let function = SLOTS[place / 16][place % 16] as usize as Ptr;
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Op_create(function, convert::logical(commute), (&raw mut made).cast());
        output::<handle::Op>(op, made);
        outcome
    }
}

pub unsafe fn op_create_c<C: Calls>(user_fn: Ptr, commute: *mut i32, op: *mut i32) -> i32 {
    // SAFETY: `commute` and `op` have the types of Fortran's interface; `made` is a local.
    unsafe {
        let Some(place) = LARGE_FUNCTIONS.enter(user_fn as usize) else {
            return pool::full("MPI_Op_create_c");
        };
        let function = LARGE_SLOTS[place / 16][place % 16] as usize as Ptr;
        let mut made: Ptr = null_mut();
        let outcome =
            C::MPI_Op_create_c(function, convert::logical(commute), (&raw mut made).cast());
        output::<handle::Op>(op, made);
        outcome
    }
}
