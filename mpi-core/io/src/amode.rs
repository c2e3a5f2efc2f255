//! The access modes of files, and opening and deleting files by name.

use super::error::{IoClass, IoError};
use mpi_base::text;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// The access mode of `MPI_File_open`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amode {
    pub append: bool,
    pub create: bool,
    pub delete_on_close: bool,
    pub exclusive: bool,
    pub read_only: bool,
    pub read_write: bool,
    pub sequential: bool,
    pub unique_open: bool,
    pub write_only: bool,
}

impl Amode {
    pub(super) fn check(self) -> Result<(), IoError> {
        let wrong = |sentence: &str| Err(IoError::new(IoClass::Amode, sentence));
        let accesses = [self.read_only, self.read_write, self.write_only];
        if accesses.iter().filter(|access| **access).count() != 1 {
            return wrong(
                "amode needs exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY",
            );
        }
        if self.read_only && (self.create || self.exclusive) {
            return wrong("amode has MPI_MODE_RDONLY with MPI_MODE_CREATE or MPI_MODE_EXCL");
        }
        if self.sequential && self.read_write {
            return wrong("amode has MPI_MODE_SEQUENTIAL with MPI_MODE_RDWR");
        }
        Ok(())
    }

    pub(super) fn reads(self) -> bool {
        !self.write_only
    }

    pub(super) fn writes(self) -> bool {
        !self.read_only
    }

    pub(super) fn flags(self, creates: bool) -> OFlags {
        let access = match (self.read_only, self.write_only) {
            (true, _) => OFlags::RDONLY,
            // In atomic mode a write-only file uses only write locks, which need no read access.
            (_, true) => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        let mut flags = access | OFlags::CLOEXEC;
        if creates && self.create {
            flags |= OFlags::CREATE;
            if self.exclusive {
                flags |= OFlags::EXCL;
            }
        }
        flags
    }

    pub(super) fn bits(self) -> u64 {
        let all = [
            self.append,
            self.create,
            self.delete_on_close,
            self.exclusive,
            self.read_only,
            self.read_write,
            self.sequential,
            self.unique_open,
            self.write_only,
        ];
        all.iter().fold(0, |bits, bit| bits << 1 | u64::from(*bit))
    }
}

/// Opens a file by name. The name is program text ([`mpi_base::text`]);
/// the original bytes of the name are passed to the kernel.
pub(super) fn open(path: &str, flags: OFlags, mode: u32) -> Result<OwnedFd, IoError> {
    loop {
        match rustix::fs::open(text::to_path(path), flags, Mode::from_raw_mode(mode)) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(IoError::system("it cannot be opened", errno)),
            Ok(fd) => {
                // The kernel can open a directory for reading, but a directory is no file for MPI.
                let stat =
                    rustix::fs::fstat(&fd).map_err(|errno| IoError::system("fstat", errno))?;
                return match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
                    rustix::fs::FileType::Directory => {
                        Err(IoError::system("it cannot be opened", Errno::ISDIR))
                    }
                    _ => Ok(fd),
                };
            }
        }
    }
}

/// Deletes a file by name. The name is program text, as in `open`.
pub fn delete(path: &str) -> Result<(), IoError> {
    rustix::fs::unlinkat(CWD, text::to_path(path), AtFlags::empty())
        .map_err(|errno| IoError::system(&format!("the file {path} cannot be deleted"), errno))
}
