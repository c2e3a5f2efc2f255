//! Errors of one-sided communication.
//! Each error has a class and a sentence for the user, which in most cases names window and ranks.

use std::fmt;

/// The class of a violated rule (MPI 5.0, section 12.6); `mpi-abi` maps it to an MPI error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OscClass {
    /// Calls open or close epochs in the wrong order.
    Sync,
    /// The access exceeds the target's window, or the memory of a dynamic window is not attached.
    Range,
    /// The memory cannot be attached.
    Attach,
    /// The window's flavor does not support the call.
    Flavor,
    /// The members do not share memory.
    Shared,
    /// Two accesses conflict.
    Conflict,
    LockType,
    Assert,
    Size,
    Disp,
    Rank,
    Op,
    Type,
    Group,
    NoMemory,
    /// The target has ended or cannot be reached.
    Gone,
    /// No attached memory begins at the address.
    Base,
}

impl OscClass {
    /// All classes in the order of their numbers on the wire.
    const ALL: [OscClass; 17] = [
        OscClass::Sync,
        OscClass::Range,
        OscClass::Attach,
        OscClass::Flavor,
        OscClass::Shared,
        OscClass::Conflict,
        OscClass::LockType,
        OscClass::Assert,
        OscClass::Size,
        OscClass::Disp,
        OscClass::Rank,
        OscClass::Op,
        OscClass::Type,
        OscClass::Group,
        OscClass::NoMemory,
        OscClass::Gone,
        OscClass::Base,
    ];

    /// Returns the class with this number on the wire.
    /// An unknown number becomes a range error, the usual class of refusals.
    pub(super) fn from_number(number: u64) -> OscClass {
        let found = usize::try_from(number).ok().and_then(|n| Self::ALL.get(n));
        found.copied().unwrap_or(OscClass::Range)
    }
}

/// The error of a failed call on a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OscError {
    pub class: OscClass,
    pub sentence: String,
}

impl OscError {
    #[cold]
    pub fn new(class: OscClass, sentence: impl Into<String>) -> OscError {
        OscError {
            class,
            sentence: sentence.into(),
        }
    }
}

impl fmt::Display for OscError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for OscError {}

impl crate::Failure for OscError {}
