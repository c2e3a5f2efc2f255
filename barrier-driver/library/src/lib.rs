//! `libhwbarr`: one node of the barrier hardware for C, without MPI.
//!
//! * `exported`: the functions. `include/hwbarr.h` is generated from it by `cargo xtask gen`: each function with its comment.

#![deny(unsafe_code)]

mod exported;
