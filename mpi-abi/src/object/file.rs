//! Files as the program holds them: the engine's value with an error handler and hints.

use super::Attached;
use crate::abi::*;
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
    /// A file without a handle.
    pub(crate) fn new(file: File, attached: Attached) -> Rc<FileObject> {
        Rc::new(FileObject {
            file,
            handle: Cell::new(MPI_FILE_NULL),
            attached,
        })
    }

    /// It has got this handle.
    pub(crate) fn set_handle(&self, handle: MPI_File) {
        self.handle.set(handle);
    }

    pub fn handle(&self) -> MPI_File {
        self.handle.get()
    }
}
