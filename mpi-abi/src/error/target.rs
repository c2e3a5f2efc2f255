//! The object whose error handler a failing call is reported to.

use crate::abi::*;

/// The object whose error handler is called on a failure; without one it is that of `MPI_COMM_SELF` (section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    None,
    Comm(MPI_Comm),
    Win(MPI_Win),
    File(MPI_File),
    Session(MPI_Session),
    /// An object that is being created, with the handler it will get; that handler is called with a null handle (sections 7.4.2 and 11.3.1).
    New(MPI_Errhandler),
}
