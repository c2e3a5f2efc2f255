//! What can go wrong in the engine, by operation; `mpi-abi` assigns the MPI error classes.

use crate::coll::CollError;
use crate::comm::CommError;
use crate::op::OpError;
use crate::osc::OscError;
use crate::pml::PmlError;
use crate::pml::buffered::BufferError;
use crate::record::RecordError;
use crate::request::Status;
use std::fmt;

/// An error of any operation; its text is a sentence.
///
/// Boxed, so that the result of a successful operation fits a register.
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Box<ErrorKind>);

impl Error {
    /// What is looked at where a class is assigned; for the user there is the sentence.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// The message that a failed receive got, if it got one: whose it was, and how much of it is in the buffer.
    pub fn received(&self) -> Option<Status> {
        match *self.0 {
            ErrorKind::Pml(PmlError::Truncated {
                source,
                tag,
                capacity,
                ..
            }) => Some(Status {
                source,
                tag,
                bytes: capacity,
                cancelled: false,
            }),
            _ => None,
        }
    }
}

/// Which operation failed, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorKind {
    Pml(PmlError),
    Comm(CommError),
    Coll(CollError),
    Op(OpError),
    Osc(OscError),
    Buffer(BufferError),
    Record(RecordError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ErrorKind::Pml(e) => e.fmt(f),
            ErrorKind::Comm(e) => e.fmt(f),
            ErrorKind::Coll(e) => e.fmt(f),
            ErrorKind::Op(e) => e.fmt(f),
            ErrorKind::Osc(e) => e.fmt(f),
            ErrorKind::Buffer(e) => e.fmt(f),
            ErrorKind::Record(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

macro_rules! wraps {
    ($($variant:ident($inner:ty)),*) => {$(
        impl From<$inner> for Error {
            #[cold]
            fn from(e: $inner) -> Error {
                Error(Box::new(ErrorKind::$variant(e)))
            }
        }
    )*};
}

wraps!(
    Pml(PmlError),
    Comm(CommError),
    Coll(CollError),
    Op(OpError),
    Osc(OscError),
    Buffer(BufferError),
    Record(RecordError)
);
