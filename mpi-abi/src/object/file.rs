//! Files as the program holds them: the engine's value with an error handler and hints.

use super::Attached;
use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, wrong};
use crate::state::state;
use mpi_core::io::File;
use std::cell::Cell;
use std::rc::Rc;

/// A file and what the program has hung on it.
pub struct FileObject {
    pub file: File,
    handle: Cell<MPI_File>,
    pub attached: Attached,
}

impl FileObject {
    pub fn handle(&self) -> MPI_File {
        self.handle.get()
    }
}

/// Gives a file a handle; it inherits the error handler that `MPI_FILE_NULL` has now (section 14.7).
pub fn register(file: File) -> Result<Rc<FileObject>, Failure> {
    let object = Rc::new(FileObject {
        file,
        handle: Cell::new(MPI_FILE_NULL),
        attached: Attached::inheriting(&state().no_file),
    });
    let handle = state().files.borrow_mut().insert(object.clone());
    let handle = handle.ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many files"))?;
    object.handle.set(MPI_File(handle));
    Ok(object)
}

/// Takes a file out of the table.
pub fn remove(handle: MPI_File) -> Result<(), Failure> {
    let removed = state().files.borrow_mut().remove(handle.0);
    removed.map(drop).ok_or_else(|| wrong(Kind::File, handle.0))
}
