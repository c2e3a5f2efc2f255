//! File views (section 14.3), file pointers (section 14.4) and related queries.

#![allow(unsafe_code)]

use super::open::take_hints;
use super::{argument, datarep};
use crate::abi::*;
use crate::api::args::{out, string};
use crate::error::{Failure, Outcome};
use crate::info;
use crate::registry::datatype::register;
use crate::state;
use mpi_core::datatype::Datatype;
use mpi_core::io::Whence;
use std::ffi::{c_char, c_int};

pub unsafe fn MPI_File_set_view(
    fh: MPI_File,
    disp: MPI_Offset,
    etype: MPI_Datatype,
    filetype: MPI_Datatype,
    datarep: *const c_char,
    info: MPI_Info,
) -> Outcome {
    let object = state::file(fh)?;
    let given = info::hints(info)?;
    let (etype, filetype) = (state::datatype(etype)?, state::datatype(filetype)?);
    // SAFETY: `datarep` is null or NUL-terminated: the C binding of MPI_File_set_view requires it of the caller.
    let name = unsafe { string(datarep, MPI_MAX_DATAREP_STRING, MPI_ERR_ARG, "datarep")? };
    let disp = match disp {
        MPI_DISPLACEMENT_CURRENT => None,
        bytes => Some(bytes),
    };
    object
        .file
        .set_view(disp, &etype, &filetype, datarep::named(&name))?;
    take_hints(&object, &given)
}

/// Returns a datatype handle for the program: a predefined one unchanged, otherwise a new one that the program frees.
fn handed_out(datatype: &Datatype) -> Result<MPI_Datatype, Failure> {
    match datatype.as_named() {
        Some(named) => Ok(MPI_Datatype(named.info().handle as usize)),
        None => register(datatype.dup()?),
    }
}

pub unsafe fn MPI_File_get_view(
    fh: MPI_File,
    disp: *mut MPI_Offset,
    etype: *mut MPI_Datatype,
    filetype: *mut MPI_Datatype,
    datarep: *mut c_char,
) -> Outcome {
    let view = state::file(fh)?.file.view();
    if datarep.is_null() {
        return Err(argument("datarep is a null pointer".into()));
    }
    let name = view.representation.name();
    // SAFETY: the output arguments are null or writable, `datarep` for MPI_MAX_DATAREP_STRING bytes, which exceeds every name: the C binding of MPI_File_get_view requires it of the caller.
    unsafe {
        out(disp, view.disp as MPI_Offset, "disp")?;
        out(etype, handed_out(&view.etype)?, "etype")?;
        out(filetype, handed_out(&view.filetype)?, "filetype")?;
        std::ptr::copy_nonoverlapping(name.as_ptr(), datarep.cast(), name.len());
        datarep.add(name.len()).write(0);
    }
    Ok(())
}

fn whence_of(whence: c_int) -> Result<Whence, Failure> {
    match whence {
        MPI_SEEK_SET => Ok(Whence::Set),
        MPI_SEEK_CUR => Ok(Whence::Current),
        MPI_SEEK_END => Ok(Whence::End),
        _ => Err(argument(format!(
            "whence is {whence}, which is none of MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END"
        ))),
    }
}

pub unsafe fn MPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Outcome {
    let object = state::file(fh)?;
    Ok(object.file.seek(offset, whence_of(whence)?)?)
}

pub unsafe fn MPI_File_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Outcome {
    let object = state::file(fh)?;
    Ok(object.file.seek_shared(offset, whence_of(whence)?)?)
}

pub unsafe fn MPI_File_get_position(fh: MPI_File, offset: *mut MPI_Offset) -> Outcome {
    let position = state::file(fh)?.file.position()?;
    // SAFETY: `offset` is null or writable: the C binding of MPI_File_get_position requires it of the caller.
    unsafe { out(offset, position as MPI_Offset, "offset") }
}

pub unsafe fn MPI_File_get_position_shared(fh: MPI_File, offset: *mut MPI_Offset) -> Outcome {
    let position = state::file(fh)?.file.position_shared()?;
    // SAFETY: `offset` is null or writable: the C binding of MPI_File_get_position_shared requires it of the caller.
    unsafe { out(offset, position as MPI_Offset, "offset") }
}

pub unsafe fn MPI_File_get_byte_offset(
    fh: MPI_File,
    offset: MPI_Offset,
    disp: *mut MPI_Offset,
) -> Outcome {
    let found = state::file(fh)?.file.byte_offset(offset)?;
    // SAFETY: `disp` is null or writable: the C binding of MPI_File_get_byte_offset requires it of the caller.
    unsafe { out(disp, found as MPI_Offset, "disp") }
}

pub unsafe fn MPI_File_get_type_extent_c(
    fh: MPI_File,
    datatype: MPI_Datatype,
    extent: *mut MPI_Count,
) -> Outcome {
    let object = state::file(fh)?;
    let found = object.file.type_extent(&state::datatype(datatype)?)?;
    // SAFETY: `extent` is null or writable: the C binding of MPI_File_get_type_extent_c requires it of the caller.
    unsafe { out(extent, found, "extent") }
}
