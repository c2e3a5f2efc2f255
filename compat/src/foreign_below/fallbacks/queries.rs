//! Fallbacks for the queries of device memory: a library without them supports none.
//!
//! The queries return a truth value, so an error code would mean yes.

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
