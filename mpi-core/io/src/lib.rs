//! Files (MPI 5.0, chapter 14): one engine over the system's files.
//!
//! | file | subject |
//! |---|---|
//! | [`view`] | what of a file a process sees: displacement, etype, filetype, data representation |
//! | [`amode`] | how a file is opened; names of the file system |
//! | [`disk`] | the system calls, each of which the state page and the report hear of |
//! | [`access`] | moving data between memory and the runs of a view |
//! | [`file`] | an open file: what all members agree on |
//! | `close` | closing it; `ending` is how the members agree on that, whichever of them have died |
//! | [`size`] | its size |
//! | [`position`] | its view and pointers |
//! | [`transfer`] | reading and writing; `split` is what a file keeps between calls |
//! | [`report`] | what is counted for `mpirun --io-report` and written to the tape |
//! | [`two_phase`] | collective accesses whose pieces interleave, by messages |
//! | `staged` | the same through memory that a node shares; `stage` is one buffer of it, `walk` the way of the pieces |
//! | `across` | and between nodes, after each has merged its own; `bits` says which bytes of a part, `marks` how a message names them |
//! | `plan` | what the members decide together; `seating` is where they sit |
//! | `background` | long nonblocking reads, by io_uring |
//! | `post` | messages that are under way together |
//! | [`hints`] | the values that accesses follow |
//! | [`shared`] | the shared pointer |
//! | [`conversion`] | data representations |
//!
//! Promise: a collective call ends with the same error class at all members, and no member waits for one that has failed.
//! Nothing but the file itself is made in the file system: the shared pointer is a window's word at rank 0.
//! A view is never a list of its pieces: the runs of a filetype come from the datatype engine one by one.
//!
//! An access is carried out by the rank that asks for it, but collective ones whose pieces interleave by a few for all.
//! Collective accesses agree on their outcome afterwards.
//! Nonblocking ones are done when they are begun, so their requests are complete from the start (section 14.4.5 lets them be);
//! but long reads of what is not in memory go on while the program computes.

#![deny(unsafe_code)]

pub mod access;
mod across;
pub mod amode;
mod background;
mod bits;
mod close;
pub mod conversion;
pub mod disk;
mod ending;
pub mod error;
pub mod file;
pub mod hints;
mod marks;
mod moves;
mod plan;
pub mod position;
mod post;
pub mod report;
mod seating;
pub mod shared;
pub mod size;
mod split;
mod stage;
mod staged;
pub mod transfer;
pub mod two_phase;
pub mod view;
mod walk;

// What is below, by the names that the files here use.
use mpi_engine::{comm, engine, trace};
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
