//! Windows as the program holds them: the engine's value with an error handler, attributes and hints.

use super::Attached;
use super::attribute::{Carrier, Owner};
use crate::abi::*;
use crate::error::Failure;
use crate::handle::{Kind, wrong};
use crate::state::state;
use mpi_core::osc::{Flavor, Win};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::Write as _;
use std::rc::Rc;

/// A window and what the program has hung on it.
pub struct WinObject {
    pub win: Win,
    handle: Cell<MPI_Win>,
    pub attached: Attached,
    /// What the predefined attributes lead to.
    size: MPI_Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

impl WinObject {
    pub fn handle(&self) -> MPI_Win {
        self.handle.get()
    }

    pub fn owner(&self) -> Owner<'_> {
        Owner {
            carrier: Carrier::Win,
            handle: self.handle.get().0,
            attributes: &self.attached.attributes,
            keyvals: &state().keyvals,
        }
    }

    /// The value of an attribute that every window has (section 12.2.6); nothing for other keyvals.
    pub fn predefined(&self, keyval: c_int) -> Option<*mut c_void> {
        let int = |value: &c_int| std::ptr::from_ref(value).cast_mut().cast();
        match keyval {
            MPI_WIN_BASE => Some(self.win.base().cast()),
            MPI_WIN_SIZE => Some(std::ptr::from_ref(&self.size).cast_mut().cast()),
            MPI_WIN_DISP_UNIT => Some(int(&self.unit)),
            MPI_WIN_CREATE_FLAVOR => Some(int(&self.flavor)),
            MPI_WIN_MODEL => Some(int(&self.model)),
            _ => None,
        }
    }
}

/// Gives a window a handle.
pub fn register(win: Win, size: MPI_Aint, unit: MPI_Aint) -> Result<Rc<WinObject>, Failure> {
    let flavor = match win.flavor() {
        Flavor::Create => MPI_WIN_FLAVOR_CREATE,
        Flavor::Allocate => MPI_WIN_FLAVOR_ALLOCATE,
        Flavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
        Flavor::Shared => MPI_WIN_FLAVOR_SHARED,
    };
    let object = Rc::new(WinObject {
        win,
        handle: Cell::new(MPI_WIN_NULL),
        attached: Attached::new(),
        size,
        // The attribute is an int (section 12.2.6), whatever the unit was given as.
        unit: c_int::try_from(unit).unwrap_or(MPI_UNDEFINED),
        flavor,
        model: MPI_WIN_UNIFIED,
    });
    let handle = state().wins.borrow_mut().insert(object.clone());
    let handle =
        handle.ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many windows"))?;
    object.handle.set(MPI_Win(handle));
    Ok(object)
}

/// Says at `MPI_Finalize` which windows the program has not freed, in one line, which rank 0 of each window tells, and each rank that has an epoch open there.
///
/// The standard asks for all of them to be freed; what they hold goes with the process all the same.
pub fn tell_left() {
    if state().sessions.borrow().iter().next().is_some() {
        // A session that goes on may use them.
        return;
    }
    let wins = state().wins.borrow();
    let mut left: Vec<String> = Vec::new();
    for (_, object) in wins.iter() {
        let win = &object.win;
        match win.what_is_open() {
            Some(open) => left.push(format!("{}, while {open}", win.label())),
            None if win.rank() == 0 => left.push(win.label()),
            None => {}
        }
    }
    /// More than these say nothing new.
    const SHOWN: usize = 4;
    let more = left.len().saturating_sub(SHOWN);
    left.truncate(SHOWN);
    if more > 0 {
        left.push(format!("{more} more"));
    }
    if !left.is_empty() {
        let who = crate::state::who_am_i();
        let line = format!(
            "{who}: MPI_Finalize is called, but MPI_Win_free was not for {}\n",
            left.join("; ")
        );
        // In one piece; no process reads it when standard error is closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Takes a window out of the table.
pub fn remove(handle: MPI_Win) -> Result<(), Failure> {
    let removed = state().wins.borrow_mut().remove(handle.0);
    removed.map(drop).ok_or_else(|| wrong(Kind::Win, handle.0))
}
