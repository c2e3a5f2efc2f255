//! Start and end of lanes: the node's ranks agree, share memory for each lane, and create its engine.
//!
//! The ranks of a node agree on the minimum of their numbers of lanes, and a rank that cannot have lanes offers 1.
//! The rank with the lowest number creates the segments and passes their descriptors to the others.
//! So every rank of the node has the same number of lanes, as [`comm_made`](super::comm_made) requires.

use super::{
    ALL, COUNT, Contents, MOST, comm_freed, comm_made, count, evidence, of_comm, other_lanes,
    tools, within,
};
use crate::abi::{MPI_Comm, MPI_ERR_OTHER, MPI_THREAD_MULTIPLE};
use crate::error::{Failure, Target};
use crate::functions::id_of;
use crate::lock::watcher;
use crate::params::LANES;
use crate::raise;
use crate::registry::comm::follow;
use crate::registry::request::limit_direct;
use crate::state::{self, state};
use crate::{device, helper, lane_tools, phase, thread_waits};
use mpi_base::cpu::Cores;
use mpi_base::fdpass::{Giver, Key, take};
use mpi_base::hardware::Confinement;
use mpi_base::mem::Held;
use mpi_base::node::{Node, thread_waits as thread_waits_of};
use mpi_base::param::Source;
use mpi_base::race_detectors;
use mpi_base::state::ThreadWaits;
use mpi_core::Engine;
use mpi_core::btl::{self, OpenContext};
use mpi_core::comm::Comm;
use mpi_core::crs::self_::{DIR, RESTART};
use mpi_core::engine::{Parts, Polled, ThreadStep, Threads};
use mpi_core::pml::Config;
use std::ffi::c_int;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time for all ranks of the node to pass the descriptors of the segments.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hooks of a lane's engine.
struct Hooks<const LANE: usize>;

impl<const LANE: usize> Hooks<LANE> {
    fn step(polled: Polled<'_>) -> ThreadStep {
        if polled.busy {
            thread_waits::found(LANE);
        }
        ALL[LANE].lock.wait_step(polled)
    }

    fn wanted() -> bool {
        ALL[LANE].lock.is_wanted()
    }

    fn relax() {
        ALL[LANE].lock.yield_to_waiters();
    }

    const THREADS: Threads = Threads {
        wait_step: Self::step,
        wanted: Self::wanted,
        is_alone: || false,
    };
}

/// The hooks of each lane's engine, and the function that lets other threads in.
static HOOKS: [(Threads, fn()); MOST] = [
    (Hooks::<0>::THREADS, Hooks::<0>::relax),
    (Hooks::<1>::THREADS, Hooks::<1>::relax),
    (Hooks::<2>::THREADS, Hooks::<2>::relax),
    (Hooks::<3>::THREADS, Hooks::<3>::relax),
    (Hooks::<4>::THREADS, Hooks::<4>::relax),
    (Hooks::<5>::THREADS, Hooks::<5>::relax),
    (Hooks::<6>::THREADS, Hooks::<6>::relax),
    (Hooks::<7>::THREADS, Hooks::<7>::relax),
];

/// Returns the reason why this process cannot have lanes.
fn obstacle(engine: &Engine, level: c_int) -> Option<&'static str> {
    let params = engine.params();
    let allows = |name| {
        params
            .get(&btl::SELECTION)
            .is_ok_and(|all| all.allows(name))
    };
    let decorated = btl::DECORATORS
        .iter()
        .flat_map(|decorator| decorator.params)
        .any(|about| params.source(about) != Source::Default);
    if level != MPI_THREAD_MULTIPLE {
        return Some("a rank has a thread level below MPI_THREAD_MULTIPLE");
    }
    if engine.is_fault_tolerant() {
        return Some("the job is fault tolerant");
    }
    if engine.observer().is_some() {
        return Some("messages are traced, recorded, replayed or counted");
    }
    if state::is_staging() || device::is_in_use() {
        return Some("an accelerator is in use or the types of messages are compared");
    }
    if [DIR.about(), RESTART.about()]
        .iter()
        .any(|about| params.source(about) != Source::Default)
    {
        return Some("checkpoints are taken or restored");
    }
    if helper::is_wanted(engine) {
        return Some("osc_am_progress_thread is set");
    }
    if decorated {
        return Some("a transport is decorated");
    }
    if !allows("self") || !allows("sm") {
        return Some("the parameter btl excludes self or sm");
    }
    None
}

/// Starts the lanes that the parameters request. Every rank of the job calls this function in `MPI_Init`.
///
/// `watch` is called under lock 0, if it is free, before each sleep of a thread in a lane.
pub fn start(engine: &Engine, level: c_int, watch: fn()) -> Result<(), Failure> {
    let wanted = engine.params().get(&LANES).unwrap_or(1);
    let Some(world) = engine.world().filter(|_| wanted > 1) else {
        return Ok(());
    };
    let obstacle = obstacle(engine, level);
    let offered = match obstacle {
        None => wanted.min(MOST),
        Some(_) => 1,
    };
    let shared = engine.block_on(world.hardware().split_shared(0))?;
    let Some(node) = shared else { return Ok(()) };
    let all = engine.block_on(node.internal().share(&[offered as u64]))?;
    let lanes = all.into_iter().min().unwrap_or(1) as usize;
    let report = |text: &str| {
        if engine.place().explains() && engine.me() == 0 {
            printable::eprintln!("explain: lanes: {text}");
        }
    };
    if lanes == 1 {
        report(obstacle.unwrap_or("another rank of the node cannot have lanes"));
        return Ok(());
    }
    let made = make(engine, &node, lanes);
    let all_made = engine.block_on(node.internal().share(&[made.is_ok().into()]))?;
    match made {
        Err(failure) => report(failure.message()),
        Ok(_) if all_made.contains(&0) => report("another rank of the node cannot create them"),
        Ok(engines) => {
            report(&format!("{lanes} serve the communicators of this node"));
            let _ = WATCH.set(watch);
            install(engine, engines);
        }
    }
    // No member may send in a lane before all members have it.
    engine.block_on(node.internal().fence())?;
    Ok(())
}

/// The waits of `MPI_Init` after the start of lanes, which may claim the role of the watcher for lane 0.
///
/// The call has begun without lanes, so its end does not pass the role on. The end of this value does, also if the call fails.
pub struct WaitsOfInit;

impl Drop for WaitsOfInit {
    fn drop(&mut self) {
        if count() > 1 {
            // The call may have begun without the lock. Threads of a session may be in other lanes.
            state::locked(|| watcher::leave_lane(0));
        }
    }
}

fn cannot(doing: &'static str, reason: impl std::fmt::Display) -> Failure {
    Failure::new(MPI_ERR_OTHER, format!("{doing}: {reason}"))
}

/// Shares the memory of all lanes but lane 0 among the node's ranks, and creates their engines.
fn make(engine: &Engine, node: &Comm, lanes: usize) -> Result<Vec<Engine>, Failure> {
    let files = share_memory(engine, node, lanes - 1)?;
    let rank = engine.node().rank();
    let made = files.iter().zip(1..).map(|(file, lane)| {
        let memory = Node::attach(file, rank)
            .map_err(|error| cannot("the memory of a lane cannot be used", error))?;
        create_engine(engine, memory, lane, lanes)
    });
    made.collect()
}

/// Creates the memory files on the first rank and passes them to the others. Every rank of the node calls this function.
fn share_memory(engine: &Engine, node: &Comm, files: usize) -> Result<Vec<OwnedFd>, Failure> {
    let leads = node.rank() == 0;
    let words = |key: &Key| -> Vec<u64> {
        let chunks = key.bytes().chunks_exact(8);
        chunks
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect()
    };
    let name = |place: u64, file: usize| format!("portcullis-lane-{place:016x}-{file}");
    let mut mine = vec![0; 5];
    let mut made = Vec::new();
    let mut bound = Ok(());
    if leads {
        match (Key::random(), Key::random()) {
            (Ok(key), Ok(place)) => mine = [words(&key), words(&place)[..1].to_vec()].concat(),
            (Err(error), _) | (_, Err(error)) => {
                bound = Err(cannot("no key for the memory of lanes", error));
            }
        }
    }
    if leads && bound.is_ok() {
        for file in 0..files {
            let memory = Node::create(engine.node().nlocal());
            let giver = Giver::bind(&name(mine[4], file));
            match (memory, giver) {
                (Ok(memory), Ok(giver)) => made.push((memory, giver)),
                (Err(error), _) => bound = Err(cannot("no memory for lanes", error)),
                (_, Err(error)) => {
                    bound = Err(cannot("the memory of lanes cannot be passed", error))
                }
            }
        }
    }
    // The first rank listens before the others know the name.
    let shared = [mine, vec![bound.is_ok().into()]].concat();
    let all = engine.block_on(node.internal().share(&shared))?;
    bound?;
    if all[5] == 0 {
        return Err(cannot(
            "no memory for lanes",
            "the first rank of the node failed",
        ));
    }
    let mut bytes = [0; 32];
    for (word, bytes) in all[..4].iter().zip(bytes.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let key = Key::from_bytes(bytes);
    let deadline = Instant::now() + PATIENCE;
    let failed = |error| cannot("the memory of lanes cannot be passed", error);
    if leads {
        let takers = node.size() as usize - 1;
        let given = made.into_iter().map(|(memory, giver)| {
            giver
                .give(memory.as_fd(), &key, takers, deadline)
                .map_err(failed)?;
            Ok(memory)
        });
        return given.collect();
    }
    (0..files)
        .map(|file| take(&name(all[4], file), &key, deadline).map_err(failed))
        .collect()
}

/// Creates the engine of a lane.
fn create_engine(base: &Engine, node: Node, lane: usize, lanes: usize) -> Result<Engine, Failure> {
    let mut params = base.params().clone();
    params.set("btl", "self,sm", Source::Environment);
    let neighbours = base.place().neighbours().to_vec();
    let context = OpenContext {
        me: base.me(),
        size: base.size(),
        node: Some((node.clone(), neighbours.clone())),
        params: &params,
        modex: None,
    };
    let opened = btl::open_all(&context)
        .map_err(|error| cannot("the transports of a lane cannot be opened", error))?;
    if let Some((name, why)) =
        (opened.refused.iter()).find(|(name, _)| ["self", "sm"].contains(name))
    {
        return Err(cannot(
            "the transports of a lane cannot be opened",
            format!("{name}: {why}"),
        ));
    }
    let mut btls = opened.btls;
    btls.push(other_lanes::of_lane(lane));
    // Each lane can have a thread that waits, so a core is divided among lanes.
    let cores = base.place().cores();
    let cores = Cores {
        usable: cores.usable.div_ceil(lanes),
        ..cores
    };
    let sharing = cores.shared_by(neighbours.len()).div_ceil(cores.usable);
    let sharing = u32::try_from(sharing).unwrap_or(u32::MAX);
    let pml = Config::from_params(&params, sharing)
        .map_err(|error| cannot("a parameter cannot be read", error))?;
    let job = phase::launcher().map_or(String::new(), |rte| rte.identity().job.clone());
    Engine::new(Parts {
        me: base.me(),
        size: base.size(),
        job,
        params,
        node,
        neighbours,
        cores,
        confinement: Confinement::at_start(),
        btls,
        pml,
    })
    .map_err(|error| cannot("the engine of a lane cannot start", error))
}

/// Installs the engines of the lanes. From now on each call determines the lane of its communicator or request.
fn install(base: &Engine, engines: Vec<Engine>) {
    let lanes = engines.len() + 1;
    watcher::set_inbox(0, base.node().my_inbox().clone());
    let cores = base.place().cores();
    let ranks = cores.shared_by(base.place().neighbours().len());
    let cores = u32::try_from(cores.usable / ranks.max(1)).unwrap_or(u32::MAX);
    for (engine, lane) in engines.into_iter().zip(1..MOST) {
        // Other threads may ring the doorbell until process exit, so it is never freed.
        let doorbell = state().engines().keep(engine.node().my_inbox().clone());
        let lock = &ALL[lane].lock;
        lock.set_doorbell(doorbell);
        lock.set_cores(cores);
        watcher::set_inbox(lane, engine.node().my_inbox().clone());
        let (threads, relax) = &HOOKS[lane];
        engine.waiting().set_threads(Some(threads));
        engine.waiting().set_relax(Some(*relax));
        engine.waiting().set_watch(Some(watch));
        within(lane, |contents: &Contents| {
            lock.reserve();
            // `MPI_Init` runs once, so no engine is installed yet.
            let _ = contents.engine.set(engine);
        });
    }
    // Threads of other lanes read the counts with atomic loads.
    for lane in &ALL {
        race_detectors::exclude(&lane.polls);
    }
    limit_direct();
    follow(comm_made, comm_freed);
    COUNT.store(lanes, Relaxed);
    lane_tools::register(tools::TOOLS);
    if let Ok(page) = thread_waits_of(base.node(), base.node().rank()) {
        // The page is written until process exit, so it is never unmapped.
        let page: &'static Held<ThreadWaits> = state().engines().keep(page);
        thread_waits::begin(page, lanes, evidence::SOURCES);
    }
    state::set_lanes(true);
}

/// The function that is called before each sleep, for example because the launcher may have ended.
static WATCH: OnceLock<fn()> = OnceLock::new();

fn watch() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    let polls = other_lanes::polls_of(0);
    // A thread that polls in lane 0 keeps its reservation of the lock, and watches itself.
    if SEEN.swap(polls, Relaxed) == polls
        && let Some(watch) = WATCH.get()
    {
        state::locked_if_free(watch);
    }
}

/// Polls a lane's engine, and returns the result of `is_done`.
fn polled(contents: &Contents, is_done: impl Fn(&Contents) -> bool) -> bool {
    if let Some(engine) = contents.engine() {
        if engine.poll_once() {
            thread_waits::found(contents.number());
        }
        contents.buffered.reap(engine);
    }
    is_done(contents)
}

/// Waits until the buffered messages of all lanes have been sent.
/// The caller holds lock 0, so it waits in lane 0, whose progress peers may need.
pub fn drain(base: &Engine) {
    let is_sent = |contents: &Contents| polled(contents, |of| of.buffered.are_sent(None));
    if count() > 1 {
        base.wait_until(|| (1..count()).all(|lane| within(lane, is_sent)));
    }
}

/// Returns true if the buffered messages of a communicator's lane, or of all lanes, have been sent.
/// The caller holds lock 0. Does not poll, so the engine may call it while it makes progress.
pub fn are_sent(comm: Option<MPI_Comm>) -> bool {
    match comm {
        None => (1..count()).all(|lane| within(lane, |contents| contents.buffered.are_sent(None))),
        Some(comm) => of_comm(comm).is_none_or(|at| {
            within(at.lane, |contents| {
                let twin = contents.twin(at.slot);
                twin.is_none_or(|twin| contents.buffered.are_sent(Some(&twin)))
            })
        }),
    }
}

/// Waits until the buffered messages of a communicator have been sent,
/// and with `also_freed` until its operations whose requests were freed have completed. The caller holds lock 0.
pub fn drain_comm(base: &Engine, comm: MPI_Comm, also_freed: bool) {
    let Some(at) = of_comm(comm).filter(|_| count() > 1) else {
        return;
    };
    let is_over = |contents: &Contents| {
        let Some(twin) = contents.twin(at.slot) else {
            return true;
        };
        polled(contents, |of| {
            of.buffered.are_sent(Some(&twin)) && (!also_freed || of.buffered.are_over(&twin))
        })
    };
    base.wait_until(|| within(at.lane, is_over));
}

/// Ends the job if an operation has failed whose request was freed. The caller holds lock 0.
pub fn end_on_failure() {
    for lane in 1..count() {
        let failure = within(lane, |contents| contents.buffered.take_failure());
        if let Some(failure) = failure {
            let target = failure.target().unwrap_or(Target::None);
            raise::fatal(id_of("MPI_Request_free"), target, &failure);
        }
    }
}

/// Ends the lanes after all ranks have arrived in `MPI_Finalize`. The engines stay: peers refer to their memory.
pub fn end() {
    /// Time in which copies of short messages are sent; no receive matches those that remain.
    const COPIES: Duration = Duration::from_secs(2);
    for lane in 1..count() {
        within(lane, |contents: &Contents| {
            let Some(engine) = contents.engine() else {
                return;
            };
            engine.poll_once();
            contents.buffered.reap(engine);
            let deadline = Instant::now() + COPIES;
            while engine.pml().end_copies() > 0 && Instant::now() < deadline {
                engine.progress();
                engine.waiting().give_core_away();
            }
            engine.pml().abandon_copies();
            contents.twins.borrow_mut().clear();
        });
    }
    thread_waits::end();
    COUNT.store(1, Relaxed);
    watcher::role().reset();
    state::set_lanes(false);
}
