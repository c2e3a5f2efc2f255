//! File size, preallocation and `MPI_File_sync` (MPI 5.0, sections 14.2.4 to 14.2.6 and 14.6).

use super::access;
use super::error::{IoClass, IoError};
use super::file::File;
use crate::Error;
use rustix::io::Errno;

impl File {
    /// Returns the operations on the file's size and storage.
    #[inline]
    pub fn storage(&self) -> Storage<'_> {
        Storage { file: self }
    }
}

/// The operations on a file's size, preallocation and synchronisation.
#[derive(Clone, Copy)]
pub struct Storage<'a> {
    file: &'a File,
}

impl<'a> Storage<'a> {
    pub(super) fn size(self) -> Result<i64, IoError> {
        self.file
            .disk
            .len()
            .map_err(|errno| IoError::system("fstat", errno))
    }

    /// Implements `MPI_File_get_size`.
    pub fn bytes(self) -> Result<i64, Error> {
        self.file.told(self.size())
    }

    /// Implements `MPI_File_set_size`; collective.
    pub fn set_bytes(self, bytes: i64) -> Result<(), Error> {
        self.file.same("size", bytes)?;
        let done = self
            .may_resize(bytes)
            .and_then(|()| match self.file.comm.rank() {
                0 => self
                    .file
                    .disk
                    .ftruncate(bytes as u64)
                    .map_err(|errno| IoError::system("ftruncate", errno)),
                _ => Ok(()),
            });
        self.file.agree(done)
    }

    fn may_resize(self, bytes: i64) -> Result<(), IoError> {
        if bytes < 0 {
            let sentence = format!("size is {bytes}, which is negative");
            return Err(IoError::new(IoClass::Arg, sentence));
        }
        self.file.random_access()?;
        access::within_limit(bytes as u64)?;
        match self.file.amode.writes() {
            true => Ok(()),
            false => Err(IoError::new(
                IoClass::ReadOnly,
                "it is open for reading only",
            )),
        }
    }

    /// Implements `MPI_File_preallocate`; collective.
    pub fn preallocate(self, bytes: i64) -> Result<(), Error> {
        self.file.same("size", bytes)?;
        let done = self
            .may_resize(bytes)
            .and_then(|()| match self.file.comm.rank() {
                0 if bytes > 0 => self.allocate(bytes),
                _ => Ok(()),
            });
        self.file.agree(done)
    }

    fn allocate(self, bytes: i64) -> Result<(), IoError> {
        match self.file.disk.fallocate(bytes as u64) {
            // On file systems without preallocation, only the size is set.
            Err(Errno::NOSYS | Errno::OPNOTSUPP) if self.size()? < bytes => self
                .file
                .disk
                .ftruncate(bytes as u64)
                .map_err(|errno| IoError::system("ftruncate", errno)),
            Err(Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
            done => done.map_err(|errno| IoError::system("fallocate", errno)),
        }
    }

    /// Implements `MPI_File_sync`; collective.
    ///
    /// The members of a node write through the node's page cache.
    /// So after a barrier, one member per node flushes the data of all members to the disk.
    pub fn sync(self) -> Result<(), Error> {
        self.file.meet()?;
        let done = match self.is_first_of_node() {
            true => self.file.disk.fsync(),
            false => Ok(()),
        };
        self.file.agree(match done {
            // Special files that do not support `fsync` need no synchronisation.
            Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
            Err(errno) => Err(IoError::system("fsync", errno)),
        })
    }

    /// Returns true if this process is the member with the lowest rank on its node.
    fn is_first_of_node(self) -> bool {
        let here = self
            .file
            .comm
            .engine()
            .place()
            .members_here(self.file.comm.group());
        here.map(|(rank, _)| rank)
            .all(|rank| rank >= self.file.comm.rank())
    }
}
