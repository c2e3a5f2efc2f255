//! Collective file access: blocking, split (section 14.4.5) and nonblocking.
//!
//! The nonblocking collectives do not wait for other members, which the standard allows.

use super::{
    AccessKind, at, begins_reading, begins_writing, ends_split, reads, splits_reading,
    splits_writing, writes,
};
use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::error::Outcome;
use mpi_core::io::Place;
use std::ffi::c_void;

pub fn MPI_File_read_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: RecvMem,
    status: Out<MPI_Status>,
) -> Outcome {
    reads(fh, AccessKind::All(at(offset)), buf, status)
}

pub fn MPI_File_read_at_all_begin_c(fh: MPI_File, offset: MPI_Offset, buf: RecvMem) -> Outcome {
    splits_reading("MPI_File_read_at_all", fh, AccessKind::All(at(offset)), buf)
}

pub fn MPI_File_read_at_all_end(
    fh: MPI_File,
    _buf: *mut c_void,
    status: Out<MPI_Status>,
) -> Outcome {
    ends_split("MPI_File_read_at_all", fh, status)
}

pub fn MPI_File_read_all_c(fh: MPI_File, buf: RecvMem, status: Out<MPI_Status>) -> Outcome {
    reads(fh, AccessKind::All(Place::Individual), buf, status)
}

pub fn MPI_File_read_all_begin_c(fh: MPI_File, buf: RecvMem) -> Outcome {
    splits_reading(
        "MPI_File_read_all",
        fh,
        AccessKind::All(Place::Individual),
        buf,
    )
}

pub fn MPI_File_read_all_end(fh: MPI_File, _buf: *mut c_void, status: Out<MPI_Status>) -> Outcome {
    ends_split("MPI_File_read_all", fh, status)
}

pub fn MPI_File_read_ordered_c(fh: MPI_File, buf: RecvMem, status: Out<MPI_Status>) -> Outcome {
    reads(fh, AccessKind::InOrder, buf, status)
}

pub fn MPI_File_read_ordered_begin_c(fh: MPI_File, buf: RecvMem) -> Outcome {
    splits_reading("MPI_File_read_ordered", fh, AccessKind::InOrder, buf)
}

pub fn MPI_File_read_ordered_end(
    fh: MPI_File,
    _buf: *mut c_void,
    status: Out<MPI_Status>,
) -> Outcome {
    ends_split("MPI_File_read_ordered", fh, status)
}

pub fn MPI_File_iread_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: RecvMem,
    request: Out<MPI_Request>,
) -> Outcome {
    begins_reading(fh, at(offset), buf, request)
}

pub fn MPI_File_iread_all_c(fh: MPI_File, buf: RecvMem, request: Out<MPI_Request>) -> Outcome {
    begins_reading(fh, Place::Individual, buf, request)
}

pub fn MPI_File_write_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: SendMem,
    status: Out<MPI_Status>,
) -> Outcome {
    writes(fh, AccessKind::All(at(offset)), buf, status)
}

pub fn MPI_File_write_at_all_begin_c(fh: MPI_File, offset: MPI_Offset, buf: SendMem) -> Outcome {
    splits_writing(
        "MPI_File_write_at_all",
        fh,
        AccessKind::All(at(offset)),
        buf,
    )
}

pub fn MPI_File_write_at_all_end(
    fh: MPI_File,
    _buf: *const c_void,
    status: Out<MPI_Status>,
) -> Outcome {
    ends_split("MPI_File_write_at_all", fh, status)
}

pub fn MPI_File_write_all_c(fh: MPI_File, buf: SendMem, status: Out<MPI_Status>) -> Outcome {
    writes(fh, AccessKind::All(Place::Individual), buf, status)
}

pub fn MPI_File_write_all_begin_c(fh: MPI_File, buf: SendMem) -> Outcome {
    splits_writing(
        "MPI_File_write_all",
        fh,
        AccessKind::All(Place::Individual),
        buf,
    )
}

pub fn MPI_File_write_all_end(
    fh: MPI_File,
    _buf: *const c_void,
    status: Out<MPI_Status>,
) -> Outcome {
    ends_split("MPI_File_write_all", fh, status)
}

pub fn MPI_File_write_ordered_c(fh: MPI_File, buf: SendMem, status: Out<MPI_Status>) -> Outcome {
    writes(fh, AccessKind::InOrder, buf, status)
}

pub fn MPI_File_write_ordered_begin_c(fh: MPI_File, buf: SendMem) -> Outcome {
    splits_writing("MPI_File_write_ordered", fh, AccessKind::InOrder, buf)
}

pub fn MPI_File_write_ordered_end(
    fh: MPI_File,
    _buf: *const c_void,
    status: Out<MPI_Status>,
) -> Outcome {
    ends_split("MPI_File_write_ordered", fh, status)
}

pub fn MPI_File_iwrite_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: SendMem,
    request: Out<MPI_Request>,
) -> Outcome {
    begins_writing(fh, at(offset), buf, request)
}

pub fn MPI_File_iwrite_all_c(fh: MPI_File, buf: SendMem, request: Out<MPI_Request>) -> Outcome {
    begins_writing(fh, Place::Individual, buf, request)
}
