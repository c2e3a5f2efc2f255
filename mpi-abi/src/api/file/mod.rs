//! MPI-IO: file functions (chapter 14).
//!
//! | file | subject |
//! |---|---|
//! | [`open`] | opening, closing, deleting, sizes, hints |
//! | `hint_file` | the hint file |
//! | [`view`] | views and file pointers |
//! | [`access`] | noncollective reading and writing |
//! | [`collective`] | collective reading and writing, blocking or split |
//! | [`datarep`] | user-defined data representations |
#![allow(unsafe_code)]

pub mod access;
pub mod collective;
pub mod datarep;
mod hint_file;
pub mod open;
pub mod view;

use super::args::{Out, RecvMem, SendMem};
use super::completion::set_status;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::registry::request::{c_status, running_for, running_on};
use crate::state;
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::io::{Begun, File, Place};
use mpi_core::request::{Body, Status};

/// The participants of a file access.
#[derive(Clone, Copy)]
enum AccessKind {
    /// Only this process accesses the file, at a file pointer or an offset.
    Alone(Place),
    /// All members access the file, each at a file pointer or an offset.
    All(Place),
    /// All members access the file in rank order, at the shared file pointer.
    InOrder,
}

/// Returns the status of an access that transferred `bytes` bytes.
fn status_of(bytes: i64) -> Status {
    Status {
        bytes: bytes.max(0) as u64,
        ..Status::EMPTY
    }
}

fn read(file: &File, access_kind: AccessKind, buf: &mut RecvBuf) -> Result<i64, mpi_core::Error> {
    match access_kind {
        AccessKind::Alone(place) => file.accesses().read(place, buf),
        AccessKind::All(place) => file.accesses().read_all(place, buf),
        AccessKind::InOrder => file.accesses().read_ordered(buf),
    }
}

fn write(file: &File, access_kind: AccessKind, buf: &SendBuf) -> Result<i64, mpi_core::Error> {
    match access_kind {
        AccessKind::Alone(place) => file.accesses().write(place, buf),
        AccessKind::All(place) => file.accesses().write_all(place, buf),
        AccessKind::InOrder => file.accesses().write_ordered(buf),
    }
}

/// Performs a blocking read.
fn reads(fh: MPI_File, access_kind: AccessKind, buf: RecvMem, status: Out<MPI_Status>) -> Outcome {
    let object = state::file(fh)?;
    let mut buf = buf.buffer()?;
    let bytes = read(&object.file, access_kind, &mut buf)?;
    set_status(status, &c_status(status_of(bytes)));
    Ok(())
}

/// Performs a blocking write.
fn writes(fh: MPI_File, access_kind: AccessKind, buf: SendMem, status: Out<MPI_Status>) -> Outcome {
    let object = state::file(fh)?;
    let buf = buf.buffer()?;
    let bytes = write(&object.file, access_kind, &buf)?;
    set_status(status, &c_status(status_of(bytes)));
    Ok(())
}

/// Stores a completed request that holds the status of an access.
fn completed(bytes: i64, request: Out<MPI_Request>) -> Outcome {
    let engine = state::engine()?;
    let requests = engine.pml().requests();
    let req = requests.begin(Body::General);
    requests.complete(&req, Ok(status_of(bytes)));
    request.set(running_for(req, None)?, "request")
}

/// Starts a nonblocking read, which usually completes within the call.
fn begins_reading(fh: MPI_File, place: Place, buf: RecvMem, request: Out<MPI_Request>) -> Outcome {
    let object = state::file(fh)?;
    let mut buf = buf.buffer()?;
    // SAFETY: the program does not use the buffer before completion (`RecvMem::new`).
    match unsafe { object.file.accesses().begin_read(place, &mut buf)? } {
        Begun::Done(bytes) => completed(bytes, request),
        Begun::Under(req) => request.set(running_on(req, object)?, "request"),
    }
}

/// Performs a nonblocking write, which completes within the call.
fn begins_writing(fh: MPI_File, place: Place, buf: SendMem, request: Out<MPI_Request>) -> Outcome {
    let object = state::file(fh)?;
    let buf = buf.buffer()?;
    let bytes = write(&object.file, AccessKind::Alone(place), &buf)?;
    completed(bytes, request)
}

/// Begins a split collective read.
fn splits_reading(
    call: &'static str,
    fh: MPI_File,
    access_kind: AccessKind,
    buf: RecvMem,
) -> Outcome {
    let object = state::file(fh)?;
    let mut buf = buf.buffer()?;
    let act = || read(&object.file, access_kind, &mut buf);
    Ok(object.file.accesses().split_begins(call, act)?)
}

/// Begins a split collective write.
fn splits_writing(
    call: &'static str,
    fh: MPI_File,
    access_kind: AccessKind,
    buf: SendMem,
) -> Outcome {
    let object = state::file(fh)?;
    let buf = buf.buffer()?;
    let act = || write(&object.file, access_kind, &buf);
    Ok(object.file.accesses().split_begins(call, act)?)
}

/// Ends a split collective.
fn ends_split(call: &'static str, fh: MPI_File, status: Out<MPI_Status>) -> Outcome {
    let bytes = state::file(fh)?.file.accesses().split_ends(call)?;
    set_status(status, &c_status(status_of(bytes)));
    Ok(())
}

/// Converts an offset argument to a [`Place`] of the engine.
fn at(offset: MPI_Offset) -> Place {
    Place::At(offset)
}

/// Returns the failure for an invalid argument.
fn argument(sentence: String) -> Failure {
    Failure::new(MPI_ERR_ARG, sentence)
}
