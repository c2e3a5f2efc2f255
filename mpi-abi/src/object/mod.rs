//! Objects behind handles: an engine object with the program's error handler, attributes and hints.

pub mod attribute;
pub mod buffer;
pub mod comm;
pub mod datatype;
pub mod file;
pub mod hints;
pub mod request;
pub mod session;
pub mod status;
pub mod window;

use crate::abi::{MPI_ERRORS_ARE_FATAL, MPI_Errhandler};
use crate::error::{Failure, handler};
use crate::info::Hints;
use attribute::Attributes;
use std::cell::{Cell, RefCell};

/// The state that communicators, windows, files, sessions and datatypes have in common.
#[derive(Debug)]
pub struct Attached {
    errhandler: Cell<MPI_Errhandler>,
    /// True if the program has set the error handler.
    errhandler_is_chosen: Cell<bool>,
    pub attributes: RefCell<Attributes>,
    pub hints: RefCell<Hints>,
}

impl Attached {
    pub const fn new() -> Self {
        Attached::with_errhandler(MPI_ERRORS_ARE_FATAL)
    }

    /// Creates the state of an object with a predefined error handler.
    pub const fn with_errhandler(errhandler: MPI_Errhandler) -> Self {
        Attached {
            errhandler: Cell::new(errhandler),
            errhandler_is_chosen: Cell::new(false),
            attributes: RefCell::new(Attributes::new()),
            hints: RefCell::new(Hints::new()),
        }
    }

    /// Creates the state of an object that inherits the error handler of `parent`.
    pub fn inheriting(parent: &Attached) -> Self {
        let new = Attached::new();
        // The parent's reference guarantees that the handler exists.
        if handler::retain(parent.errhandler()).is_ok() {
            new.errhandler.set(parent.errhandler());
        }
        new
    }

    pub fn errhandler(&self) -> MPI_Errhandler {
        self.errhandler.get()
    }

    /// Returns true if the program has set the error handler, even to the handler that was active.
    pub fn errhandler_is_chosen(&self) -> bool {
        self.errhandler_is_chosen.get()
    }

    /// Sets the error handler and takes a reference to it.
    pub fn set_errhandler(&self, errhandler: MPI_Errhandler) -> Result<(), Failure> {
        handler::retain(errhandler)?;
        self.errhandler_is_chosen.set(true);
        handler::release(self.errhandler.replace(errhandler))
    }
}

impl Default for Attached {
    fn default() -> Self {
        Attached::new()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // `release` succeeds, since the object holds a reference.
        let _ = handler::release(self.errhandler.get());
    }
}
