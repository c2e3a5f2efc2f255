//! Noncollective file access (sections 14.4.2 to 14.4.4): at an explicit offset, at the individual file pointer, at the shared one.

#![allow(unsafe_code)]

use super::{AccessKind, at, begins_reading, begins_writing, reads, writes};
use crate::abi::*;
use crate::error::Outcome;
use mpi_core::io::Place;
use std::ffi::c_void;

pub unsafe fn MPI_File_read_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_read_at_c requires of its caller.
    unsafe {
        reads(
            fh,
            AccessKind::Alone(at(offset)),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_iread_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iread_at_c requires of its caller.
    unsafe { begins_reading(fh, at(offset), (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_read_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_read_c requires of its caller.
    unsafe {
        reads(
            fh,
            AccessKind::Alone(Place::Individual),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_iread_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iread_c requires of its caller.
    unsafe { begins_reading(fh, Place::Individual, (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_read_shared_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_read_shared_c requires of its caller.
    unsafe {
        reads(
            fh,
            AccessKind::Alone(Place::Shared),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_iread_shared_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iread_shared_c requires of its caller.
    unsafe { begins_reading(fh, Place::Shared, (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_write_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_write_at_c requires of its caller.
    unsafe {
        writes(
            fh,
            AccessKind::Alone(at(offset)),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_iwrite_at_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iwrite_at_c requires of its caller.
    unsafe { begins_writing(fh, at(offset), (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_write_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_write_c requires of its caller.
    unsafe {
        writes(
            fh,
            AccessKind::Alone(Place::Individual),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_iwrite_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iwrite_c requires of its caller.
    unsafe { begins_writing(fh, Place::Individual, (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_write_shared_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_write_shared_c requires of its caller.
    unsafe {
        writes(
            fh,
            AccessKind::Alone(Place::Shared),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_iwrite_shared_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iwrite_shared_c requires of its caller.
    unsafe { begins_writing(fh, Place::Shared, (buf, count, datatype), request) }
}
