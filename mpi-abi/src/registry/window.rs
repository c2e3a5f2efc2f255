//! Registration of windows.

use crate::abi::*;
use crate::device::Views;
use crate::error::Failure;
use crate::handle::{Kind, exhausted, wrong};
use crate::object::attribute::{Carrier, Owner};
use crate::object::window::WinObject;
use crate::state::state;
use mpi_core::osc::Win;
use std::ffi::c_int;
use std::rc::Rc;

impl WinObject {
    pub fn owner(&self) -> Owner<'_> {
        Owner {
            carrier: Carrier::Win,
            handle: self.handle().0,
            attributes: &self.attached.attributes,
            keyvals: state().program().keyvals(),
        }
    }
}

/// Registers a handle for a window.
pub fn register(win: Win, size: MPI_Aint, unit: MPI_Aint) -> Result<Rc<WinObject>, Failure> {
    let object = WinObject::new(win, size, unit);
    let handle = state().tables().wins().borrow_mut().insert(object.clone());
    let handle = handle.ok_or_else(|| exhausted("windows"))?;
    object.set_handle(MPI_Win(handle));
    Ok(object)
}

/// Stores the staged buffers of an access to a rank until the accesses are synchronized.
pub fn stage(win: MPI_Win, rank: c_int, views: Views) -> Result<(), Failure> {
    if !views.is_empty() {
        crate::state::win(win)?.stage(rank, views);
    }
    Ok(())
}

/// Removes a window from the table.
pub fn remove(handle: MPI_Win) -> Result<(), Failure> {
    let removed = state().tables().wins().borrow_mut().remove(handle.0);
    removed.map(drop).ok_or_else(|| wrong(Kind::Win, handle.0))
}
