//! Objects to which handles of performance variables, and event registrations, are bound.

use crate::abi::*;
use crate::error::Failure;
use crate::object::file::FileObject;
use crate::object::window::WinObject;
use crate::state;
use mpi_core::comm::Comm;
use std::ffi::c_int;
use std::rc::Rc;

/// A kind of object to which a handle can be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Process,
    Comm,
    Win,
    File,
}

/// The object to which a handle is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Object {
    /// The handle is bound to the process.
    #[default]
    Process,
    Comm(MPI_Comm),
    Win(MPI_Win),
    File(MPI_File),
}

impl Bound {
    /// Returns the binding constant of the tool interface, such as `MPI_T_BIND_MPI_COMM`.
    pub fn constant(self) -> c_int {
        match self {
            Bound::Process => MPI_T_BIND_NO_OBJECT,
            Bound::Comm => MPI_T_BIND_MPI_COMM,
            Bound::Win => MPI_T_BIND_MPI_WIN,
            Bound::File => MPI_T_BIND_MPI_FILE,
        }
    }

    /// Returns the name of the object kind for listings.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Process => "process",
            Bound::Comm => "communicator",
            Bound::Win => "window",
            Bound::File => "file",
        }
    }

    /// Returns the object of a handle.
    /// A tool passes the handle's address; `None` is a null pointer.
    pub fn object(self, handle: Option<usize>) -> Result<Object, Failure> {
        if self == Bound::Process {
            return Ok(Object::Process);
        }
        let word = handle.ok_or_else(|| {
            let sentence = format!(
                "obj_handle is a null pointer, and must be the address of the handle of a {}",
                self.name()
            );
            Failure::new(MPI_T_ERR_INVALID, sentence)
        })?;
        Ok(match self {
            Bound::Process => Object::Process,
            Bound::Comm => Object::Comm(MPI_Comm(word)),
            Bound::Win => Object::Win(MPI_Win(word)),
            Bound::File => Object::File(MPI_File(word)),
        })
    }
}

/// Converts the failure for an object that has another kind or was freed.
fn unknown(failure: Failure) -> Failure {
    failure.with_code(MPI_T_ERR_INVALID_HANDLE)
}

/// Returns the failure for a handle bound to another object kind, which no call can cause.
#[cold]
fn wrong_kind() -> Failure {
    Failure::new(
        MPI_T_ERR_INVALID_HANDLE,
        "the handle is bound to another kind of object",
    )
}

impl Object {
    /// Returns the communicator, or an error for an object of another kind.
    pub fn comm(self) -> Result<Comm, Failure> {
        match self {
            Object::Comm(comm) => Ok(state::comm(comm).map_err(unknown)?.comm.clone()),
            _ => Err(wrong_kind()),
        }
    }

    /// Returns the window, or an error for an object of another kind.
    pub fn win(self) -> Result<Rc<WinObject>, Failure> {
        match self {
            Object::Win(win) => state::win(win).map_err(unknown),
            _ => Err(wrong_kind()),
        }
    }

    /// Returns the file, or an error for an object of another kind.
    pub fn file(self) -> Result<Rc<FileObject>, Failure> {
        match self {
            Object::File(file) => state::file(file).map_err(unknown),
            _ => Err(wrong_kind()),
        }
    }
}
