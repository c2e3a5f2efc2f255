//! Application-level checkpoints, an extension to MPI 5.0.
//!
//! The protocol is documented in [`mpi_core::crs`], the user's guide is `docs/checkpoint.md`.

use super::args::{Out, RecvMem, TextOut};
use crate::abi::*;
use crate::checkpoint::{self, Handlers};
use crate::error::{Failure, Outcome};
use crate::phase::launcher;
use crate::state;
use mpi_core::rte::checkpoints::Report;
use std::ffi::{c_int, c_void};

pub fn MPIX_Checkpoint_handlers(
    save: Option<MPIX_Checkpoint_function>,
    load: Option<MPIX_Checkpoint_function>,
    extra_state: *mut c_void,
) -> Outcome {
    let engine = state::engine()?;
    checkpoint::of(&engine).set_handlers(Handlers {
        save,
        load,
        extra_state,
    });
    Ok(())
}

pub fn MPIX_Checkpoint_protect(id: c_int, base: RecvMem) -> Outcome {
    if base.count() > 0 && base.sent().is_on_device() {
        return Err(Failure::new(
            MPI_ERR_BUFFER,
            format!(
                "region {id} is in device memory, which a checkpoint does not hold; copy it to host memory in the function of MPIX_Checkpoint_handlers"
            ),
        ));
    }
    let memory = match base.count() {
        0 => None,
        _ => Some(base.buffer()?),
    };
    let engine = state::engine()?;
    checkpoint::of(&engine).protect(id, memory);
    Ok(())
}

pub fn MPIX_Checkpoint_point(comm: MPI_Comm, what: Out<c_int>) -> Outcome {
    let object = state::comm(comm)?;
    let done = checkpoint::point(&object.comm)?;
    what.set(done, "what")
}

pub fn MPIX_Checkpoint_request(comm: MPI_Comm) -> Outcome {
    checkpoint::check_members(&state::comm(comm)?.comm)?;
    match launcher().filter(|launcher| launcher.takes_checkpoints()) {
        Some(launcher) => {
            launcher.tell_checkpoint(&Report::Request);
            Ok(())
        }
        None => Err(Failure::new(
            MPI_ERR_UNSUPPORTED_OPERATION,
            "no checkpoint can be taken: the job was not started by this library's mpirun with --checkpoint-dir",
        )),
    }
}

pub fn MPIX_Checkpoint_restarted(
    flag: Out<c_int>,
    folder: TextOut,
    resultlen: Out<c_int>,
) -> Outcome {
    let engine = state::engine()?;
    let found = checkpoint::own_folder(&engine)?;
    flag.set(found.is_some().into(), "flag")?;
    let found = found.unwrap_or_default();
    folder.set_with_length(resultlen, &mpi_base::text::from_os(found), "folder")
}
