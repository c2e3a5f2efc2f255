//! Symbols inside Open MPI that its own Fortran and C++ libraries ask for.
#![allow(unsafe_code, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc)]
