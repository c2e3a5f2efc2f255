//! Errors of file operations: each has a class, and a text with the file, the rank and the kernel's
//! error message.

use crate::datatype::TypeError;
use rustix::io::Errno;
use std::fmt;

/// The class of a failure (MPI 5.0, section 14.7); `mpi-abi` maps it to an MPI error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    Access,
    Amode,
    BadFile,
    Conversion,
    DupDatarep,
    FileExists,
    FileInUse,
    Io,
    NoSpace,
    NoSuchFile,
    NotSame,
    Quota,
    ReadOnly,
    UnsupportedDatarep,
    UnsupportedOperation,
    Arg,
    Type,
    Count,
}

impl IoClass {
    /// All classes in the order of their numbers in messages between members, which start at 1.
    const ALL: [IoClass; 18] = [
        IoClass::Access,
        IoClass::Amode,
        IoClass::BadFile,
        IoClass::Conversion,
        IoClass::DupDatarep,
        IoClass::FileExists,
        IoClass::FileInUse,
        IoClass::Io,
        IoClass::NoSpace,
        IoClass::NoSuchFile,
        IoClass::NotSame,
        IoClass::Quota,
        IoClass::ReadOnly,
        IoClass::UnsupportedDatarep,
        IoClass::UnsupportedOperation,
        IoClass::Arg,
        IoClass::Type,
        IoClass::Count,
    ];

    /// Returns the number of the class in messages between members; never 0.
    pub(super) fn number(self) -> u64 {
        let at = Self::ALL.iter().position(|class| *class == self);
        at.map_or(0, |at| at as u64) + 1
    }

    pub(super) fn from_number(number: u64) -> IoClass {
        let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        at.and_then(|at| Self::ALL.get(at))
            .copied()
            .unwrap_or(IoClass::Io)
    }

    /// Returns the class for an `errno` value.
    pub(super) fn of(errno: Errno) -> IoClass {
        match errno {
            Errno::NOENT => IoClass::NoSuchFile,
            Errno::EXIST => IoClass::FileExists,
            Errno::ACCESS | Errno::PERM => IoClass::Access,
            Errno::ROFS => IoClass::ReadOnly,
            Errno::NOSPC => IoClass::NoSpace,
            Errno::DQUOT | Errno::FBIG => IoClass::Quota,
            Errno::NAMETOOLONG | Errno::ISDIR | Errno::NOTDIR | Errno::LOOP => IoClass::BadFile,
            Errno::BUSY | Errno::TXTBSY => IoClass::FileInUse,
            _ => IoClass::Io,
        }
    }
}

/// The error of a failed call on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoError {
    pub class: IoClass,
    pub sentence: String,
}

impl IoError {
    #[cold]
    pub fn new(class: IoClass, sentence: impl Into<String>) -> IoError {
        IoError {
            class,
            sentence: sentence.into(),
        }
    }

    /// Returns the error of a failed system call.
    #[cold]
    pub(super) fn system(doing: &str, errno: Errno) -> IoError {
        let said = std::io::Error::from(errno);
        IoError::new(IoClass::of(errno), format!("{doing}: {said}"))
    }
}

impl From<TypeError> for IoError {
    fn from(error: TypeError) -> IoError {
        IoError::new(IoClass::Type, error.to_string())
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for IoError {}

impl crate::Failure for IoError {}

/// Returns the number of the error's class, or 0 for success.
pub(super) fn class_number<T>(outcome: &Result<T, IoError>) -> u64 {
    let error = outcome.as_ref().err();
    error.map_or(0, |error| error.class.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_survives_the_agreement() {
        for class in IoClass::ALL {
            assert_ne!(class.number(), 0);
            assert_eq!(IoClass::from_number(class.number()), class);
        }
        assert_eq!(IoClass::from_number(u64::MAX), IoClass::Io);
    }
}
