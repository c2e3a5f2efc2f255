//! The engine: the MPI state of one process, as a value.
//!
//! It joins the frameworks and owns the two things they share: progress and waiting.
//! A test creates four engines in four threads of one process; in a real process `mpi-abi` holds the only one.
//!
//! One thread at a time may use an engine.
//! Below `MPI_THREAD_MULTIPLE` this is not checked. At that level `mpi-abi` holds one lock around every call, and [`Engine::set_relax`] releases it while the engine waits;
//! several waiting threads share the polling ([`Threads`]).

mod background;
mod balance;
mod extensions;
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
pub use progress::PollAlways;
pub use published::Published;
pub use waiting::{Polled, ThreadStep, Threads};

use crate::RunObserver;
use crate::bml::{self, Bml};
use crate::btl::{ProcId, Transport};
use crate::group::Group;
use crate::pml::{Config, Pml};
use crate::record::Script;
use extensions::Extensions;
use mpi_base::cpu::Cores;
use mpi_base::hardware::Confinement;
use mpi_base::mem::Held;
use mpi_base::node::{Node, NodeError};
use mpi_base::occupancy::Occupancy;
use mpi_base::param::{Level, Param, Params};
use mpi_base::state::StatePage;
use mpi_base::wait::WaitPolicy;
use mpi_base::yield_now::{Yielded, timed_yield};
use mpi_transport::universe::{Universe, job_number};
use operations::Operations;
use place::Place;
use progress_hook::Hooks;
use std::cell::OnceCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};
use waiting::Waiting;

/// Set by `mpirun --explain`.
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

/// A weak reference to an engine.
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
    /// The launcher's name of the job.
    pub job: String,
    pub params: Params,
    pub node: Node,
    /// Job ranks of this node's processes, by rank on the node.
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
    operations: Operations,
    hooks: Hooks,
    observer: OnceCell<Rc<RunObserver>>,
    extensions: Extensions,
    /// This process's state page; the engine writes it, `mpirun` reads it.
    state: Held<StatePage>,
}

impl Engine {
    /// Creates an engine that has not communicated with any process yet.
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
        // A malformed value has been reported before.
        let mixes = params.get(&bml::SHARE).unwrap_or(true);
        let waiting = Waiting::of(&node, &cores, neighbours.len())?;
        let state = node.state(node.rank())?;
        state.start(std::process::id(), me);
        state.confine(&confinement);
        Ok(Engine(Rc::new(Inner {
            pml: Pml::new(Bml::new(me, size, btls, mixes), size, pml),
            waiting,
            operations: Operations::default(),
            hooks: Hooks::default(),
            observer: OnceCell::new(),
            extensions: Extensions::default(),
            state,
            place: Place {
                me,
                size,
                universe: Arc::new(Universe::new(job_number(&job), me, size)),
                params,
                node,
                neighbours,
                cores,
            },
        })))
    }

    /// Waits, for a bounded time, until the copies of short messages have been delivered.
    ///
    /// The fence at the end of the world model completes after every receive has been posted, so no receive can match the copies that remain then.
    pub(crate) fn send_copies(&self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let deadline = Instant::now() + PATIENCE;
        while self.0.pml.end_copies() > 0 && Instant::now() < deadline {
            self.progress();
            self.give_core_away();
        }
        self.0.pml.abandon_copies();
    }

    /// Sends the disconnect message to all peers; the last step of MPI in a process, after [`Process::stop`](crate::comm::Process::stop).
    ///
    /// Dropping the engine does not do it, because a program that leaks a handle keeps the engine to the end of the process.
    pub fn leave(&self) {
        self.0.pml.bml().leave();
    }

    /// Returns a weak reference, for values that the engine owns.
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Rc::downgrade(&self.0))
    }

    /// This process's rank in the job.
    pub fn me(&self) -> ProcId {
        self.0.place.me
    }

    /// The number of processes in the job.
    pub fn size(&self) -> u32 {
        self.0.place.size
    }

    /// The user's parameters, read when the engine was created.
    pub fn params(&self) -> &Params {
        &self.0.place.params
    }

    /// This node's shared memory.
    pub fn node(&self) -> &Node {
        &self.0.place.node
    }

    /// Job ranks of the processes that share this node's memory, by rank on the node.
    pub fn neighbours(&self) -> &[ProcId] {
        &self.0.place.neighbours
    }

    /// Returns the members of a group that are on this node, each as its rank in the group and its rank on the node.
    pub fn members_here(&self, group: &Group) -> impl Iterator<Item = (u32, u32)> {
        self.0.place.members_here(group)
    }

    /// Returns a number that is the same for all processes of this job on this node and differs on any other node and in any other job.
    pub fn node_id(&self) -> u64 {
        self.peers().name_of(self.0.place.first_here())
    }

    /// The processes known to this one, including those of other jobs.
    pub fn universe(&self) -> &Arc<Universe> {
        &self.0.place.universe
    }

    /// The cores on which this process may run.
    pub fn cores(&self) -> Cores {
        self.0.place.cores
    }

    /// The wait policy of this process.
    pub fn policy(&self) -> WaitPolicy {
        self.0.waiting.policy()
    }

    /// Returns true if the user asked for an explanation of the selection.
    pub fn explains(&self) -> bool {
        self.params().get(&EXPLAIN).unwrap_or(false)
    }

    /// Returns true if the ranks of this node are oversubscribed, so that a waiting rank must yield its core.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.occupancy() == Occupancy::Oversubscribed
    }

    /// Returns the occupancy of the cores of this node.
    #[inline]
    pub fn occupancy(&self) -> Occupancy {
        self.0.waiting.occupancy()
    }

    /// Yields on an oversubscribed node, and migrates this rank to a core with fewer ranks.
    ///
    /// Next to a computing process it returns at once, because such a yield costs a time slice: the caller sleeps instead.
    #[inline(always)]
    pub fn give_core_away(&self) {
        let waiting = &self.0.waiting;
        if waiting.take_beside_load() {
            return;
        }
        let took = timed_yield();
        if took > Yielded::LONG {
            waiting.meets_load(took);
        }
        waiting.waits();
    }

    /// Returns true if in the last yields of this process another process computed on its core, so that a wait should sleep without yielding.
    #[inline(always)]
    pub fn is_beside_load(&self) -> bool {
        self.0.waiting.is_beside_load()
    }

    /// Lets other threads of this process into the engine, between two polls of a wait that has its own loop.
    pub fn let_threads_in(&self) {
        self.0.waiting.relax();
    }

    /// Spins briefly on an oversubscribed core, if no other rank on it is likely to be runnable. Returns true if `done` became true.
    pub fn hold_core(&self, mut done: impl FnMut() -> bool) -> bool {
        spin_hold::spin_hold(&mut done)
    }

    /// This process's state page.
    #[inline]
    pub fn state(&self) -> &StatePage {
        &self.0.state
    }

    /// Starts observing messages and collective operations; only the first call has an effect.
    pub fn set_observer(&self, observer: RunObserver) {
        let observer = Rc::new(observer);
        self.0.pml.set_observer(observer.clone());
        let _ = self.0.observer.set(observer);
    }

    /// Returns the observer of this process, if one is set.
    #[inline]
    pub fn observer(&self) -> Option<&RunObserver> {
        self.0.observer.get().map(|observer| &**observer)
    }

    /// Returns the recording or replay of this run, if any.
    pub fn script(&self) -> Option<&Script> {
        self.observer().and_then(RunObserver::script)
    }

    /// The point-to-point layer of this process, which all communicators use.
    pub fn pml(&self) -> &Pml {
        &self.0.pml
    }

    /// Returns the engine's value of a type, for a layer above; creates it on first use.
    ///
    /// The engine owns the value, so the value must not own the engine.
    pub fn extension<T: 'static>(&self, make: impl FnOnce() -> T) -> Rc<T> {
        self.0.extensions.get(make)
    }

    /// Returns the engine's value of a type; the first use creates its default.
    pub fn extension_of_type<T: Default + 'static>(&self) -> &T {
        self.0.extensions.of_type()
    }

    /// Returns the engine's value of a type, if it exists.
    pub fn known_extension<T: 'static>(&self) -> Option<&T> {
        self.0.extensions.known()
    }

    /// Sets the function that is called between two polls of a wait, to let other threads in.
    pub fn set_relax(&self, relax: Option<fn()>) {
        self.0.waiting.set_relax(relax);
    }

    /// Sets how waiting threads share polling; without it only one thread waits at a time.
    pub fn set_threads(&self, threads: Option<Threads>) {
        self.0.waiting.set_threads(threads);
    }

    /// Sets the function that is called before every sleep of a long wait; `mpi-abi` checks there that the launcher still lives.
    pub fn set_watch(&self, watch: Option<fn()>) {
        self.0.waiting.set_watch(watch);
    }
}
