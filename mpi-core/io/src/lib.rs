//! MPI-IO (MPI 5.0, chapter 14): one implementation over POSIX files.
//!
//! | file | subject |
//! |---|---|
//! | [`view`] | file views: displacement, etype, filetype, data representation |
//! | [`amode`] | access modes; opening and deleting files by name |
//! | [`disk`] | the system calls, each recorded on the state page and in the I/O report |
//! | [`access`] | data transfer between memory and the file ranges of a view, with data sieving |
//! | `uring_read` | long nonblocking reads by io_uring |
//! | `collective` | collective buffering: two-phase I/O by messages, in shared memory and between nodes |
//! | `file` | an open file and the agreement of its members |
//! | `close` | `MPI_File_close`; `ending`: the members' agreement on it, also after failures |
//! | [`size`] | file size, preallocation and `MPI_File_sync` |
//! | [`position`] | setting a view, and the file pointers |
//! | [`transfer`] | read and write calls; `direction`: read or write; `split_collective`: the open split collective |
//! | [`report`] | counters for `mpirun --io-report`, written to the event ring |
//! | [`hints`] | info hints, and the values that accesses use |
//! | [`shared`] | the shared file pointer |
//! | [`conversion`] | data representations |
//!
//! Guarantee: a collective call returns the same error class at all members.
//! No member waits indefinitely for a member that has failed.
//! The library creates no auxiliary files: the shared file pointer is in a window at rank 0.
//! A view is never expanded to a list: the datatype engine iterates over the filetype's
//! contiguous ranges.
//!
//! Each rank performs its own accesses; aggregators perform interleaved collective accesses.
//! After a collective access the members agree on its result.
//! Nonblocking accesses complete when they are started, which section 14.4.5 allows. The exception
//! is a long read of data that are not in the page cache: it continues while the program computes.

#![deny(unsafe_code)]

pub mod access;
pub mod amode;
mod close;
mod collective;
pub mod conversion;
mod direction;
pub mod disk;
mod ending;
pub mod error;
pub mod file;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod hints;
pub mod position;
pub mod report;
pub mod shared;
pub mod size;
mod split_collective;
pub mod transfer;
mod uring_read;
pub mod view;

// Modules of lower packages, imported under the names that this crate uses.
use mpi_engine::{RunObserver, comm, engine, trace};
use mpi_osc as osc;
use mpi_p2p::{pml, request};
use mpi_types::error::{Error, Failure};
use mpi_types::{datatype, group, op};

pub use amode::{Amode, delete};
pub use conversion::{Conversion, Representation};
pub use error::{IoClass, IoError};
pub use file::File;
pub use hints::Tuning;
pub use position::Whence;
pub use transfer::{Begun, Place};
pub use view::View;
