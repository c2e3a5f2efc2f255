//! The engine of the process, and what lives as long as it.

use mpi_core::Engine;
use mpi_core::plugin::Catalogue;
use std::any::Any;
use std::cell::{Cell, RefCell};

/// The engine of the process, and what lives as long as it.
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

    /// The engine, while the world or a session exists.
    #[inline(always)]
    pub fn engine(&self) -> &RefCell<Option<Engine>> {
        &self.engine
    }

    /// The engine between two sessions: it cannot be created twice, since other processes refer to its memory.
    #[inline(always)]
    pub fn parked(&self) -> &RefCell<Option<Engine>> {
        &self.parked
    }

    /// The catalogue of plugin components, whose strings live as long as the process.
    #[inline(always)]
    pub fn plugins(&self) -> &RefCell<Option<Catalogue>> {
        &self.plugins
    }

    /// True if some user of the engine may call from several threads at once.
    #[inline(always)]
    pub fn multiple(&self) -> &Cell<bool> {
        &self.multiple
    }

    /// Keeps a value until process exit, where leak checkers find it reachable.
    pub fn keep<T: 'static>(&self, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        self.kept.borrow_mut().push(value);
        value
    }
}
