//! Registration of files.

use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, exhausted, wrong};
use crate::object::Attached;
use crate::object::file::FileObject;
use crate::state::state;
use mpi_core::io::File;
use std::rc::Rc;

/// Registers a handle for a file.
/// The file inherits the current error handler of `MPI_FILE_NULL` (section 14.7).
pub fn register(file: File) -> Result<Rc<FileObject>, Failure> {
    let object = FileObject::new(file, Attached::inheriting(state().program().no_file()));
    let handle = state().tables().files().borrow_mut().insert(object.clone());
    let handle = handle.ok_or_else(|| exhausted("files"))?;
    object.set_handle(MPI_File(handle));
    Ok(object)
}

/// Removes a file from the table.
pub fn remove(handle: MPI_File) -> Result<(), Failure> {
    let removed = state().tables().files().borrow_mut().remove(handle.0);
    removed.map(drop).ok_or_else(|| wrong(Kind::File, handle.0))
}
