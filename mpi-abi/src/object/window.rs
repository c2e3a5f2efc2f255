//! Window objects: the engine's window with an error handler, attributes and hints.

use super::Attached;
use crate::abi::*;
use crate::device::Views;
use crate::error::Failure;
use mpi_core::osc::{Flavor, Win};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// A window with its attached error handler, attributes and hints.
pub struct WinObject {
    pub win: Win,
    handle: Cell<MPI_Win>,
    pub attached: Attached,
    /// The values to which the predefined attributes point.
    size: MPI_Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
    /// Staged results by target rank, copied to device memory after a synchronization.
    staged: RefCell<Vec<(c_int, Views)>>,
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
            // The attribute `MPI_WIN_DISP_UNIT` is an int for every window (section 12.2.6).
            unit: c_int::try_from(unit).unwrap_or(MPI_UNDEFINED),
            flavor,
            model: MPI_WIN_UNIFIED,
            staged: RefCell::default(),
        })
    }

    /// Stores the staged buffers of an access to a rank.
    pub(crate) fn stage(&self, rank: c_int, views: Views) {
        self.staged.borrow_mut().push((rank, views));
    }

    /// Returns true if no access has staged results.
    pub(crate) fn has_nothing_staged(&self) -> bool {
        self.staged.borrow().is_empty()
    }

    /// Copies the results of complete accesses to the device: accesses to rank `only`, or all.
    pub(crate) fn land(&self, only: Option<c_int>) -> Result<(), Failure> {
        if self.has_nothing_staged() {
            return Ok(());
        }
        let is_over = |rank: c_int| only.is_none_or(|only| only == rank);
        let all = self.staged.take();
        let (over, later): (Vec<_>, Vec<_>) =
            (all.into_iter()).partition(|(rank, _)| is_over(*rank));
        self.staged.replace(later);
        let copied = over.iter().map(|(_, views)| views.land());
        Ok(copied.fold(Ok(()), Result::and)?)
    }

    /// Sets the handle of the window.
    pub(crate) fn set_handle(&self, handle: MPI_Win) {
        self.handle.set(handle);
    }

    pub fn handle(&self) -> MPI_Win {
        self.handle.get()
    }

    /// Returns the value of a predefined window attribute (12.2.6), or `None`.
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
