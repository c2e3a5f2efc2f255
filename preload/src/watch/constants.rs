//! MPI constants and sizes of the library that the recorder needs.

use coll_hwbarr_foreign::library::{Family, Handle, Library};
use std::ffi::c_int;

/// Constants of the recorder, in addition to those of the barrier.
#[derive(Clone, Copy, Debug)]
pub struct LibraryConstants {
    pub any_source: c_int,
    pub any_tag: c_int,
    pub proc_null: c_int,
    pub root: c_int,
    pub comm_null: Handle,
    pub request_null: Handle,
    /// `MPI_STATUSES_IGNORE`, which is also `MPI_STATUS_IGNORE`.
    pub statuses_ignore: usize,
    /// Size of a status in bytes.
    /// The source is at byte offset `source_at` of the status; the tag follows the source.
    pub status_bytes: usize,
    pub source_at: usize,
    /// Size of a handle in the program's memory, in bytes.
    pub handle_bytes: usize,
}

/// `MPI_UNDEFINED`, which is the same in all libraries.
pub const UNDEFINED: c_int = -32766;

impl LibraryConstants {
    pub fn of(library: &Library) -> Result<LibraryConstants, String> {
        Ok(match library.family {
            Family::Standard => LibraryConstants {
                any_source: -1,
                any_tag: -2,
                proc_null: -3,
                root: -4,
                comm_null: 0x100,
                request_null: 0x180,
                statuses_ignore: 0,
                status_bytes: 32,
                source_at: 0,
                handle_bytes: size_of::<Handle>(),
            },
            Family::Mpich => LibraryConstants {
                any_source: -2,
                any_tag: -1,
                proc_null: -1,
                root: -3,
                comm_null: 0x0400_0000,
                request_null: 0x2c00_0000,
                statuses_ignore: 1,
                status_bytes: 20,
                source_at: 8,
                handle_bytes: size_of::<c_int>(),
            },
            Family::OpenMpi => LibraryConstants {
                any_source: -1,
                any_tag: -1,
                proc_null: -2,
                root: -4,
                comm_null: library.object(c"ompi_mpi_comm_null")?,
                request_null: library.object(c"ompi_request_null")?,
                statuses_ignore: 0,
                status_bytes: 24,
                source_at: 0,
                handle_bytes: size_of::<Handle>(),
            },
        })
    }
}
