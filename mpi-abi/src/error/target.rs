//! Where the failure of a call is raised.

use crate::abi::*;

/// The object whose error handler hears of a failure; without one it is that of `MPI_COMM_SELF` (section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    None,
    Comm(MPI_Comm),
    Win(MPI_Win),
    File(MPI_File),
    Session(MPI_Session),
    /// An object that is being made, with the handler that it is to get; that handler is given a null handle (sections 7.4.2 and 11.3.1).
    New(MPI_Errhandler),
}
