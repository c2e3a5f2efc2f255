//! C types and constants of the MPI ABI, generated from `api/constants.txt` by the build script.
//!
//! The identifiers are those of C, so that the code matches the text of the MPI standard.
#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]

use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// A handle type: an integer in Rust, a pointer in C.
pub trait Handle: Copy {
    fn value(self) -> usize;
}

macro_rules! handles {
    ($($name:ident),*) => { $(impl Handle for $name { fn value(self) -> usize { self.0 } })* };
}
handles!(
    MPI_Op,
    MPI_Comm,
    MPI_Group,
    MPI_Win,
    MPI_File,
    MPI_Session,
    MPI_Message,
    MPI_Info,
    MPI_Errhandler,
    MPI_Request,
    MPI_Datatype
);
