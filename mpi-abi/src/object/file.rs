//! File objects: the engine's file with an error handler and hints.

use super::Attached;
use crate::abi::*;
use mpi_core::io::File;
use std::cell::Cell;
use std::rc::Rc;

/// A file with its attached error handler and hints.
pub struct FileObject {
    pub file: File,
    handle: Cell<MPI_File>,
    pub attached: Attached,
}

impl FileObject {
    /// Creates a file without a handle.
    pub(crate) fn new(file: File, attached: Attached) -> Rc<FileObject> {
        Rc::new(FileObject {
            file,
            handle: Cell::new(MPI_FILE_NULL),
            attached,
        })
    }

    /// Sets the handle of the file.
    pub(crate) fn set_handle(&self, handle: MPI_File) {
        self.handle.set(handle);
    }

    pub fn handle(&self) -> MPI_File {
        self.handle.get()
    }
}
