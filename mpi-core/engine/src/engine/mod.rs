//! The engine: one process's MPI, as a value.
//!
//! It ties the frameworks together and owns the two things they share: progress and waiting.
//! A test makes four of them in four threads of one process; `mpi-abi` holds the only one of a real process.
//!
//! An engine belongs to one thread at a time.
//! Below `MPI_THREAD_MULTIPLE` this is not checked; at that level `mpi-abi` holds one lock around every call and lets [`Engine::set_relax`] release it while the engine waits;
//! of several threads that wait, one looks for all ([`Threads`]).

mod background;
mod balance;
mod extensions;
mod names;
mod operations;
mod place;
mod progress;
mod progress_hook;
mod spin_hold;
mod waiting;

pub use progress_hook::{Occasion, ProgressHook};

pub use progress::PollAlways;
pub use waiting::Threads;

use crate::Witness;
use crate::bml::Bml;
use crate::btl::{ProcId, Transport};
use crate::group::Group;
use crate::pml::{Config, Pml};
use crate::record::Script;
use extensions::Extensions;
use mpi_base::cpu::Cores;
use mpi_base::hardware::Confinement;
use mpi_base::mem::Held;
use mpi_base::node::{Node, NodeError};
use mpi_base::param::{Level, Param, Params};
use mpi_base::state::StatePage;
use mpi_base::wait::WaitPolicy;
use mpi_base::yield_now::yield_meets_load;
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
    "Whether rank 0 says what was selected and why the rest was not; what mpirun --explain sets",
);

/// A counted reference to an engine.
#[derive(Clone)]
pub struct Engine(Rc<Inner>);

/// A reference that does not keep its engine.
#[derive(Clone)]
pub struct WeakEngine(Weak<Inner>);

impl WeakEngine {
    /// The engine, if it has not gone.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

/// What an engine is made of.
pub struct Parts {
    pub me: ProcId,
    pub size: u32,
    /// What the launcher calls the job.
    pub job: String,
    pub params: Params,
    pub node: Node,
    /// Job ranks of this node's processes, by rank on the node.
    pub neighbours: Vec<ProcId>,
    /// How many cores this process may keep busy.
    pub cores: Cores,
    /// Which parts of the machine it cannot leave.
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
    witness: OnceCell<Rc<Witness>>,
    extensions: Extensions,
    /// What this process tells about itself; written here, read by `mpirun`.
    state: Held<StatePage>,
}

impl Engine {
    /// An engine that has not talked to any process yet.
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
        let waiting = Waiting::of(&node, &cores, neighbours.len())?;
        let state = node.state(node.rank())?;
        state.start(std::process::id(), me);
        state.confine(&confinement);
        Ok(Engine(Rc::new(Inner {
            pml: Pml::new(Bml::new(me, size, btls), size, pml),
            waiting,
            operations: Operations::default(),
            hooks: Hooks::default(),
            witness: OnceCell::new(),
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

    /// Waits, for a bounded time, until copies of short messages are with their receivers.
    ///
    /// Behind the fence that ends the world every receive has been posted, so what is left then is wanted by no receive.
    pub(crate) fn send_copies(&self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let deadline = Instant::now() + PATIENCE;
        while self.0.pml.end_copies() > 0 && Instant::now() < deadline {
            self.progress();
            self.give_core_away();
        }
        self.0.pml.abandon_copies();
    }

    /// Says good-bye to all peers; what the last process's end of MPI does after [`Engine::stop`].
    ///
    /// Not left to the engine's end: a program that has leaked a handle keeps it to the end of the process.
    pub fn leave(&self) {
        self.0.pml.bml().leave();
    }

    /// For those that the engine owns.
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

    /// What the user has set, read when the engine was made.
    pub fn params(&self) -> &Params {
        &self.0.place.params
    }

    /// The memory that the processes of this node share.
    pub fn node(&self) -> &Node {
        &self.0.place.node
    }

    /// Job ranks of the processes that share this node's memory, by rank on the node.
    pub fn neighbours(&self) -> &[ProcId] {
        &self.0.place.neighbours
    }

    /// The members of a group that share this node's memory: the rank of each in the group, and on the node.
    pub fn members_here(&self, group: &Group) -> impl Iterator<Item = (u32, u32)> {
        self.0.place.members_here(group)
    }

    /// A number that the processes of a job on a node share, and no other node and no other job has.
    pub fn node_id(&self) -> u64 {
        self.name_of(self.0.place.first_here())
    }

    /// The processes that this one knows, those of other jobs too.
    pub fn universe(&self) -> &Arc<Universe> {
        &self.0.place.universe
    }

    /// Where this process may run.
    pub fn cores(&self) -> Cores {
        self.0.place.cores
    }

    /// How this process waits.
    pub fn policy(&self) -> WaitPolicy {
        self.0.waiting.policy()
    }

    /// Whether the user wants to hear what is selected.
    pub fn explains(&self) -> bool {
        self.params().get(&EXPLAIN).unwrap_or(false)
    }

    /// Whether ranks of this node share cores, so that a waiting one must make room.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.0.waiting.is_oversubscribed()
    }

    /// Yields on an oversubscribed node, and moves this rank where another core has fewer ranks.
    ///
    /// Beside a process that computes it returns at once, because such a yield costs a time slice: the caller sleeps instead.
    #[inline(always)]
    pub fn give_core_away(&self) {
        let waiting = &self.0.waiting;
        if waiting.take_beside_load() {
            return;
        }
        if yield_meets_load() {
            waiting.meets_load();
        }
        waiting.waits();
    }

    /// Whether the last yields of this process met a process that computes, so that a wait is to sleep without one.
    #[inline(always)]
    pub fn is_beside_load(&self) -> bool {
        self.0.waiting.is_beside_load()
    }

    /// Keeps a shared core for a moment, when no other rank on it is likely to have anything to do; whether it was long enough.
    pub fn hold_core(&self, mut done: impl FnMut() -> bool) -> bool {
        spin_hold::spin_hold(&mut done)
    }

    /// What this process tells about itself.
    #[inline]
    pub fn state(&self) -> &StatePage {
        &self.0.state
    }

    /// From now on messages and collective operations are observed; the first observer stays.
    pub fn set_witness(&self, witness: Witness) {
        let witness = Rc::new(witness);
        self.0.pml.set_witness(witness.clone());
        let _ = self.0.witness.set(witness);
    }

    /// The observer of this process, if it has one.
    #[inline]
    pub fn witness(&self) -> Option<&Witness> {
        self.0.witness.get().map(|witness| &**witness)
    }

    /// What is recorded or replayed, if this run is.
    pub fn script(&self) -> Option<&Script> {
        self.witness().and_then(Witness::script)
    }

    /// The messaging of this process: every message of every communicator goes through it.
    pub fn pml(&self) -> &Pml {
        &self.0.pml
    }

    /// The one value of its type that a layer above keeps here; made when it is first asked for.
    ///
    /// It goes with the engine, so it does not own one.
    pub fn extension<T: 'static>(&self, make: impl FnOnce() -> T) -> Rc<T> {
        self.0.extensions.get(make)
    }

    /// The one value of a type that begins with its default.
    pub fn extension_of_type<T: Default + 'static>(&self) -> &T {
        self.0.extensions.of_type()
    }

    /// The value of a type that a layer above keeps here, if it has been made.
    pub fn known_extension<T: 'static>(&self) -> Option<&T> {
        self.0.extensions.known()
    }

    /// What to call between two polls of a wait, so that other threads get in.
    pub fn set_relax(&self, relax: Option<fn()>) {
        self.0.waiting.set_relax(relax);
    }

    /// How threads that wait at the same time share the looking; without it only one thread waits at a time.
    pub fn set_threads(&self, threads: Option<Threads>) {
        self.0.waiting.set_threads(threads);
    }

    /// What to call in every nap of a long wait: `mpi-abi` looks whether the launcher is still there.
    pub fn set_watch(&self, watch: Option<fn()>) {
        self.0.waiting.set_watch(watch);
    }
}
