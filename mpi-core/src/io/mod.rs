//! Files (MPI 5.0, chapter 14): one engine over the system's files.
//!
//! | file | subject |
//! |---|---|
//! | [`view`] | what of a file a process sees: displacement, etype, filetype, data representation |
//! | [`access`] | moving data between memory and the runs of a view |
//! | [`file`] | opening, closing, sizes, pointers |
//! | [`two_phase`] | collective accesses whose pieces interleave |
//! | [`shared`] | the shared pointer |
//! | [`conversion`] | data representations |
//!
//! Promise: a collective call ends with the same error class at all members, and no member waits for one that has failed.
//! Nothing but the file itself is made in the file system: the shared pointer is a window's word at rank 0.
//! A view is never a list of its pieces: the runs of a filetype come from the datatype engine one by one.
//!
//! An access is carried out by the rank that asks for it, but collective ones whose pieces interleave by a few for all.
//! Collective accesses agree on their outcome afterwards.
//! Nonblocking ones are done when they are begun, so their requests are complete from the start (section 14.4.5 lets them be).

#![allow(unsafe_code)]

pub mod access;
pub mod conversion;
pub mod error;
pub mod file;
pub mod shared;
pub mod two_phase;
pub mod view;

pub use conversion::{Conversion, Representation};
pub use error::{IoClass, IoError};
pub use file::{Amode, File, Place, Whence, delete};
pub use view::View;
