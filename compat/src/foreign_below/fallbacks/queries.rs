//! Fallbacks for the queries of device memory. Their answer is 0: not supported.
//!
//! The queries return a truth value. An error code would be read as "supported".

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
