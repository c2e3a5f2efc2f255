//! The engine: one process's MPI, as a value.
//!
//! It ties the frameworks together and owns the two things they share: progress and waiting.
//! A test makes four of them in four threads of one process; `mpi-abi` holds the only one of a real process.
//!
//! An engine belongs to one thread at a time.
//! Below `MPI_THREAD_MULTIPLE` this is not checked; at that level `mpi-abi` holds one lock around every call and lets [`Engine::set_relax`] release it while the engine waits;
//! of several threads that wait, one looks for all ([`Threads`]).

mod balance;
mod extensions;
mod progress;
mod progress_hook;
mod spin_hold;

pub use progress_hook::{Occasion, ProgressHook};

pub use progress::PollAlways;

use crate::bml::Bml;
use crate::btl::{ProcId, Transport};
use crate::coll::Framework;
use crate::comm::Comm;
use crate::fault::Faults;
use crate::group::Group;
use crate::pml::Context;
use crate::pml::{Config, Pml};
use crate::record::Script;
use crate::request::Req;
use crate::{Error, Witness};
use balance::Balance;
use extensions::Extensions;
use mpi_base::cpu::Cores;
use mpi_base::descriptor_doorbell::DescriptorDoorbell;
use mpi_base::hardware::Confinement;
use mpi_base::mem::Held;
use mpi_base::node::{Node, NodeError};
use mpi_base::param::{Level, Param, Params};
use mpi_base::state::StatePage;
use mpi_base::wait::WaitPolicy;
use mpi_base::yield_now::yield_now;
use mpi_transport::universe::{Universe, job_number};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    pub coll: Box<dyn Framework>,
}

/// How several threads of a process wait in one engine: one of them looks, for all, and the others follow it.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// If another thread looks already, waits until that one has news or has gone, and answers yes; else the caller is the one that looks.
    /// It tells whether there may be news for those that follow: its look was `busy`, or it `slept` before.
    pub follow: fn(busy: bool, slept: bool) -> bool,
    /// Whether a thread wants to begin a call, so that no thread may sleep.
    pub wanted: fn() -> bool,
}

struct Inner {
    me: ProcId,
    size: u32,
    universe: Arc<Universe>,
    faults: OnceCell<Rc<Faults>>,
    params: Params,
    node: Node,
    neighbours: Vec<ProcId>,
    cores: Cores,
    pml: Pml,
    witness: OnceCell<Rc<Witness>>,
    coll: Box<dyn Framework>,
    extensions: Extensions,
    policy: WaitPolicy,
    /// Whether that is the one of ranks that share cores.
    crowded: bool,
    /// Where they do.
    even: Option<Balance>,
    /// Where the bell is heard while transports wait for descriptors; made by the first such sleep.
    ear: OnceCell<Option<DescriptorDoorbell>>,
    /// What this process tells about itself; written here, read by `mpirun`.
    state: Held<StatePage>,
    /// Collective requests that progress polls.
    running: RefCell<Vec<Req>>,
    /// The completion count when they were last polled.
    polled: Cell<u64>,
    /// What takes part in something beside the operations, and whether there is any.
    attendants: RefCell<Vec<Weak<dyn ProgressHook>>>,
    attended: Cell<bool>,
    /// How many [`progress::PollAlways`] live.
    restless: Cell<u32>,
    progressing: Cell<bool>,
    /// How many calls that only look have found nothing in a row.
    idle: Cell<u32>,
    relax: Cell<Option<fn()>>,
    threads: Cell<Option<Threads>>,
    /// Whether this process has slept since its threads were last told of news.
    slept: Cell<bool>,
    watch: Cell<Option<fn()>>,
    serial: Cell<u32>,
    world: RefCell<Option<Comm>>,
    myself: RefCell<Option<Comm>>,
    /// Where processes meet that have no communicator in common yet.
    meeting: RefCell<Option<Comm>>,
}

/// Serial numbers of the communicators that exist from the start.
pub(crate) const WORLD_SERIAL: u32 = 0;
const SELF_SERIAL: u32 = 1;
pub(crate) const MEETING_SERIAL: u32 = 2;
const FIRST_SERIAL: u32 = 3;

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
            coll,
        } = parts;
        let policy = WaitPolicy::new(cores.usable, cores.shared_by(neighbours.len()));
        let crowded = policy == WaitPolicy::CROWDED;
        if crowded {
            // It will sleep all the time, and a fence in every process for each sleep would cost more than one for each message.
            node.my_inbox().bell().ask_for_fences();
        }
        // Where a quota is what limits, cores are free; what is spread over them uses it up the sooner.
        let spreads = crowded && !cores.limited_by_quota();
        let even = spreads.then(|| Balance::of(&node));
        let even = even.transpose()?;
        let state = node.state(node.rank())?;
        state.start(std::process::id(), me);
        state.confine(&confinement);
        Ok(Engine(Rc::new(Inner {
            me,
            size,
            universe: Arc::new(Universe::new(job_number(&job), me, size)),
            faults: OnceCell::new(),
            params,
            node,
            neighbours,
            cores,
            pml: Pml::new(Bml::new(me, size, btls), size, pml),
            witness: OnceCell::new(),
            coll,
            extensions: Extensions::default(),
            policy,
            crowded,
            even,
            ear: OnceCell::new(),
            state,
            running: RefCell::default(),
            polled: Cell::new(0),
            attendants: RefCell::default(),
            attended: Cell::new(false),
            restless: Cell::new(0),
            progressing: Cell::new(false),
            idle: Cell::new(0),
            relax: Cell::new(None),
            threads: Cell::new(None),
            slept: Cell::new(false),
            watch: Cell::new(None),
            serial: Cell::new(FIRST_SERIAL),
            world: RefCell::default(),
            myself: RefCell::default(),
            meeting: RefCell::default(),
        })))
    }

    /// Makes `MPI_COMM_SELF` and everything else that needs no other process; may be called again after [`Engine::stop`].
    pub fn start(&self) -> Result<(), Error> {
        self.hear_of_failures();
        let alone = Group::range(self.0.me, 1);
        let alone = Comm::assemble(
            self,
            Context::new(self.0.me, SELF_SERIAL),
            alone,
            0,
            "MPI_COMM_SELF".into(),
        );
        self.block_on(alone.choose_coll())?;
        *self.0.myself.borrow_mut() = Some(alone);
        self.0.state.run();
        Ok(())
    }

    /// Makes `MPI_COMM_WORLD`; every process of the job calls it.
    pub fn join_world(&self) -> Result<(), Error> {
        let world = Group::range(0, self.0.size);
        let world = Comm::assemble(
            self,
            Context::new(0, WORLD_SERIAL),
            world,
            self.0.me,
            "MPI_COMM_WORLD".into(),
        );
        self.block_on(world.choose_coll())?;
        *self.0.world.borrow_mut() = Some(world);
        Ok(())
    }

    /// Frees `MPI_COMM_WORLD`.
    pub fn leave_world(&self) {
        let world = self.0.world.take();
        drop(world);
    }

    /// Frees the communicators that exist from the start; the last call of a process's MPI, or of a turn of it.
    pub fn stop(&self) {
        self.send_copies();
        // The engine owns them and they own the engine; taking them out breaks the circle.
        self.leave_world();
        let (myself, meeting) = (self.0.myself.take(), self.0.meeting.take());
        drop((myself, meeting));
        // The caller may not come back for long, or at all.
        self.0.pml.bml().settle();
        self.0.state.finalized();
    }

    /// Waits, for a bounded time, until copies of short messages are with their receivers.
    ///
    /// Behind the fence that ends the world every receive has been posted, so what is left then is wanted by no receive.
    fn send_copies(&self) {
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

    /// The communicator on which processes meet, made when it is first needed.
    pub(crate) fn meeting_slot(&self, make: impl FnOnce() -> Comm) -> Comm {
        let found = self.0.meeting.borrow().clone();
        found.unwrap_or_else(|| self.0.meeting.borrow_mut().insert(make()).clone())
    }

    /// `MPI_COMM_WORLD`, once [`Engine::join_world`] has made it.
    pub fn world(&self) -> Option<Comm> {
        self.0.world.borrow().clone()
    }

    /// `MPI_COMM_SELF`, once [`Engine::start`] has made it.
    pub fn myself(&self) -> Option<Comm> {
        self.0.myself.borrow().clone()
    }

    /// This process's rank in the job.
    pub fn me(&self) -> ProcId {
        self.0.me
    }

    /// The number of processes in the job.
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// What the user has set, read when the engine was made.
    pub fn params(&self) -> &Params {
        &self.0.params
    }

    /// The memory that the processes of this node share.
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// Job ranks of the processes that share this node's memory, by rank on the node.
    pub fn neighbours(&self) -> &[ProcId] {
        &self.0.neighbours
    }

    /// The members of a group that share this node's memory: the rank of each in the group, and on the node.
    pub fn members_here(&self, group: &Group) -> impl Iterator<Item = (u32, u32)> {
        let neighbours = (0..).zip(&self.0.neighbours);
        neighbours.filter_map(|(place, proc)| Some((group.rank_of(*proc)?, place)))
    }

    /// A number that the processes of a job on a node share, and no other node and no other job has.
    pub fn node_id(&self) -> u64 {
        let first = self.0.neighbours.first().copied().unwrap_or(self.0.me);
        self.name_of(first)
    }

    /// The processes that this one knows, those of other jobs too.
    pub fn universe(&self) -> &Arc<Universe> {
        &self.0.universe
    }

    pub(crate) fn faults_slot(&self) -> &OnceCell<Rc<Faults>> {
        &self.0.faults
    }

    /// Where this process may run.
    pub fn cores(&self) -> Cores {
        self.0.cores
    }

    /// How this process waits.
    pub fn policy(&self) -> WaitPolicy {
        self.0.policy
    }

    /// Whether the user wants to hear what is selected.
    pub fn explains(&self) -> bool {
        self.0.params.get(&EXPLAIN).unwrap_or(false)
    }

    /// Whether ranks of this node share cores, so that a waiting one must make room.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.0.crowded
    }

    /// Gives the core away where ranks share cores, and sees to it that they share them evenly.
    #[inline(always)]
    pub fn give_core_away(&self) {
        yield_now();
        if let Some(even) = &self.0.even {
            even.waits();
        }
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

    /// The collective components of this process.
    #[inline]
    pub fn coll(&self) -> &dyn Framework {
        &*self.0.coll
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
        self.0.relax.set(relax);
    }

    /// How threads that wait at the same time share the looking; without it only one thread waits at a time.
    pub fn set_threads(&self, threads: Option<Threads>) {
        self.0.threads.set(threads);
    }

    /// What to call in every nap of a long wait: `mpi-abi` looks whether the launcher is still there.
    pub fn set_watch(&self, watch: Option<fn()>) {
        self.0.watch.set(watch);
    }

    pub(crate) fn serial(&self) -> &Cell<u32> {
        &self.0.serial
    }
}
