//! Cartesian topologies: LOGICAL arrays whose length is the communicator's number of dimensions.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, input, output};
use std::ptr::null_mut;

/// Returns the number of dimensions of a Cartesian communicator; 0 for other communicators.
fn dimensions<C: Calls>(comm: Ptr) -> usize {
    let mut found = 0i32;
    // SAFETY: the C library checks the handle, and `found` is a local variable.
    let outcome = unsafe { C::MPI_Cartdim_get(comm, (&raw mut found).cast()) };
    if outcome == 0 {
        found.max(0) as usize
    } else {
        0
    }
}

pub unsafe fn cart_get<C: Calls>(
    comm: *mut i32,
    maxdims: *mut i32,
    dims: *mut i32,
    periods: *mut i32,
    coords: *mut i32,
) -> i32 {
    // SAFETY: the arrays have `maxdims` elements, as does `found`; the other arguments are INTEGERs.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        let mut found = vec![0i32; convert::length(i64::from(*maxdims)).max(1)];
        let outcome = C::MPI_Cart_get(
            comm,
            *maxdims,
            dims.cast(),
            found.as_mut_ptr().cast(),
            coords.cast(),
        );
        if outcome == 0 {
            let count = dimensions::<C>(comm).min(convert::length(i64::from(*maxdims)));
            for (n, flag) in found.iter().enumerate().take(count) {
                convert::set_logical(periods.add(n), *flag);
            }
        }
        outcome
    }
}

pub unsafe fn cart_sub<C: Calls>(comm: *mut i32, remain_dims: *mut i32, newcomm: *mut i32) -> i32 {
    // SAFETY: `remain_dims` has an element per dimension of `comm`; both handles are INTEGERs.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        let remain = convert::logicals(remain_dims, dimensions::<C>(comm));
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Cart_sub(comm, remain.as_ptr() as Ptr, (&raw mut made).cast());
        output::<handle::Comm>(newcomm, made);
        outcome
    }
}
