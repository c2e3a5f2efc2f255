//! What can go wrong in the engine, by operation; `mpi-abi` assigns the MPI error classes.

use crate::coll::CollError;
use crate::comm::CommError;
use crate::op::OpError;
use crate::pml::PmlError;
use crate::pml::buffered::BufferError;
use std::fmt;

/// An error of any operation; its text is a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    Pml(PmlError),
    Comm(CommError),
    Coll(CollError),
    Op(OpError),
    Buffer(BufferError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Pml(e) => e.fmt(f),
            Error::Comm(e) => e.fmt(f),
            Error::Coll(e) => e.fmt(f),
            Error::Op(e) => e.fmt(f),
            Error::Buffer(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

macro_rules! wraps {
    ($($variant:ident($inner:ty)),*) => {$(
        impl From<$inner> for Error {
            fn from(e: $inner) -> Error {
                Error::$variant(e)
            }
        }
    )*};
}

wraps!(
    Pml(PmlError),
    Comm(CommError),
    Coll(CollError),
    Op(OpError),
    Buffer(BufferError)
);
