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

use super::args::{out, recv_buf, send_buf};
use super::completion::set_status;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::object::request::{c_status, running_for, running_on};
use crate::state;
use mpi_core::datatype::{RecvBuf, SendBuf};
use mpi_core::io::{Begun, File, Place};
use mpi_core::request::{Body, Status};
use std::ffi::c_void;

/// The participants of an access.
#[derive(Clone, Copy)]
enum AccessKind {
    /// This process alone, at a file pointer or an offset.
    Alone(Place),
    /// All members.
    All(Place),
    /// All members, in the order of their ranks.
    InOrder,
}

/// The status of an access that has transferred this number of bytes.
fn status_of(bytes: i64) -> Status {
    Status {
        bytes: bytes.max(0) as u64,
        ..Status::EMPTY
    }
}

fn read(file: &File, access_kind: AccessKind, buf: &mut RecvBuf) -> Result<i64, mpi_core::Error> {
    match access_kind {
        AccessKind::Alone(place) => file.read(place, buf),
        AccessKind::All(place) => file.read_all(place, buf),
        AccessKind::InOrder => file.read_ordered(buf),
    }
}

fn write(file: &File, access_kind: AccessKind, buf: &SendBuf) -> Result<i64, mpi_core::Error> {
    match access_kind {
        AccessKind::Alone(place) => file.write(place, buf),
        AccessKind::All(place) => file.write_all(place, buf),
        AccessKind::InOrder => file.write_ordered(buf),
    }
}

/// Performs a blocking read.
///
/// # Safety
/// The buffer and `status` are valid as the C binding of the calling function requires.
unsafe fn reads(
    fh: MPI_File,
    access_kind: AccessKind,
    (buf, count, datatype): (*mut c_void, MPI_Count, MPI_Datatype),
    status: *mut MPI_Status,
) -> Outcome {
    let object = state::file(fh)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let mut buf = unsafe { recv_buf(buf, count, datatype)? };
    let bytes = read(&object.file, access_kind, &mut buf)?;
    // SAFETY: `status` is valid by the `# Safety` contract of this function.
    unsafe { set_status(status, &c_status(status_of(bytes))) };
    Ok(())
}

/// Performs a blocking write.
///
/// # Safety
/// The buffer and `status` are valid as the C binding of the calling function requires.
unsafe fn writes(
    fh: MPI_File,
    access_kind: AccessKind,
    (buf, count, datatype): (*const c_void, MPI_Count, MPI_Datatype),
    status: *mut MPI_Status,
) -> Outcome {
    let object = state::file(fh)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let buf = unsafe { send_buf(buf, count, datatype)? };
    let bytes = write(&object.file, access_kind, &buf)?;
    // SAFETY: `status` is valid by the `# Safety` contract of this function.
    unsafe { set_status(status, &c_status(status_of(bytes))) };
    Ok(())
}

/// Returns a completed request with the status of an access.
///
/// # Safety
/// `request` is an output argument of the caller.
unsafe fn completed(bytes: i64, request: *mut MPI_Request) -> Outcome {
    let engine = state::engine()?;
    let requests = engine.pml().requests();
    let req = requests.begin(Body::General);
    requests.complete(&req, Ok(status_of(bytes)));
    // SAFETY: `request` is null or writable: `# Safety` of this function.
    unsafe { out(request, running_for(req, None)?, "request") }
}

/// Starts a nonblocking read, which is usually complete when the call returns.
///
/// # Safety
/// The buffer and `request` are valid as the C binding of the calling function requires.
unsafe fn begins_reading(
    fh: MPI_File,
    place: Place,
    (buf, count, datatype): (*mut c_void, MPI_Count, MPI_Datatype),
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::file(fh)?;
    // SAFETY: `request` is null or writable: `# Safety` of this function.
    unsafe {
        let mut buf = recv_buf(buf, count, datatype)?;
        match object.file.begin_read(place, &mut buf)? {
            Begun::Done(bytes) => completed(bytes, request),
            Begun::Under(req) => out(request, running_on(req, object)?, "request"),
        }
    }
}

/// Performs a nonblocking write, which is complete when the call returns.
///
/// # Safety
/// The buffer and `request` are valid as the C binding of the calling function requires.
unsafe fn begins_writing(
    fh: MPI_File,
    place: Place,
    (buf, count, datatype): (*const c_void, MPI_Count, MPI_Datatype),
    request: *mut MPI_Request,
) -> Outcome {
    let object = state::file(fh)?;
    // SAFETY: `request` is valid by the `# Safety` contract of this function.
    unsafe {
        let buf = send_buf(buf, count, datatype)?;
        let bytes = write(&object.file, AccessKind::Alone(place), &buf)?;
        completed(bytes, request)
    }
}

/// Begins a split collective read.
///
/// # Safety
/// The buffer is valid as the C binding of the calling function requires.
unsafe fn splits_reading(
    call: &'static str,
    fh: MPI_File,
    access_kind: AccessKind,
    (buf, count, datatype): (*mut c_void, MPI_Count, MPI_Datatype),
) -> Outcome {
    let object = state::file(fh)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let mut buf = unsafe { recv_buf(buf, count, datatype)? };
    let act = || read(&object.file, access_kind, &mut buf);
    Ok(object.file.split_begins(call, act)?)
}

/// Begins a split collective write.
///
/// # Safety
/// The buffer is valid as the C binding of the calling function requires.
unsafe fn splits_writing(
    call: &'static str,
    fh: MPI_File,
    access_kind: AccessKind,
    (buf, count, datatype): (*const c_void, MPI_Count, MPI_Datatype),
) -> Outcome {
    let object = state::file(fh)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let buf = unsafe { send_buf(buf, count, datatype)? };
    let act = || write(&object.file, access_kind, &buf);
    Ok(object.file.split_begins(call, act)?)
}

/// Ends a split collective.
///
/// # Safety
/// `status` is an output argument of the caller.
unsafe fn ends_split(call: &'static str, fh: MPI_File, status: *mut MPI_Status) -> Outcome {
    let bytes = state::file(fh)?.file.split_ends(call)?;
    // SAFETY: `status` is valid by the `# Safety` contract of this function.
    unsafe { set_status(status, &c_status(status_of(bytes))) };
    Ok(())
}

/// Converts an offset to the engine's type.
fn at(offset: MPI_Offset) -> Place {
    Place::At(offset)
}

/// The failure of an argument.
fn argument(sentence: String) -> Failure {
    Failure::new(MPI_ERR_ARG, sentence)
}
