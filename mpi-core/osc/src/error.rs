//! Errors of one-sided communication: a class, and a sentence that names the window, both ranks and the remedy.

use std::fmt;

/// The violated rule (MPI 5.0, section 12.6); `mpi-abi` maps each to an error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OscClass {
    /// Calls that open and close epochs in the wrong order.
    Sync,
    /// The access exceeds the target's window.
    Range,
    /// Memory that is not attached, or cannot be attached.
    Attach,
    /// A call that the window's flavor does not support.
    Flavor,
    /// Members that share no memory.
    Shared,
    /// Accesses that conflict.
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
}

impl OscClass {
    /// In the order of their numbers on the wire.
    const ALL: [OscClass; 16] = [
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
    ];

    /// Returns the class with this number on the wire. An unknown number counts as a range error, the class with which targets refuse accesses.
    pub(super) fn from_number(number: u64) -> OscClass {
        let found = usize::try_from(number).ok().and_then(|n| Self::ALL.get(n));
        found.copied().unwrap_or(OscClass::Range)
    }
}

/// Why a call on a window failed.
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
