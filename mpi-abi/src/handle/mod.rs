//! Handles: integers that identify MPI objects, never addresses.
//!
//! A predefined handle has the value that the standard assigns, below 2^12.
//! A handle created at run time has 31 bits, so it converts to a Fortran `INTEGER`:
//!
//! ```text
//!   30..27   26..20       19..0
//!   kind     generation   index into the table of the kind
//! ```
//!
//! The kind values 12 to 15 also denote requests:
//! a program may have millions of requests, and one kind has only 2^20 indices.
//!
//! The generation of a slot increases on each reuse, so a stale handle differs from its successor.
//! The kind distinguishes, for example, a request from a datatype.
//! A lookup is a load, a comparison and an index check.

mod other_library;
mod table;

pub use table::Table;

use crate::abi::*;
use crate::error::Failure;
use std::ffi::c_int;

/// The kind of MPI object behind a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Op = 1,
    Comm,
    Group,
    Win,
    File,
    Session,
    Message,
    Info,
    Errhandler,
    Request,
    Datatype,
}

/// Handles below this value are predefined.
pub const FIRST_DYNAMIC: usize = 1 << KIND_SHIFT;

const KIND_SHIFT: u32 = 27;
const GENERATION_SHIFT: u32 = 20;
const INDEX_MASK: usize = (1 << GENERATION_SHIFT) - 1;
const GENERATION_MASK: usize = (1 << (KIND_SHIFT - GENERATION_SHIFT)) - 1;

/// The values of the kind field that denote requests in addition to `Kind::Request`.
const MORE_REQUESTS: std::ops::RangeInclusive<usize> = 12..=15;

/// Number of requests with the kind field `Request`.
/// Requests in the engine's own table use the other half of the indices.
const FIRST_REQUESTS: usize = 1 << (GENERATION_SHIFT - 1);

/// The mask of the generation bits of a handle.
pub const GENERATIONS: usize = GENERATION_MASK << GENERATION_SHIFT;

/// Builds a handle from kind, generation (truncated to its field) and an index below 2^20.
#[inline]
pub const fn make(kind: Kind, generation: u32, index: usize) -> usize {
    (kind as usize) << KIND_SHIFT
        | (generation as usize & GENERATION_MASK) << GENERATION_SHIFT
        | index
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Op,
        Kind::Comm,
        Kind::Group,
        Kind::Win,
        Kind::File,
        Kind::Session,
        Kind::Message,
        Kind::Info,
        Kind::Errhandler,
        Kind::Request,
        Kind::Datatype,
    ];

    /// Returns the kind of a dynamic handle by its kind field, without a lookup.
    fn of(handle: usize) -> Option<Kind> {
        if MORE_REQUESTS.contains(&(handle >> KIND_SHIFT)) {
            return Some(Kind::Request);
        }
        Kind::ALL
            .into_iter()
            .find(|k| *k as usize == handle >> KIND_SHIFT)
    }

    /// Returns the noun for error messages, with its article.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Op => "an operator",
            Kind::Comm => "a communicator",
            Kind::Group => "a group",
            Kind::Win => "a window",
            Kind::File => "a file",
            Kind::Session => "a session",
            Kind::Message => "a message",
            Kind::Info => "an info object",
            Kind::Errhandler => "an error handler",
            Kind::Request => "a request",
            Kind::Datatype => "a datatype",
        }
    }

    /// Returns the error class for an invalid handle of this kind.
    pub fn error_class(self) -> c_int {
        match self {
            Kind::Op => MPI_ERR_OP,
            Kind::Comm => MPI_ERR_COMM,
            Kind::Group => MPI_ERR_GROUP,
            Kind::Win => MPI_ERR_WIN,
            Kind::File => MPI_ERR_FILE,
            Kind::Session => MPI_ERR_SESSION,
            Kind::Message => MPI_ERR_REQUEST,
            Kind::Info => MPI_ERR_INFO,
            Kind::Errhandler => MPI_ERR_ERRHANDLER,
            Kind::Request => MPI_ERR_REQUEST,
            Kind::Datatype => MPI_ERR_TYPE,
        }
    }

    fn predefined(self) -> &'static [(usize, &'static str)] {
        match self {
            Kind::Op => MPI_Op::PREDEFINED,
            Kind::Comm => MPI_Comm::PREDEFINED,
            Kind::Group => MPI_Group::PREDEFINED,
            Kind::Win => MPI_Win::PREDEFINED,
            Kind::File => MPI_File::PREDEFINED,
            Kind::Session => MPI_Session::PREDEFINED,
            Kind::Message => MPI_Message::PREDEFINED,
            Kind::Info => MPI_Info::PREDEFINED,
            Kind::Errhandler => MPI_Errhandler::PREDEFINED,
            Kind::Request => MPI_Request::PREDEFINED,
            Kind::Datatype => MPI_Datatype::PREDEFINED,
        }
    }
}

/// Returns the name of a predefined handle of any kind.
pub fn predefined_name(handle: usize) -> Option<&'static str> {
    Kind::ALL
        .iter()
        .flat_map(|k| k.predefined())
        .find(|(value, _)| *value == handle)
        .map(|(_, name)| *name)
}

/// Returns the failure for a handle that is not a valid handle of `kind`.
#[cold]
pub fn wrong(kind: Kind, handle: usize) -> Failure {
    let noun = kind.noun();
    let mut sentence = match (predefined_name(handle), Kind::of(handle)) {
        (Some(name), _) => {
            let text = format!("{name} was given where {noun} is needed");
            return Failure::new(kind.error_class(), text);
        }
        (None, Some(other)) if other == kind => {
            format!("the handle {handle:#x} is {noun} that has been freed")
        }
        (None, Some(other)) => format!("the handle {handle:#x} is {}, not {noun}", other.noun()),
        (None, None) => format!("the handle {handle:#x} is not {noun}"),
    };
    if let Some(other) = other_library::loaded() {
        let other = printable::name(other.as_os_str());
        sentence += &format!(
            "; this process has also loaded {other}, another MPI library: a program and all of its libraries must be compiled with the mpi.h of one MPI library"
        );
    }
    Failure::new(kind.error_class(), sentence)
}

/// Returns the failure for an object that would be one more than a table of handles can have.
#[cold]
pub fn exhausted(objects: &str) -> Failure {
    let most = INDEX_MASK + 1;
    let text = format!(
        "there are too many {objects}: a process can have {most}; free those that the program does not need any more"
    );
    Failure::new(MPI_ERR_NO_MEM, text)
}

/// Converts a handle to a Fortran INTEGER. A value that does not fit becomes an invalid handle.
pub fn to_int(handle: usize) -> c_int {
    c_int::try_from(handle).unwrap_or(-1)
}

/// Converts a Fortran INTEGER to a handle.
pub fn from_int(value: c_int) -> usize {
    value as isize as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_handle_is_named_with_its_kind() {
        let said = |kind, handle| wrong(kind, handle).message().to_string();
        assert_eq!(
            said(Kind::Comm, MPI_COMM_NULL.0),
            "MPI_COMM_NULL was given where a communicator is needed"
        );
        assert_eq!(
            said(Kind::Comm, MPI_INT.0),
            "MPI_INT was given where a communicator is needed"
        );
        let mut table = Table::new(Kind::Request);
        let Some(request) = table.insert(()) else {
            panic!("an empty table is full")
        };
        assert!(said(Kind::Datatype, request).ends_with("is a request, not a datatype"));
        assert!(said(Kind::Request, request).ends_with("is a request that has been freed"));
        assert!(said(Kind::Win, usize::MAX).ends_with("is not a window"));
        assert_eq!(wrong(Kind::Win, 0).code(), MPI_ERR_WIN);
    }

    #[test]
    fn the_error_of_a_full_table_has_the_number_of_its_objects() {
        let mut table = Table::new(Kind::Datatype);
        let number = (0..).take_while(|_| table.insert(()).is_some()).count();
        assert_eq!(
            exhausted("datatypes").message(),
            format!(
                "there are too many datatypes: a process can have {number}; free those that the program does not need any more"
            )
        );
    }

    #[test]
    fn handles_survive_the_way_through_fortran() {
        let mut table = Table::new(Kind::Datatype);
        let Some(handle) = table.insert(5) else {
            panic!("an empty table is full")
        };
        assert_eq!(from_int(to_int(handle)), handle);
        assert!(to_int(handle) > 0);
        assert_eq!(from_int(to_int(MPI_COMM_WORLD.0)), MPI_COMM_WORLD.0);
    }
}
