//! `MPI_Dims_create`: factorization of a number of processes into dimensions (section 8.5.2).

use crate::abi::*;
use crate::api::args::{InOutArray, length};
use crate::error::{Failure, Outcome};
use mpi_core::topo::balanced;
use std::ffi::c_int;

pub fn MPI_Dims_create(nnodes: c_int, ndims: c_int, dims: InOutArray<c_int>) -> Outcome {
    length(ndims, "ndims")?;
    let dims = dims.get("dims")?;
    let mut left = u32::try_from(nnodes)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| {
            Failure::new(
                MPI_ERR_ARG,
                format!("nnodes is {nnodes}, which is not positive"),
            )
        })?;
    for dim in dims.iter().filter(|d| **d != 0) {
        left = u32::try_from(*dim)
            .ok()
            .filter(|d| left % d == 0)
            .map(|d| left / d)
            .ok_or_else(|| {
                Failure::new(
                    MPI_ERR_DIMS,
                    format!("{nnodes} processes cannot be divided by the {dim} of dims"),
                )
            })?;
    }
    let free = dims.iter().filter(|d| **d == 0).count();
    if free == 0 && left != 1 {
        return Err(Failure::new(
            MPI_ERR_DIMS,
            format!("the product of dims is not the {nnodes} processes"),
        ));
    }
    let balanced = balanced(left, free);
    for (dim, factor) in dims.iter_mut().filter(|d| **d == 0).zip(balanced) {
        *dim = factor as c_int;
    }
    Ok(())
}
