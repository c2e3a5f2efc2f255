//! Queries for buffers in device memory, an extension that Open MPI and MPICH also have.
//!
//! The functions return a truth value, not an error code. Before initialization they return 0.

use crate::device;
use std::ffi::c_int;

fn is_in_use(accelerator: &str) -> c_int {
    device::names().contains(&accelerator).into()
}

pub fn MPIX_Query_cuda_support() -> c_int {
    is_in_use("cuda")
}

pub fn MPIX_Query_rocm_support() -> c_int {
    is_in_use("rocm")
}

pub fn MPIX_Query_ze_support() -> c_int {
    is_in_use("level_zero")
}
