//! Creation and release of windows (section 12.2), and attachment of memory.

use super::hints;
use crate::abi::*;
use crate::api::args::{InOut, Out};
use crate::device;
use crate::error::{Failure, Outcome};
use crate::info;
use crate::object::window::WinObject;
use crate::registry::window::{register, remove};
use crate::state;
use mpi_core::osc::{Flavor, Spec, Win};
use std::ffi::c_void;
use std::rc::Rc;

/// Returns an error for device memory, which other processes cannot access.
fn refuse_device(base: *mut c_void) -> Outcome {
    if base.is_null() || !state::is_staging() {
        return Ok(());
    }
    match device::refused_window(base.cast()) {
        None => Ok(()),
        Some(sentence) => Err(Failure::new(MPI_ERR_BASE, sentence)),
    }
}

/// Creates a window over memory of the program.
fn make(
    flavor: Flavor,
    base: *mut c_void,
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
) -> Result<Rc<WinObject>, Failure> {
    let comm = state::comm(comm)?;
    let given = info::hints(info)?;
    if comm.comm.is_inter() {
        return Err(Failure::new(
            MPI_ERR_COMM,
            format!(
                "a window needs an intracommunicator, which {} is not",
                comm.label()
            ),
        ));
    }
    let bytes = u64::try_from(size)
        .map_err(|_| Failure::new(MPI_ERR_SIZE, format!("size is {size}, which is negative")))?;
    if disp_unit <= 0 {
        return Err(Failure::new(
            MPI_ERR_DISP,
            format!("disp_unit is {disp_unit}, which is not positive"),
        ));
    }
    if flavor == Flavor::Create && base.is_null() && size > 0 {
        return Err(Failure::new(
            MPI_ERR_BASE,
            format!("base is a null pointer, but size is {size}"),
        ));
    }
    if size > 0 {
        refuse_device(base)?;
    }
    let spec = Spec {
        flavor,
        base: base.cast(),
        size: bytes,
        unit: disp_unit as u64,
        hints: hints::of_new(&given),
    };
    let win = Win::new(&comm.comm, &spec)?;
    crate::explain::explain_window(&win);
    let object = register(win, size, disp_unit)?;
    hints::take(&object, &given);
    Ok(object)
}

pub fn MPI_Win_create_c(
    base: *mut c_void,
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
    win: Out<MPI_Win>,
) -> Outcome {
    let object = make(Flavor::Create, base, size, disp_unit, info, comm)?;
    win.set(object.handle(), "win")
}

/// Creates a window over memory that the library allocates.
fn allocate(
    flavor: Flavor,
    [size, disp_unit]: [MPI_Aint; 2],
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: Out<*mut c_void>,
    win: Out<MPI_Win>,
) -> Outcome {
    let object = make(flavor, std::ptr::null_mut(), size, disp_unit, info, comm)?;
    baseptr.set(object.win.memory().base().cast(), "baseptr")?;
    win.set(object.handle(), "win")
}

pub fn MPI_Win_allocate_c(
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: Out<*mut c_void>,
    win: Out<MPI_Win>,
) -> Outcome {
    let lens = [size, disp_unit];
    allocate(Flavor::Allocate, lens, info, comm, baseptr, win)
}

pub fn MPI_Win_allocate_shared_c(
    size: MPI_Aint,
    disp_unit: MPI_Aint,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: Out<*mut c_void>,
    win: Out<MPI_Win>,
) -> Outcome {
    let lens = [size, disp_unit];
    allocate(Flavor::Shared, lens, info, comm, baseptr, win)
}

pub fn MPI_Win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: Out<MPI_Win>) -> Outcome {
    let object = make(Flavor::Dynamic, std::ptr::null_mut(), 0, 1, info, comm)?;
    win.set(object.handle(), "win")
}

pub fn MPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> Outcome {
    let object = state::win(win)?;
    let bytes = u64::try_from(size)
        .map_err(|_| Failure::new(MPI_ERR_SIZE, format!("size is {size}, which is negative")))?;
    refuse_device(base)?;
    Ok(object.win.attached().attach(base.cast(), bytes)?)
}

pub fn MPI_Win_detach(win: MPI_Win, base: *const c_void) -> Outcome {
    Ok(state::win(win)?.win.attached().detach(base.cast())?)
}

pub fn MPI_Win_free(win: InOut<MPI_Win>) -> Outcome {
    let handle = win.get("win")?;
    let object = state::win(handle)?;
    // The argument is a pointer to the handle, so the wrapper cannot determine the error handler.
    let on = |failure: Failure| failure.on(crate::error::Target::Win(handle));
    object.owner().delete_all().map_err(on)?;
    object.win.free().map_err(|e| on(e.into()))?;
    object.land(None).map_err(on)?;
    remove(handle)?;
    win.set(MPI_WIN_NULL, "win")
}
