//! The engine of the process, and data with the lifetime of the process.

use mpi_core::Engine;
use mpi_core::plugin::Catalogue;
use std::any::Any;
use std::cell::{Cell, RefCell};

/// The engine of the process, and data with the lifetime of the process.
pub(crate) struct Engines {
    engine: RefCell<Option<Engine>>,
    parked: RefCell<Option<Engine>>,
    plugins: RefCell<Option<Catalogue>>,
    multiple: Cell<bool>,
    kept: RefCell<Vec<&'static dyn Any>>,
}

impl Engines {
    pub(super) const fn new() -> Engines {
        Engines {
            engine: RefCell::new(None),
            parked: RefCell::new(None),
            plugins: RefCell::new(None),
            multiple: Cell::new(false),
            kept: RefCell::new(Vec::new()),
        }
    }

    /// Returns the engine, which exists while `MPI_COMM_WORLD` or a session exists.
    #[inline(always)]
    pub fn engine(&self) -> &RefCell<Option<Engine>> {
        &self.engine
    }

    /// Returns the parked engine between two sessions.
    /// A second engine cannot be created, since other processes refer to this engine's memory.
    #[inline(always)]
    pub fn parked(&self) -> &RefCell<Option<Engine>> {
        &self.parked
    }

    /// Returns the catalogue of plugins, whose strings exist until process exit.
    #[inline(always)]
    pub fn plugins(&self) -> &RefCell<Option<Catalogue>> {
        &self.plugins
    }

    /// Returns the flag that is true if several threads may call the engine concurrently.
    #[inline(always)]
    pub fn multiple(&self) -> &Cell<bool> {
        &self.multiple
    }

    /// Leaks a value until process exit. Leak checkers do not report it, since it stays reachable.
    pub fn keep<T: 'static>(&self, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        self.kept.borrow_mut().push(value);
        value
    }
}
