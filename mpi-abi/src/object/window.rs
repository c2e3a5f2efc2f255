//! Window objects: the engine's window with an error handler, attributes and hints.

use super::Attached;
use crate::abi::*;
use mpi_core::osc::{Flavor, Win};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A window with everything the program has attached to it.
pub struct WinObject {
    pub win: Win,
    handle: Cell<MPI_Win>,
    pub attached: Attached,
    /// The values that the predefined attributes point to.
    size: MPI_Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

impl WinObject {
    /// Creates a window without a handle.
    pub(crate) fn new(win: Win, size: MPI_Aint, unit: MPI_Aint) -> Rc<WinObject> {
        let flavor = match win.flavor() {
            Flavor::Create => MPI_WIN_FLAVOR_CREATE,
            Flavor::Allocate => MPI_WIN_FLAVOR_ALLOCATE,
            Flavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
            Flavor::Shared => MPI_WIN_FLAVOR_SHARED,
        };
        Rc::new(WinObject {
            win,
            handle: Cell::new(MPI_WIN_NULL),
            attached: Attached::new(),
            size,
            // The attribute is an int (section 12.2.6), whatever type the unit was given as.
            unit: c_int::try_from(unit).unwrap_or(MPI_UNDEFINED),
            flavor,
            model: MPI_WIN_UNIFIED,
        })
    }

    /// Sets its handle.
    pub(crate) fn set_handle(&self, handle: MPI_Win) {
        self.handle.set(handle);
    }

    pub fn handle(&self) -> MPI_Win {
        self.handle.get()
    }

    /// Returns the value of a predefined window attribute (section 12.2.6); `None` for other keyvals.
    pub fn predefined(&self, keyval: c_int) -> Option<*mut c_void> {
        let int = |value: &c_int| std::ptr::from_ref(value).cast_mut().cast();
        match keyval {
            MPI_WIN_BASE => Some(self.win.memory().base().cast()),
            MPI_WIN_SIZE => Some(std::ptr::from_ref(&self.size).cast_mut().cast()),
            MPI_WIN_DISP_UNIT => Some(int(&self.unit)),
            MPI_WIN_CREATE_FLAVOR => Some(int(&self.flavor)),
            MPI_WIN_MODEL => Some(int(&self.model)),
            _ => None,
        }
    }
}
