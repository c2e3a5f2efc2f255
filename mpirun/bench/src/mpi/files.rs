//! MPI files: opening, views and blocking accesses; the library uses no buffer after a call.

use super::{Handle, MpiError, World, check, count};
use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr;

/// Constants of MPI's chapter 14 (I/O) whose values differ between libraries.
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

/// A committed datatype of a file view or of a buffer.
pub struct FileType<'a> {
    world: &'a World<'a>,
    handle: Handle,
}

impl Drop for FileType<'_> {
    fn drop(&mut self) {
        // SAFETY: no operation with the datatype is pending, since all accesses block.
        unsafe { (self.world.call().type_free)(&raw mut self.handle) };
    }
}

/// The ranks that call an access, and the position of the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Only this rank accesses the file, at an explicit offset in bytes.
    Alone(i64),
    /// All ranks access the file collectively, at an explicit offset in bytes.
    All(i64),
    /// Only this rank accesses the file, at the shared file pointer.
    Shared,
}

/// An open file.
pub struct OpenFile<'a> {
    world: &'a World<'a>,
    handle: Handle,
}

impl World<'_> {
    /// Opens or creates a file for reading and writing; all ranks must call this function.
    /// If `own` is true, each rank opens a file that no other rank opens.
    pub fn open_file<'a>(&'a self, path: &Path, own: bool) -> Result<OpenFile<'a>, MpiError> {
        let (h, call) = (self.handles(), self.call());
        let path = path.as_os_str().as_encoded_bytes();
        // A path from the command line contains no NUL byte.
        let path = CString::new(path).unwrap_or_default();
        let comm = if own { h.self_ } else { h.world };
        let amode = h.file.create | h.file.read_write;
        let mut handle = ptr::null();
        // SAFETY: the path ends with NUL, and `handle` is a local variable that the call writes.
        check("MPI_File_open", unsafe {
            (call.file_open)(comm, path.as_ptr(), amode, h.info_null, &raw mut handle)
        })?;
        Ok(OpenFile {
            world: self,
            handle,
        })
    }

    /// Returns a datatype of `pieces` pieces of `len` bytes.
    /// The stride is `len` times the number of ranks.
    pub fn interleaved(&self, pieces: usize, len: usize) -> Result<FileType<'_>, MpiError> {
        let mut handle = ptr::null();
        let stride = len * usize::try_from(self.size).unwrap_or(1);
        let char_ = self.handles().char_;
        // SAFETY: `handle` is a local variable that the call writes.
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

    /// Returns a datatype for the rectangle `part` at `start` in the array `whole` of doubles.
    /// Each argument is a pair: rows, columns.
    pub fn rectangle(
        &self,
        whole: [usize; 2],
        part: [usize; 2],
        start: [usize; 2],
    ) -> Result<FileType<'_>, MpiError> {
        let [whole, part, start] = [whole, part, start].map(|pair| pair.map(count));
        let h = self.handles();
        let mut handle = ptr::null();
        // SAFETY: each array has two elements; `handle` is a local variable that the call writes.
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
        // SAFETY: `handle` is a datatype that the caller has just created.
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
    /// Closes the file; all ranks that have opened the file must call this function.
    pub fn close(mut self) -> Result<(), MpiError> {
        // SAFETY: `self` is consumed, so the file is open before this call and not used after it.
        check("MPI_File_close", unsafe {
            (self.world.call().file_close)(&raw mut self.handle)
        })
    }

    pub fn set_size(&self, bytes: i64) -> Result<(), MpiError> {
        // SAFETY: the file is open until `close` consumes `self`.
        check("MPI_File_set_size", unsafe {
            (self.world.call().file_set_size)(self.handle, bytes)
        })
    }

    pub fn rewind_shared(&self) -> Result<(), MpiError> {
        let set = self.world.handles().file.seek_set;
        // SAFETY: the file is open until `close` consumes `self`.
        check("MPI_File_seek_shared", unsafe {
            (self.world.call().file_seek_shared)(self.handle, 0, set)
        })
    }

    /// Sets a view with elements of bytes or doubles, from byte `disp`.
    pub fn set_view(&self, disp: i64, filetype: &FileType, doubles: bool) -> Result<(), MpiError> {
        let h = self.world.handles();
        let etype = if doubles { h.double } else { h.char_ };
        // SAFETY: the file and the datatypes live until the call returns; the name ends with NUL.
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

    /// Writes a whole buffer, or the part that a datatype selects.
    pub fn write(
        &self,
        calls: Calls,
        data: &[u8],
        part: Option<&FileType>,
    ) -> Result<(), MpiError> {
        let (call, fh, at) = (self.world.call(), self.handle, data.as_ptr().cast());
        let (n, datatype) = self.counted(data.len(), part);
        let none = ptr::null_mut();
        // SAFETY: `counted` returns a count and datatype in the buffer; a null status is ignored.
        check("the writing of a file", unsafe {
            match calls {
                Calls::Alone(offset) => (call.file_write_at)(fh, offset, at, n, datatype, none),
                Calls::All(offset) => (call.file_write_at_all)(fh, offset, at, n, datatype, none),
                Calls::Shared => (call.file_write_shared)(fh, at, n, datatype, none),
            }
        })
    }

    /// Reads into a whole buffer, or into the part that a datatype selects.
    pub fn read(
        &self,
        calls: Calls,
        data: &mut [u8],
        part: Option<&FileType>,
    ) -> Result<(), MpiError> {
        let (call, fh, at) = (self.world.call(), self.handle, data.as_mut_ptr().cast());
        let (n, datatype) = self.counted(data.len(), part);
        let none = ptr::null_mut();
        // SAFETY: `counted` returns a count and datatype in the buffer; a null status is ignored.
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
