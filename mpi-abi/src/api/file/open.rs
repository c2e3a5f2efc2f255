//! File open, close and delete, sizes and hints (section 14.2), and consistency (section 14.6).

use crate::abi::*;
use crate::api::args::{InOut, Out, Text};
use crate::api::file::hint_file;
use crate::api::groups;
use crate::error::{Failure, Outcome, Target};
use crate::info::{self, Hints};
use crate::object::file::FileObject;
use crate::registry::file::{register, remove};
use crate::state;
use mpi_core::io::{self, Amode, File, Tuning};
use std::ffi::c_int;

/// Maximum length of a file name (PATH_MAX of Linux).
const LONGEST_NAME: c_int = 4096;

/// Applies the hints `given` to `tuning`, and replaces existing values.
fn tuned(mut tuning: Tuning, given: &Hints) -> Tuning {
    for (key, value) in given.iter() {
        tuning.set(key, value);
    }
    tuning
}

/// Applies the info argument of a collective call. The members may pass different hints.
pub(super) fn take_hints(object: &FileObject, given: &Hints) -> Outcome {
    let tuning = tuned(object.file.tuning(), given);
    Ok(object.file.set_tuning(tuning)?)
}

fn amode_of(amode: c_int) -> Result<Amode, Failure> {
    let has = |bit: c_int| amode & bit != 0;
    let all = MPI_MODE_APPEND
        | MPI_MODE_CREATE
        | MPI_MODE_DELETE_ON_CLOSE
        | MPI_MODE_EXCL
        | MPI_MODE_RDONLY
        | MPI_MODE_RDWR
        | MPI_MODE_SEQUENTIAL
        | MPI_MODE_UNIQUE_OPEN
        | MPI_MODE_WRONLY;
    if amode & !all != 0 {
        return Err(Failure::new(
            MPI_ERR_AMODE,
            format!("amode is {amode}, which is no combination of MPI_MODE_ constants of files"),
        ));
    }
    Ok(Amode {
        append: has(MPI_MODE_APPEND),
        create: has(MPI_MODE_CREATE),
        delete_on_close: has(MPI_MODE_DELETE_ON_CLOSE),
        exclusive: has(MPI_MODE_EXCL),
        read_only: has(MPI_MODE_RDONLY),
        read_write: has(MPI_MODE_RDWR),
        sequential: has(MPI_MODE_SEQUENTIAL),
        unique_open: has(MPI_MODE_UNIQUE_OPEN),
        write_only: has(MPI_MODE_WRONLY),
    })
}

/// Returns the file name without a file system prefix such as `ufs:`, used by other libraries.
fn path(filename: Text) -> Result<String, Failure> {
    let name = filename.string(LONGEST_NAME, MPI_ERR_BAD_FILE, "filename")?;
    let kinds = [
        "ufs:", "nfs:", "lustre:", "gpfs:", "xfs:", "testfs:", "pvfs2:", "panfs:",
    ];
    let kind = kinds.iter().find(|kind| name.starts_with(**kind));
    Ok(kind.map_or(name.clone(), |kind| name[kind.len()..].to_owned()))
}

pub fn MPI_File_open(
    comm: MPI_Comm,
    filename: Text,
    amode: c_int,
    info: MPI_Info,
    fh: Out<MPI_File>,
) -> Outcome {
    let comm = state::comm(comm)?;
    if comm.comm.is_inter() {
        return Err(Failure::new(
            MPI_ERR_COMM,
            format!(
                "a file needs an intracommunicator, which {} is not",
                comm.label()
            ),
        ));
    }
    let given = info::hints(info)?;
    let path = path(filename)?;
    let file = File::open(
        &comm.comm,
        &path,
        amode_of(amode)?,
        tuned(hint_file::tuning(&comm.comm)?, &given),
    )?;
    let object = register(file)?;
    fh.set(object.handle(), "fh")
}

pub fn MPI_File_close(fh: InOut<MPI_File>) -> Outcome {
    let handle = fh.get("fh")?;
    let object = state::file(handle)?;
    // The argument is a pointer to the handle, so the wrapper cannot determine the error handler.
    let on = |error: mpi_core::Error| Failure::from(error).on(Target::File(handle));
    object.file.close().map_err(on)?;
    remove(handle)?;
    fh.set(MPI_FILE_NULL, "fh")
}

pub fn MPI_File_delete(filename: Text, info: MPI_Info) -> Outcome {
    info::hints(info)?;
    let path = path(filename)?;
    Ok(io::delete(&path)?)
}

pub fn MPI_File_set_size(fh: MPI_File, size: MPI_Offset) -> Outcome {
    Ok(state::file(fh)?.file.storage().set_bytes(size)?)
}

pub fn MPI_File_preallocate(fh: MPI_File, size: MPI_Offset) -> Outcome {
    Ok(state::file(fh)?.file.storage().preallocate(size)?)
}

pub fn MPI_File_get_size(fh: MPI_File, size: Out<MPI_Offset>) -> Outcome {
    let bytes = state::file(fh)?.file.storage().bytes()?;
    size.set(bytes as MPI_Offset, "size")
}

pub fn MPI_File_get_group(fh: MPI_File, group: Out<MPI_Group>) -> Outcome {
    let members = state::file(fh)?.file.group();
    group.set(groups::register(members, None)?, "group")
}

pub fn MPI_File_get_amode(fh: MPI_File, amode: Out<c_int>) -> Outcome {
    let is = state::file(fh)?.file.amode();
    let bits = [
        (is.append, MPI_MODE_APPEND),
        (is.create, MPI_MODE_CREATE),
        (is.delete_on_close, MPI_MODE_DELETE_ON_CLOSE),
        (is.exclusive, MPI_MODE_EXCL),
        (is.read_only, MPI_MODE_RDONLY),
        (is.read_write, MPI_MODE_RDWR),
        (is.sequential, MPI_MODE_SEQUENTIAL),
        (is.unique_open, MPI_MODE_UNIQUE_OPEN),
        (is.write_only, MPI_MODE_WRONLY),
    ];
    let all = bits
        .iter()
        .filter(|(set, _)| *set)
        .fold(0, |all, (_, bit)| all | bit);
    amode.set(all, "amode")
}

pub fn MPI_File_set_info(fh: MPI_File, info: MPI_Info) -> Outcome {
    let object = state::file(fh)?;
    take_hints(&object, &info::hints(info)?)
}

pub fn MPI_File_get_info(fh: MPI_File, info_used: Out<MPI_Info>) -> Outcome {
    let object = state::file(fh)?;
    let mut hints = object.attached.hints.borrow().clone();
    for (key, value) in object.file.tuning().echo(object.file.aggregators()) {
        hints.set(key.into(), value);
    }
    hints.set("filename".into(), object.file.path().into());
    hints.set_alloc_kinds();
    info_used.set(info::create(hints)?, "info_used")
}

pub fn MPI_File_set_atomicity(fh: MPI_File, flag: c_int) -> Outcome {
    Ok(state::file(fh)?.file.set_atomic(flag != 0)?)
}

pub fn MPI_File_get_atomicity(fh: MPI_File, flag: Out<c_int>) -> Outcome {
    let atomic = state::file(fh)?.file.is_atomic();
    flag.set(atomic.into(), "flag")
}

pub fn MPI_File_sync(fh: MPI_File) -> Outcome {
    Ok(state::file(fh)?.file.storage().sync()?)
}
