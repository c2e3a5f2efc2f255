//! Files: opening, views and accesses, all blocking, so no buffer is in the library's hands afterwards.

use super::{Handle, MpiError, World, check, count};
use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr;

/// The constants of chapter 14 that the libraries number differently.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileModes {
    pub create: c_int,
    pub read_write: c_int,
    pub seek_set: c_int,
}

impl FileModes {
    pub const STANDARD: FileModes = FileModes {
        create: 2,
        read_write: 32,
        seek_set: 403,
    };
    pub const OPEN_MPI: FileModes = FileModes {
        create: 1,
        read_write: 8,
        seek_set: 600,
    };
}

/// A committed datatype of a view or of a buffer.
pub struct FileType<'a> {
    world: &'a World<'a>,
    handle: Handle,
}

impl Drop for FileType<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing that uses the datatype is under way; a view keeps it alive by itself.
        unsafe { (self.world.call().type_free)(&raw mut self.handle) };
    }
}

/// Which ranks call, and where the access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// This rank by itself, at an offset.
    Alone(i64),
    /// All ranks, at an offset.
    All(i64),
    /// This rank by itself, at the shared pointer.
    Shared,
}

/// An open file.
pub struct OpenFile<'a> {
    world: &'a World<'a>,
    handle: Handle,
}

impl World<'_> {
    /// Opens a file for reading and writing and creates it if it is not there; all ranks call, also where each opens its own.
    pub fn open_file<'a>(&'a self, path: &Path, own: bool) -> Result<OpenFile<'a>, MpiError> {
        let (h, call) = (self.handles(), self.call());
        let path = path.as_os_str().as_encoded_bytes();
        // A path from the command line has no byte zero in it.
        let path = CString::new(path).unwrap_or_default();
        let comm = if own { h.self_ } else { h.world };
        let amode = h.file.create | h.file.read_write;
        let mut handle = ptr::null();
        // SAFETY: the path ends with a zero, and the result is ours to write.
        check("MPI_File_open", unsafe {
            (call.file_open)(comm, path.as_ptr(), amode, h.info_null, &raw mut handle)
        })?;
        Ok(OpenFile {
            world: self,
            handle,
        })
    }

    /// `pieces` pieces of `len` bytes each, one in every `ranks`.
    pub fn interleaved(&self, pieces: usize, len: usize) -> Result<FileType<'_>, MpiError> {
        let mut handle = ptr::null();
        let stride = len * usize::try_from(self.size).unwrap_or(1);
        let char_ = self.handles().char_;
        // SAFETY: the result is ours to write.
        check("MPI_Type_vector", unsafe {
            (self.call().type_vector)(
                count(pieces),
                count(len),
                count(stride),
                char_,
                &raw mut handle,
            )
        })?;
        self.committed(handle)
    }

    /// A rectangle of doubles in a larger one: `(whole, part, start)` in rows and columns.
    pub fn rectangle(
        &self,
        whole: [usize; 2],
        part: [usize; 2],
        start: [usize; 2],
    ) -> Result<FileType<'_>, MpiError> {
        let [whole, part, start] = [whole, part, start].map(|pair| pair.map(count));
        let h = self.handles();
        let mut handle = ptr::null();
        // SAFETY: two numbers in each array; the result is ours to write.
        check("MPI_Type_create_subarray", unsafe {
            (self.call().type_create_subarray)(
                2,
                whole.as_ptr(),
                part.as_ptr(),
                start.as_ptr(),
                h.order_c,
                h.double,
                &raw mut handle,
            )
        })?;
        self.committed(handle)
    }

    fn committed(&self, mut handle: Handle) -> Result<FileType<'_>, MpiError> {
        // SAFETY: the datatype was made a moment ago.
        check("MPI_Type_commit", unsafe {
            (self.call().type_commit)(&raw mut handle)
        })?;
        Ok(FileType {
            world: self,
            handle,
        })
    }
}

impl OpenFile<'_> {
    /// Closes it; all ranks that opened it call.
    pub fn close(mut self) -> Result<(), MpiError> {
        // SAFETY: the file is open.
        check("MPI_File_close", unsafe {
            (self.world.call().file_close)(&raw mut self.handle)
        })
    }

    pub fn set_size(&self, bytes: i64) -> Result<(), MpiError> {
        // SAFETY: the file is open.
        check("MPI_File_set_size", unsafe {
            (self.world.call().file_set_size)(self.handle, bytes)
        })
    }

    pub fn rewind_shared(&self) -> Result<(), MpiError> {
        let set = self.world.handles().file.seek_set;
        // SAFETY: the file is open.
        check("MPI_File_seek_shared", unsafe {
            (self.world.call().file_seek_shared)(self.handle, 0, set)
        })
    }

    /// A view of a datatype of bytes or of doubles, from byte `disp` on.
    pub fn set_view(&self, disp: i64, filetype: &FileType, doubles: bool) -> Result<(), MpiError> {
        let h = self.world.handles();
        let etype = if doubles { h.double } else { h.char_ };
        // SAFETY: file and datatypes live, and the name ends with a zero.
        check("MPI_File_set_view", unsafe {
            (self.world.call().file_set_view)(
                self.handle,
                disp,
                etype,
                filetype.handle,
                c"native".as_ptr(),
                h.info_null,
            )
        })
    }

    /// Writes a buffer, whole or what a datatype selects of it.
    pub fn write(
        &self,
        calls: Calls,
        data: &[u8],
        part: Option<&FileType>,
    ) -> Result<(), MpiError> {
        let (call, fh, at) = (self.world.call(), self.handle, data.as_ptr().cast());
        let (n, datatype) = self.counted(data.len(), part);
        let none = ptr::null_mut();
        // SAFETY: the buffer holds what count and datatype say, and a null status is ignored.
        check("the writing of a file", unsafe {
            match calls {
                Calls::Alone(offset) => (call.file_write_at)(fh, offset, at, n, datatype, none),
                Calls::All(offset) => (call.file_write_at_all)(fh, offset, at, n, datatype, none),
                Calls::Shared => (call.file_write_shared)(fh, at, n, datatype, none),
            }
        })
    }

    /// Reads to a buffer.
    pub fn read(
        &self,
        calls: Calls,
        data: &mut [u8],
        part: Option<&FileType>,
    ) -> Result<(), MpiError> {
        let (call, fh, at) = (self.world.call(), self.handle, data.as_mut_ptr().cast());
        let (n, datatype) = self.counted(data.len(), part);
        let none = ptr::null_mut();
        // SAFETY: the buffer has room for what count and datatype say, and a null status is ignored.
        check("the reading of a file", unsafe {
            match calls {
                Calls::Alone(offset) => (call.file_read_at)(fh, offset, at, n, datatype, none),
                Calls::All(offset) => (call.file_read_at_all)(fh, offset, at, n, datatype, none),
                Calls::Shared => (call.file_read_shared)(fh, at, n, datatype, none),
            }
        })
    }

    fn counted(&self, bytes: usize, part: Option<&FileType>) -> (c_int, Handle) {
        match part {
            Some(part) => (1, part.handle),
            None => (count(bytes), self.world.handles().char_),
        }
    }
}
