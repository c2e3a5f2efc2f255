//! `libhwbarr`: one node of the barrier hardware for C, without MPI.
//!
//! * `exported`: the functions. `cargo xtask gen` generates `include/hwbarr.h` from their signatures and comments.

#![deny(unsafe_code)]

mod exported;
