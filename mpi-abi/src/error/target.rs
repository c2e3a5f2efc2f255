//! The object on which a failing call raises its error.

use crate::abi::*;

/// The object whose error handler is called. `None` is `MPI_COMM_SELF` (section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    None,
    Comm(MPI_Comm),
    Win(MPI_Win),
    File(MPI_File),
    Session(MPI_Session),
    /// An object that is being created and has no handle yet; the value is the error handler that it will have.
    /// This error handler is called with a null handle (sections 7.4.2 and 11.3.1).
    New(MPI_Errhandler),
}
