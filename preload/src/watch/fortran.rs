//! Conversion of Fortran handles (integers) to C handles, and `MPI_F_STATUS(ES)_IGNORE`.
#![allow(unsafe_code)]

use super::functions::fortran_sentinel;
use coll_hwbarr_foreign::library::{Family, Handle, Library};
use std::ffi::{CStr, c_int, c_void};

pub type Converter = unsafe extern "C" fn(c_int) -> Handle;

/// Returns the library's conversion function of this name.
pub fn converter(library: &Library, name: &CStr) -> Result<Converter, String> {
    let found = library.symbol(name)?;
    // SAFETY: all conversion functions take the integer and return the handle.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Converter>(found) })
}

/// The conversions from Fortran handles to C handles.
pub struct Fortran {
    /// Functions for communicators, datatypes, operators, requests and messages;
    /// `None` if Fortran and C handles have the same bits.
    converters: Option<[Option<Converter>; 5]>,
    /// The addresses of `MPI_F_STATUS_IGNORE` and `MPI_F_STATUSES_IGNORE`.
    ignored: [usize; 2],
}

impl Fortran {
    pub fn of(library: &Library) -> Fortran {
        let names = match library.family {
            Family::Mpich => None,
            Family::OpenMpi => Some([
                c"PMPI_Comm_f2c",
                c"PMPI_Type_f2c",
                c"PMPI_Op_f2c",
                c"PMPI_Request_f2c",
                c"PMPI_Message_f2c",
            ]),
            Family::Standard => Some([
                c"PMPI_Comm_fromint",
                c"PMPI_Type_fromint",
                c"PMPI_Op_fromint",
                c"PMPI_Request_fromint",
                c"PMPI_Message_fromint",
            ]),
        };
        Fortran {
            converters: names.map(|names| names.map(|name| converter(library, name).ok())),
            ignored: [
                fortran_sentinel(library, c"MPI_F_STATUS_IGNORE"),
                fortran_sentinel(library, c"MPI_F_STATUSES_IGNORE"),
            ],
        }
    }

    fn handle(&self, kind: usize, integer: c_int) -> Handle {
        match &self.converters {
            // Fortran and C handles have the same bits.
            None => integer as u32 as Handle,
            Some(converters) => match converters[kind] {
                // SAFETY: the library's conversion function accepts any integer.
                Some(convert) => unsafe { convert(integer) },
                None => 0,
            },
        }
    }

    pub fn comm(&self, integer: c_int) -> Handle {
        self.handle(0, integer)
    }

    pub fn datatype(&self, integer: c_int) -> Handle {
        self.handle(1, integer)
    }

    pub fn op(&self, integer: c_int) -> Handle {
        self.handle(2, integer)
    }

    pub fn request(&self, integer: c_int) -> Handle {
        self.handle(3, integer)
    }

    pub fn message(&self, integer: c_int) -> Handle {
        self.handle(4, integer)
    }

    /// Returns true if the program ignores the statuses.
    pub fn is_ignored(&self, statuses: usize) -> bool {
        statuses == 0 || self.ignored.contains(&statuses)
    }
}
