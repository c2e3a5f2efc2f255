//! The predefined communicators of a process, and the collective components of all its communicators.

use super::context_id::{BOOTSTRAP, MYSELF, WORLD};
use super::spares::{self, Spares};
use super::{Comm, CommError, Framework};
use crate::Error;
use crate::engine::Engine;
use crate::group::Group;
use crate::pml::Context;
use std::cell::{OnceCell, RefCell};
use std::time::{Duration, Instant};

/// The predefined communicators of an engine. Each owns a reference to the engine, so [`Process::stop`] must drop them.
#[derive(Default)]
struct Predefined {
    framework: OnceCell<Box<dyn Framework>>,
    world: RefCell<Option<Comm>>,
    myself: RefCell<Option<Comm>>,
    /// The communicator for processes that have no communicator in common yet.
    bootstrap: RefCell<Option<Comm>>,
}

impl Engine {
    /// Returns the functions that start and end MPI in this process.
    #[inline]
    pub fn process(&self) -> Process<'_> {
        Process { engine: self }
    }

    /// Returns `MPI_COMM_WORLD`, if [`Process::join_world`] has created it.
    pub fn world(&self) -> Option<Comm> {
        self.process().predefined().world.borrow().clone()
    }
}

/// The functions that start and end MPI in this process, and its predefined communicators.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    engine: &'a Engine,
}

impl<'a> Process<'a> {
    pub(super) fn engine(self) -> &'a Engine {
        self.engine
    }

    fn predefined(self) -> &'a Predefined {
        self.engine.extension_of_type()
    }

    /// Sets the collective components of this process; called once, before [`Process::start`].
    pub fn serve_collectives_by(self, framework: Box<dyn Framework>) {
        let _ = self.predefined().framework.set(framework);
    }

    /// Returns the collective components of this process.
    pub(super) fn coll(self) -> Result<&'a dyn Framework, CommError> {
        let framework = self.predefined().framework.get();
        framework.map(|f| &**f).ok_or(CommError::NoComponents)
    }

    /// Creates `MPI_COMM_SELF`, for which no other process is needed;
    /// may be called again after [`Process::stop`].
    pub fn start(self) -> Result<(), Error> {
        self.engine.peers().hear_of_failures();
        let (alone, context) = (
            Group::range(self.engine.me(), 1),
            Context::new(self.engine.me(), MYSELF),
        );
        let alone = Comm::assemble(self.engine, context, alone, 0, "MPI_COMM_SELF".into());
        self.engine.block_on(alone.collectives().choose())?;
        *self.predefined().myself.borrow_mut() = Some(alone);
        self.engine.state().run();
        Ok(())
    }

    /// Creates `MPI_COMM_WORLD`; every process of the job calls this function.
    pub fn join_world(self) -> Result<(), Error> {
        let (all, context) = (Group::range(0, self.engine.size()), Context::new(0, WORLD));
        let world = Comm::assemble(
            self.engine,
            context,
            all,
            self.engine.me(),
            "MPI_COMM_WORLD".into(),
        );
        self.engine.block_on(world.collectives().choose())?;
        *self.predefined().world.borrow_mut() = Some(world);
        Ok(())
    }

    /// Prepares the first collective operations on `MPI_COMM_WORLD`; every process of the job calls this function after [`Process::join_world`].
    pub fn rehearse_on_world(self) -> Result<(), Error> {
        let Some(world) = self.engine.world() else {
            return Ok(());
        };
        if let Some(components) = world.collectives().components() {
            components.rehearse(&world)?;
        }
        spares::create_at_start(&world)
    }

    /// Frees `MPI_COMM_WORLD`.
    pub fn leave_world(self) {
        let world = self.predefined().world.take();
        Spares::of(self.engine).end();
        drop(world);
    }

    /// Frees the predefined communicators.
    /// Must be the last call until the next [`Process::start`], or of the process.
    pub fn stop(self) {
        self.send_copies();
        self.leave_world();
        let predefined = self.predefined();
        let (myself, bootstrap) = (predefined.myself.take(), predefined.bootstrap.take());
        drop((myself, bootstrap));
        // The next MPI call of this process may be much later, or never, so buffered data are sent now.
        self.engine.pml().bml().flush();
        self.engine.state().finalized();
    }

    /// Waits, for a limited time, until the copies of short messages have been sent.
    ///
    /// All receives were posted before the fence at the end of `MPI_COMM_WORLD`,
    /// so no receive matches the copies that remain.
    fn send_copies(self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let deadline = Instant::now() + PATIENCE;
        let pml = self.engine.pml();
        while pml.end_copies() > 0 && Instant::now() < deadline {
            self.engine.progress();
            self.engine.waiting().give_core_away();
        }
        pml.abandon_copies();
    }

    /// Returns `MPI_COMM_SELF`, if [`Process::start`] has created it.
    pub fn myself(self) -> Option<Comm> {
        self.predefined().myself.borrow().clone()
    }

    /// Returns the bootstrap communicator; creates it at its first use.
    pub(super) fn bootstrap(self) -> Comm {
        let slot = &self.predefined().bootstrap;
        let known = slot.borrow().clone();
        known.unwrap_or_else(|| {
            let (job, context) = (
                Group::range(0, self.engine.size()),
                Context::new(0, BOOTSTRAP),
            );
            let made = Comm::assemble(
                self.engine,
                context,
                job,
                self.engine.me(),
                "the job".into(),
            );
            slot.borrow_mut().insert(made).clone()
        })
    }
}
