//! Fallbacks for the queries for device memory: a library without them supports none.
//!
//! They return a truth value, so the error code of a function that is missing would be a yes.

use super::Foreign;
use std::ffi::c_int;

pub unsafe extern "C-unwind" fn MPIX_Query_cuda_support<F: Foreign>() -> c_int {
    0
}

pub unsafe extern "C-unwind" fn MPIX_Query_rocm_support<F: Foreign>() -> c_int {
    0
}

pub unsafe extern "C-unwind" fn MPIX_Query_ze_support<F: Foreign>() -> c_int {
    0
}
