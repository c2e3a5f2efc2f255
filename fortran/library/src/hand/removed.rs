//! Procedures that the standard has removed and old programs call, implemented by their successors.
#![allow(unsafe_code)]

use super::comm_create_errhandler;
use crate::bodies::{Calls, Mpi, Pmpi, Ptr};
use crate::cells;
use crate::convert::{length, report};
use crate::handle::{self, Many, input, output};
use std::ptr::null_mut;

// The arguments are INTEGERs, INTEGER arrays and choice buffers, as in the earlier standards.

/// Stores an address in an INTEGER, truncated to its low 32 bits.
///
/// # Safety
/// `to` points to an INTEGER.
unsafe fn low_half(to: *mut i32, address: i64) {
    // SAFETY: `to` points to an INTEGER by this function's contract.
    unsafe { *to = address as i32 }
}

unsafe fn address<C: Calls>(location: Ptr, to: *mut i32) -> i32 {
    // SAFETY: `to` is an INTEGER, `found` is a local, and `location` is not dereferenced.
    unsafe {
        let mut found = 0i64;
        let outcome = C::MPI_Get_address(cells::buffer(location), (&raw mut found).cast());
        low_half(to, found);
        outcome
    }
}

/// Returns the lower bound and the extent of a datatype in bytes, after the call's error code.
///
/// # Safety
/// `datatype` points to an INTEGER.
unsafe fn bounds<C: Calls>(datatype: *mut i32) -> (i32, i64, i64) {
    let (mut lower, mut extent) = (0i64, 0i64);
    // SAFETY: `datatype` points to an INTEGER by this function's contract.
    let datatype = unsafe { input::<handle::Datatype>(datatype) };
    // SAFETY: the C library checks the handle; the results are local variables.
    let outcome = unsafe {
        C::MPI_Type_get_extent(datatype, (&raw mut lower).cast(), (&raw mut extent).cast())
    };
    (outcome, lower, extent)
}

/// Converts an array of INTEGERs to 8-byte integers.
///
/// # Safety
/// `array` has `count` elements.
unsafe fn wide(array: *const i32, count: usize) -> Vec<i64> {
    // SAFETY: `n` is below `count`, the number of elements by this function's contract.
    (0..count)
        .map(|n| i64::from(unsafe { *array.add(n) }))
        .collect()
}

unsafe fn hvector<C: Calls>(
    count: i32,
    blocklength: i32,
    stride: i32,
    oldtype: *mut i32,
    newtype: *mut i32,
) -> i32 {
    // SAFETY: `oldtype` and `newtype` are INTEGERs of the program, and `made` is a local variable.
    unsafe {
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Type_create_hvector(
            count,
            blocklength,
            i64::from(stride),
            input::<handle::Datatype>(oldtype),
            (&raw mut made).cast(),
        );
        output::<handle::Datatype>(newtype, made);
        outcome
    }
}

unsafe fn hindexed<C: Calls>(
    count: i32,
    lengths: *mut i32,
    displacements: *mut i32,
    oldtype: *mut i32,
    newtype: *mut i32,
) -> i32 {
    // SAFETY: the arrays have `count` elements, the handles are INTEGERs, and `made` is a local.
    unsafe {
        let mut made: Ptr = null_mut();
        let displacements = wide(displacements, length(i64::from(count)));
        let outcome = C::MPI_Type_create_hindexed(
            count,
            lengths.cast(),
            displacements.as_ptr() as Ptr,
            input::<handle::Datatype>(oldtype),
            (&raw mut made).cast(),
        );
        output::<handle::Datatype>(newtype, made);
        outcome
    }
}

unsafe fn structure<C: Calls>(
    count: i32,
    lengths: *mut i32,
    displacements: *mut i32,
    types: *mut i32,
    newtype: *mut i32,
) -> i32 {
    // SAFETY: the arrays have `count` elements, `newtype` is an INTEGER, and `made` is a local.
    unsafe {
        let mut made: Ptr = null_mut();
        let members = length(i64::from(count));
        let displacements = wide(displacements, members);
        let mut types = Many::<handle::Datatype>::input(types, members);
        let outcome = C::MPI_Type_create_struct(
            count,
            lengths.cast(),
            displacements.as_ptr() as Ptr,
            types.as_mut_ptr().cast(),
            (&raw mut made).cast(),
        );
        output::<handle::Datatype>(newtype, made);
        outcome
    }
}

/// Exports a procedure under its `mpi_` and `pmpi_` names.
macro_rules! exported {
    ($($name:ident, $profiled:ident ($($argument:ident: $of:ty),*) $body:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $of,)* ierror: *mut i32) {
                // SAFETY: a program passes the arguments of this procedure; `ierror` is an INTEGER.
                unsafe { report(ierror, $body::<Mpi>($($argument),*)) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $profiled($($argument: $of,)* ierror: *mut i32) {
                // SAFETY: a program passes the arguments of this procedure; `ierror` is an INTEGER.
                unsafe { report(ierror, $body::<Pmpi>($($argument),*)) }
            }
        )*
    };
}

unsafe fn errhandler_get<C: Calls>(comm: *mut i32, errhandler: *mut i32) -> i32 {
    // SAFETY: both arguments are INTEGERs of the program, and `found` is a local variable.
    unsafe {
        let mut found: Ptr = null_mut();
        let comm = input::<handle::Comm>(comm);
        let outcome = C::MPI_Comm_get_errhandler(comm, (&raw mut found).cast());
        output::<handle::Errhandler>(errhandler, found);
        outcome
    }
}

unsafe fn errhandler_set<C: Calls>(comm: *mut i32, errhandler: *mut i32) -> i32 {
    // SAFETY: both arguments are INTEGERs of the program, and the C library checks the handles.
    unsafe {
        let errhandler = input::<handle::Errhandler>(errhandler);
        C::MPI_Comm_set_errhandler(input::<handle::Comm>(comm), errhandler)
    }
}

unsafe fn type_extent<C: Calls>(datatype: *mut i32, extent: *mut i32) -> i32 {
    // SAFETY: both arguments are INTEGERs of the program.
    unsafe {
        let (outcome, _, found) = bounds::<C>(datatype);
        low_half(extent, found);
        outcome
    }
}

unsafe fn type_lb<C: Calls>(datatype: *mut i32, displacement: *mut i32) -> i32 {
    // SAFETY: both arguments are INTEGERs of the program.
    unsafe {
        let (outcome, lower, _) = bounds::<C>(datatype);
        low_half(displacement, lower);
        outcome
    }
}

unsafe fn type_ub<C: Calls>(datatype: *mut i32, displacement: *mut i32) -> i32 {
    // SAFETY: both arguments are INTEGERs of the program.
    unsafe {
        let (outcome, lower, extent) = bounds::<C>(datatype);
        low_half(displacement, lower + extent);
        outcome
    }
}

unsafe fn type_hvector<C: Calls>(
    count: *mut i32,
    blocklength: *mut i32,
    stride: *mut i32,
    oldtype: *mut i32,
    newtype: *mut i32,
) -> i32 {
    // SAFETY: all arguments are INTEGERs of the program.
    unsafe { hvector::<C>(*count, *blocklength, *stride, oldtype, newtype) }
}

unsafe fn type_hindexed<C: Calls>(
    count: *mut i32,
    lengths: *mut i32,
    displacements: *mut i32,
    oldtype: *mut i32,
    newtype: *mut i32,
) -> i32 {
    // SAFETY: all arguments are INTEGERs of the program; both arrays have `count` elements.
    unsafe { hindexed::<C>(*count, lengths, displacements, oldtype, newtype) }
}

unsafe fn type_struct<C: Calls>(
    count: *mut i32,
    lengths: *mut i32,
    displacements: *mut i32,
    types: *mut i32,
    newtype: *mut i32,
) -> i32 {
    // SAFETY: all arguments are INTEGERs of the program, and the arrays have `count` elements.
    unsafe { structure::<C>(*count, lengths, displacements, types, newtype) }
}

exported! {
    mpi_address_, pmpi_address_ (location: Ptr, to: *mut i32) address;
    mpi_errhandler_create_, pmpi_errhandler_create_ (function: Ptr, errhandler: *mut i32) comm_create_errhandler;
    mpi_errhandler_get_, pmpi_errhandler_get_ (comm: *mut i32, errhandler: *mut i32) errhandler_get;
    mpi_errhandler_set_, pmpi_errhandler_set_ (comm: *mut i32, errhandler: *mut i32) errhandler_set;
    mpi_type_extent_, pmpi_type_extent_ (datatype: *mut i32, extent: *mut i32) type_extent;
    mpi_type_lb_, pmpi_type_lb_ (datatype: *mut i32, displacement: *mut i32) type_lb;
    mpi_type_ub_, pmpi_type_ub_ (datatype: *mut i32, displacement: *mut i32) type_ub;
    mpi_type_hvector_, pmpi_type_hvector_ (count: *mut i32, blocklength: *mut i32, stride: *mut i32, oldtype: *mut i32, newtype: *mut i32) type_hvector;
    mpi_type_hindexed_, pmpi_type_hindexed_ (count: *mut i32, lengths: *mut i32, displacements: *mut i32, oldtype: *mut i32, newtype: *mut i32) type_hindexed;
    mpi_type_struct_, pmpi_type_struct_ (count: *mut i32, lengths: *mut i32, displacements: *mut i32, types: *mut i32, newtype: *mut i32) type_struct;
}
