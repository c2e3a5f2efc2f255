//! The engine: the MPI state of one process, as a value.
//!
//! The engine connects the frameworks, and makes progress and waits for all of them.
//! A test may create four engines in four threads of one process; in an MPI program `mpi-abi` owns the only engine.
//!
//! One thread at a time may use an engine.
//! Below `MPI_THREAD_MULTIPLE` the engine does not check this.
//! At that level `mpi-abi` acquires one lock around every call,
//! which the function of [`Waiting::set_relax`] releases while the engine waits.
//! Several waiting threads can share one thread's polling ([`Threads`]).

mod active_operations;
mod balance;
mod extensions;
mod long_wait;
mod names;
mod operations;
mod place;
mod progress;
mod progress_hook;
mod published;
mod spin_hold;
mod waiting;

pub use progress_hook::{Occasion, ProgressHook};

pub use names::Peers;
pub use operations::{Operations, PollAlways, Polls};
pub use place::Place;
pub use published::Published;
pub use waiting::{Condition, Polled, ThreadStep, Threads, Waiting};

use crate::RunObserver;
use crate::bml::{self, Bml};
use crate::btl::{ProcId, Transport};
use crate::pml::{Config, Pml};
use crate::record::Script;
use active_operations::ActiveOperations;
use extensions::Extensions;
use mpi_base::cpu::Cores;
use mpi_base::hardware::Confinement;
use mpi_base::mem::Held;
use mpi_base::node::{Node, NodeError};
use mpi_base::param::{Level, Param, Params};
use mpi_base::state::StatePage;
use mpi_transport::universe::{Universe, job_number};
use progress_hook::Hooks;
use std::cell::OnceCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Parameter that `mpirun --explain` sets.
pub static EXPLAIN: Param<bool> = Param::new(
    "mpi",
    "base",
    "explain",
    "false",
    Level::USER,
    "Whether rank 0 prints which components were selected and why the others were not; set by mpirun --explain",
);

/// A counted reference to an engine.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

/// A weak reference to an engine, which does not keep it alive.
#[derive(Clone)]
pub struct WeakEngine(Weak<Inner>);

impl WeakEngine {
    /// Returns the engine, if it still exists.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

/// The arguments of [`Engine::new`].
pub struct Parts {
    pub me: ProcId,
    pub size: u32,
    /// The job's name, which the launcher has given.
    pub job: String,
    pub params: Params,
    pub node: Node,
    /// Job ranks of the processes on this node, indexed by rank on the node.
    pub neighbours: Vec<ProcId>,
    /// The cores that this process may use.
    pub cores: Cores,
    /// The hardware instances to which this process is confined.
    pub confinement: Confinement,
    pub btls: Vec<Transport>,
    pub pml: Config,
}

struct Inner {
    place: Place,
    pml: Pml,
    waiting: Waiting,
    operations: ActiveOperations,
    hooks: Hooks,
    observer: OnceCell<Rc<RunObserver>>,
    extensions: Extensions,
    /// This process's state page, which the engine writes and `mpirun` reads.
    state: Held<StatePage>,
}

impl Engine {
    /// Creates the engine of a process that has not communicated yet.
    pub fn new(parts: Parts) -> Result<Engine, NodeError> {
        let Parts {
            me,
            size,
            job,
            params,
            node,
            neighbours,
            cores,
            confinement,
            btls,
            pml,
        } = parts;
        // An invalid value has already been reported.
        let mixes = params.get(&bml::SHARE).unwrap_or(true);
        let waiting = Waiting::of(&node, &cores, neighbours.len())?;
        let state = node.state(node.rank())?;
        state.start(std::process::id(), me);
        state.confine(&confinement);
        Ok(Engine(Rc::new(Inner {
            pml: Pml::new(Bml::new(me, size, btls, mixes), size, pml),
            waiting,
            operations: ActiveOperations::default(),
            hooks: Hooks::default(),
            observer: OnceCell::new(),
            extensions: Extensions::default(),
            state,
            place: Place::of(
                Universe::new(job_number(&job), me, size),
                (me, size),
                params,
                node,
                neighbours,
                cores,
            ),
        })))
    }

    /// Sends the disconnect message to all connected processes; the last step of MPI in a process, after [`Process::stop`](crate::comm::Process::stop).
    ///
    /// An engine that is dropped does not disconnect,
    /// because a program that leaks a handle keeps the engine until the process ends.
    pub fn leave(&self) {
        self.0.pml.bml().leave();
    }

    /// Returns a weak reference, for values that the engine itself owns.
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Rc::downgrade(&self.0))
    }

    /// Returns this process's rank in the job.
    pub fn me(&self) -> ProcId {
        self.0.place.me()
    }

    /// Returns the number of processes in the job.
    pub fn size(&self) -> u32 {
        self.0.place.size()
    }

    /// Returns the user's parameters, as read when the engine was created.
    pub fn params(&self) -> &Params {
        self.0.place.params()
    }

    /// Returns the shared memory of this node.
    pub fn node(&self) -> &Node {
        self.0.place.node()
    }

    /// Returns the processes that this one knows, including those of other jobs.
    pub fn universe(&self) -> &Arc<Universe> {
        self.0.place.universe()
    }

    /// Returns the location of this process: its job, its node and its cores.
    #[inline]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns the wait state of this process.
    #[inline(always)]
    pub fn waiting(&self) -> &Waiting {
        &self.0.waiting
    }

    /// Returns the state page of this process.
    #[inline]
    pub fn state(&self) -> &StatePage {
        &self.0.state
    }

    /// Starts to observe messages and collective operations; only the first call has an effect.
    pub fn set_observer(&self, observer: RunObserver) {
        let observer = Rc::new(observer);
        self.0.pml.set_observer(observer.clone());
        let _ = self.0.observer.set(observer);
    }

    /// Returns the observer of this process, if there is one.
    #[inline]
    pub fn observer(&self) -> Option<&RunObserver> {
        self.0.observer.get().map(|observer| &**observer)
    }

    /// Returns the recording or replay of this run, if there is one.
    pub fn script(&self) -> Option<&Script> {
        self.observer().and_then(RunObserver::script)
    }

    /// Returns the point-to-point layer of this process, which all communicators use.
    pub fn pml(&self) -> &Pml {
        &self.0.pml
    }

    /// Returns the engine's value of type `T`, for a layer above; `make` creates it at the first use.
    ///
    /// The engine owns the value, so the value must not own a reference to the engine.
    pub fn extension<T: 'static>(&self, make: impl FnOnce() -> T) -> Rc<T> {
        self.0.extensions.get(make)
    }

    /// Returns the engine's value of type `T`; the first use creates its default.
    pub fn extension_of_type<T: Default + 'static>(&self) -> &T {
        self.0.extensions.of_type()
    }

    /// Returns the engine's value of type `T`, if it exists.
    pub fn known_extension<T: 'static>(&self) -> Option<&T> {
        self.0.extensions.known()
    }
}
