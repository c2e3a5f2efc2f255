//! Collective file access: blocking, split (section 14.4.5), or nonblocking.
//!
//! A nonblocking collective need not wait for the other members, so none of these does.

#![allow(unsafe_code)]

use super::{
    AccessKind, at, begins_reading, begins_writing, ends_split, reads, splits_reading,
    splits_writing, writes,
};
use crate::abi::*;
use crate::error::Outcome;
use mpi_core::io::Place;
use std::ffi::c_void;

pub unsafe fn MPI_File_read_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_read_at_all_c requires of its caller.
    unsafe {
        reads(
            fh,
            AccessKind::All(at(offset)),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_read_at_all_begin_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_File_read_at_all_begin_c requires of its caller.
    unsafe {
        splits_reading(
            "MPI_File_read_at_all",
            fh,
            AccessKind::All(at(offset)),
            (buf, count, datatype),
        )
    }
}

pub unsafe fn MPI_File_read_at_all_end(
    fh: MPI_File,
    _buf: *mut c_void,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_File_read_at_all_end requires of its caller.
    unsafe { ends_split("MPI_File_read_at_all", fh, status) }
}

pub unsafe fn MPI_File_read_all_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_read_all_c requires of its caller.
    unsafe {
        reads(
            fh,
            AccessKind::All(Place::Individual),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_read_all_begin_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_File_read_all_begin_c requires of its caller.
    unsafe {
        splits_reading(
            "MPI_File_read_all",
            fh,
            AccessKind::All(Place::Individual),
            (buf, count, datatype),
        )
    }
}

pub unsafe fn MPI_File_read_all_end(
    fh: MPI_File,
    _buf: *mut c_void,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_File_read_all_end requires of its caller.
    unsafe { ends_split("MPI_File_read_all", fh, status) }
}

pub unsafe fn MPI_File_read_ordered_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_read_ordered_c requires of its caller.
    unsafe { reads(fh, AccessKind::InOrder, (buf, count, datatype), status) }
}

pub unsafe fn MPI_File_read_ordered_begin_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_File_read_ordered_begin_c requires of its caller.
    unsafe {
        splits_reading(
            "MPI_File_read_ordered",
            fh,
            AccessKind::InOrder,
            (buf, count, datatype),
        )
    }
}

pub unsafe fn MPI_File_read_ordered_end(
    fh: MPI_File,
    _buf: *mut c_void,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_File_read_ordered_end requires of its caller.
    unsafe { ends_split("MPI_File_read_ordered", fh, status) }
}

pub unsafe fn MPI_File_iread_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iread_at_all_c requires of its caller.
    unsafe { begins_reading(fh, at(offset), (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_iread_all_c(
    fh: MPI_File,
    buf: *mut c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iread_all_c requires of its caller.
    unsafe { begins_reading(fh, Place::Individual, (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_write_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_write_at_all_c requires of its caller.
    unsafe {
        writes(
            fh,
            AccessKind::All(at(offset)),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_write_at_all_begin_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_File_write_at_all_begin_c requires of its caller.
    unsafe {
        splits_writing(
            "MPI_File_write_at_all",
            fh,
            AccessKind::All(at(offset)),
            (buf, count, datatype),
        )
    }
}

pub unsafe fn MPI_File_write_at_all_end(
    fh: MPI_File,
    _buf: *const c_void,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_File_write_at_all_end requires of its caller.
    unsafe { ends_split("MPI_File_write_at_all", fh, status) }
}

pub unsafe fn MPI_File_write_all_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_write_all_c requires of its caller.
    unsafe {
        writes(
            fh,
            AccessKind::All(Place::Individual),
            (buf, count, datatype),
            status,
        )
    }
}

pub unsafe fn MPI_File_write_all_begin_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_File_write_all_begin_c requires of its caller.
    unsafe {
        splits_writing(
            "MPI_File_write_all",
            fh,
            AccessKind::All(Place::Individual),
            (buf, count, datatype),
        )
    }
}

pub unsafe fn MPI_File_write_all_end(
    fh: MPI_File,
    _buf: *const c_void,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_File_write_all_end requires of its caller.
    unsafe { ends_split("MPI_File_write_all", fh, status) }
}

pub unsafe fn MPI_File_write_ordered_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `buf` and `status` are valid as the C binding of MPI_File_write_ordered_c requires of its caller.
    unsafe { writes(fh, AccessKind::InOrder, (buf, count, datatype), status) }
}

pub unsafe fn MPI_File_write_ordered_begin_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `buf` is valid as the C binding of MPI_File_write_ordered_begin_c requires of its caller.
    unsafe {
        splits_writing(
            "MPI_File_write_ordered",
            fh,
            AccessKind::InOrder,
            (buf, count, datatype),
        )
    }
}

pub unsafe fn MPI_File_write_ordered_end(
    fh: MPI_File,
    _buf: *const c_void,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_File_write_ordered_end requires of its caller.
    unsafe { ends_split("MPI_File_write_ordered", fh, status) }
}

pub unsafe fn MPI_File_iwrite_at_all_c(
    fh: MPI_File,
    offset: MPI_Offset,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iwrite_at_all_c requires of its caller.
    unsafe { begins_writing(fh, at(offset), (buf, count, datatype), request) }
}

pub unsafe fn MPI_File_iwrite_all_c(
    fh: MPI_File,
    buf: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: `buf` and `request` are valid as the C binding of MPI_File_iwrite_all_c requires of its caller.
    unsafe { begins_writing(fh, Place::Individual, (buf, count, datatype), request) }
}
