//! Grids: arrays of LOGICALs whose length the communicator knows.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, input, output};
use std::ptr::null_mut;

/// The number of dimensions of a grid; 0 if the communicator has none.
fn dimensions<C: Calls>(comm: Ptr) -> usize {
    let mut found = 0i32;
    // SAFETY: the C library checks the handle, and `found` is a variable for the result.
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
    // SAFETY: `dims`, `periods` and `coords` have `maxdims` elements, and so has `found`; the others are INTEGERs of the program.
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
    // SAFETY: `remain_dims` has an element for each dimension of the grid, which the communicator knows; the others are INTEGERs of the program.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        let remain = convert::logicals(remain_dims, dimensions::<C>(comm));
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Cart_sub(comm, remain.as_ptr() as Ptr, (&raw mut made).cast());
        output::<handle::Comm>(newcomm, made);
        outcome
    }
}
