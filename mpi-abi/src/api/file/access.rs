//! Noncollective file access (sections 14.4.2 to 14.4.4).
//!
//! The position is an explicit offset, the individual file pointer or the shared file pointer.

use super::{AccessKind, at, begins_reading, begins_writing, reads, writes};
use crate::abi::*;
use crate::api::args::{Out, RecvMem, SendMem};
use crate::error::Outcome;
use mpi_core::io::Place;

pub fn MPI_File_read_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: RecvMem,
    status: Out<MPI_Status>,
) -> Outcome {
    reads(fh, AccessKind::Alone(at(offset)), buf, status)
}

pub fn MPI_File_iread_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: RecvMem,
    request: Out<MPI_Request>,
) -> Outcome {
    begins_reading(fh, at(offset), buf, request)
}

pub fn MPI_File_read_c(fh: MPI_File, buf: RecvMem, status: Out<MPI_Status>) -> Outcome {
    reads(fh, AccessKind::Alone(Place::Individual), buf, status)
}

pub fn MPI_File_iread_c(fh: MPI_File, buf: RecvMem, request: Out<MPI_Request>) -> Outcome {
    begins_reading(fh, Place::Individual, buf, request)
}

pub fn MPI_File_read_shared_c(fh: MPI_File, buf: RecvMem, status: Out<MPI_Status>) -> Outcome {
    reads(fh, AccessKind::Alone(Place::Shared), buf, status)
}

pub fn MPI_File_iread_shared_c(fh: MPI_File, buf: RecvMem, request: Out<MPI_Request>) -> Outcome {
    begins_reading(fh, Place::Shared, buf, request)
}

pub fn MPI_File_write_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: SendMem,
    status: Out<MPI_Status>,
) -> Outcome {
    writes(fh, AccessKind::Alone(at(offset)), buf, status)
}

pub fn MPI_File_iwrite_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: SendMem,
    request: Out<MPI_Request>,
) -> Outcome {
    begins_writing(fh, at(offset), buf, request)
}

pub fn MPI_File_write_c(fh: MPI_File, buf: SendMem, status: Out<MPI_Status>) -> Outcome {
    writes(fh, AccessKind::Alone(Place::Individual), buf, status)
}

pub fn MPI_File_iwrite_c(fh: MPI_File, buf: SendMem, request: Out<MPI_Request>) -> Outcome {
    begins_writing(fh, Place::Individual, buf, request)
}

pub fn MPI_File_write_shared_c(fh: MPI_File, buf: SendMem, status: Out<MPI_Status>) -> Outcome {
    writes(fh, AccessKind::Alone(Place::Shared), buf, status)
}

pub fn MPI_File_iwrite_shared_c(fh: MPI_File, buf: SendMem, request: Out<MPI_Request>) -> Outcome {
    begins_writing(fh, Place::Shared, buf, request)
}
