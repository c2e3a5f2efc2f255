//! File views (section 14.3), file pointers (section 14.4) and related queries.

use super::open::take_hints;
use super::{argument, datarep};
use crate::abi::*;
use crate::api::args::{Out, Text, TextOut};
use crate::error::{Failure, Outcome};
use crate::info;
use crate::registry::datatype::register;
use crate::state;
use mpi_core::datatype::Datatype;
use mpi_core::io::Whence;
use std::ffi::c_int;

pub fn MPI_File_set_view(
    fh: MPI_File,
    disp: MPI_Offset,
    etype: MPI_Datatype,
    filetype: MPI_Datatype,
    datarep: Text,
    info: MPI_Info,
) -> Outcome {
    let object = state::file(fh)?;
    let given = info::hints(info)?;
    let (etype, filetype) = (state::datatype(etype)?, state::datatype(filetype)?);
    let name = datarep.string(MPI_MAX_DATAREP_STRING, MPI_ERR_ARG, "datarep")?;
    let disp = match disp {
        MPI_DISPLACEMENT_CURRENT => None,
        bytes => Some(bytes),
    };
    object
        .file
        .positions()
        .set_view(disp, &etype, &filetype, datarep::named(&name))?;
    take_hints(&object, &given)
}

/// Returns a datatype handle for the program, which must free the handle of a derived datatype.
fn handed_out(datatype: &Datatype) -> Result<MPI_Datatype, Failure> {
    match datatype.as_named() {
        Some(named) => Ok(MPI_Datatype(named.info().handle as usize)),
        None => register(datatype.dup()?),
    }
}

pub fn MPI_File_get_view(
    fh: MPI_File,
    disp: Out<MPI_Offset>,
    etype: Out<MPI_Datatype>,
    filetype: Out<MPI_Datatype>,
    datarep: TextOut,
) -> Outcome {
    let view = state::file(fh)?.file.view();
    datarep.present("datarep")?;
    let name = view.representation.name();
    disp.set(view.disp as MPI_Offset, "disp")?;
    etype.set(handed_out(&view.etype)?, "etype")?;
    filetype.set(handed_out(&view.filetype)?, "filetype")?;
    datarep.set(name, "datarep").map(|_| ())
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

pub fn MPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Outcome {
    let object = state::file(fh)?;
    Ok(object.file.positions().seek(offset, whence_of(whence)?)?)
}

pub fn MPI_File_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Outcome {
    let object = state::file(fh)?;
    Ok(object
        .file
        .positions()
        .seek_shared(offset, whence_of(whence)?)?)
}

pub fn MPI_File_get_position(fh: MPI_File, offset: Out<MPI_Offset>) -> Outcome {
    let position = state::file(fh)?.file.positions().position()?;
    offset.set(position as MPI_Offset, "offset")
}

pub fn MPI_File_get_position_shared(fh: MPI_File, offset: Out<MPI_Offset>) -> Outcome {
    let position = state::file(fh)?.file.positions().position_shared()?;
    offset.set(position as MPI_Offset, "offset")
}

pub fn MPI_File_get_byte_offset(
    fh: MPI_File,
    offset: MPI_Offset,
    disp: Out<MPI_Offset>,
) -> Outcome {
    let found = state::file(fh)?.file.positions().byte_offset(offset)?;
    disp.set(found as MPI_Offset, "disp")
}

pub fn MPI_File_get_type_extent_c(
    fh: MPI_File,
    datatype: MPI_Datatype,
    extent: Out<MPI_Count>,
) -> Outcome {
    let object = state::file(fh)?;
    let found = object
        .file
        .positions()
        .type_extent(&state::datatype(datatype)?)?;
    extent.set(found, "extent")
}
