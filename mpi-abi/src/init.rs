//! Life cycle of MPI: initialization, sessions, finalization (sections 11.2 to 11.4).
//!
//! The engine runs while `MPI_COMM_WORLD` or a session exists. Otherwise it is parked (stopped).
//! A parked engine is not freed, because other processes refer to its memory.
//! So a second engine cannot replace it.
//!
//! The module assembles the library. The launcher provides the process identity.
//! The engine consists of the node's memory, the transports and the collective components.
//! The engine then creates `MPI_COMM_WORLD`.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::api::collective::fast_call;
use crate::api::dynamic;
use crate::checkpoint;
use crate::components;
use crate::crash;
use crate::debug_page;
use crate::device;
use crate::error::{Failure, unread_errors};
use crate::explain::{self, Findings};
use crate::forked;
use crate::frameworks;
use crate::helper;
use crate::info;
use crate::initial_handler;
use crate::lanes;
use crate::memory_rights;
use crate::object::comm::CommObject;
use crate::params::TELL_MISSPELT;
use crate::phase::{self, launcher};
use crate::state::{self, state};
use crate::stdio;
use crate::tool;
use crate::unknown_params;
use crate::{leak_report, unreceived};
use mpi_base::cpu::Cores;
use mpi_base::first_pages;
use mpi_base::hardware::Confinement;
use mpi_base::param::Params;
use mpi_core::btl::{self, OpenContext};
use mpi_core::coll::Coll;
use mpi_core::engine::Parts;
use mpi_core::pml;
use mpi_core::pml::Config;
use mpi_core::rte::{self, Env, Rte, RteModex};
use mpi_core::{Engine, RunObserver};
use std::ffi::c_int;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Converts an error of an initialization step to a failure.
fn at<E: Display>(step: &'static str) -> impl FnOnce(E) -> Failure {
    move |e| Failure::new(MPI_ERR_OTHER, format!("{step}: {e}"))
}

const LEVELS: [(c_int, &str); 4] = [
    (MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"),
    (MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
    (MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
    (MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
];

/// Returns the thread level that MPI provides, for the requested level `level`.
/// Record and replay need calls in a fixed order, so they provide at most `MPI_THREAD_SERIALIZED`.
fn served(engine: &Engine, level: c_int, name: &'static str) -> (c_int, &'static str) {
    const ONE_AT_A_TIME: (c_int, &str) = LEVELS[2];
    if level <= ONE_AT_A_TIME.0 || engine.script().is_none() {
        return (level, name);
    }
    if engine.me() == 0 {
        printable::eprintln!(
            "rank 0: a run that is recorded or replayed follows one order of calls in each rank, so {} is provided instead of {name}",
            ONE_AT_A_TIME.1
        );
    }
    ONE_AT_A_TIME
}

/// Joins the job and creates `MPI_COMM_WORLD`.
pub fn initialize(required: c_int) -> Result<c_int, Failure> {
    if phase::running() {
        return Err(Failure::new(MPI_ERR_OTHER, "MPI is initialized already"));
    }
    if phase::finalized() {
        return Err(Failure::new(
            MPI_ERR_OTHER,
            "MPI has been finalized and cannot be initialized again",
        ));
    }
    // Every level is supported. A value between two levels is rounded up.
    let at_least = LEVELS.into_iter().find(|(level, _)| *level >= required);
    let (provided, name) = at_least.unwrap_or(LEVELS[3]);
    let (engine, explanation) = start_engine()?;
    let (provided, name) = served(&engine, provided, name);
    engine
        .process()
        .join_world()
        .map_err(at("the job cannot start"))?;
    engine
        .process()
        .rehearse_on_world()
        .map_err(at("the job cannot start"))?;
    fast_call::look_up_common();
    if let Some(lines) = explanation {
        explain::print(&engine, lines);
    }
    let predefined = |comm, handle| Some(CommObject::predefined(comm, handle));
    *state().tables().world().borrow_mut() =
        engine.world().and_then(|c| predefined(c, MPI_COMM_WORLD));
    state::set_world_place(engine.world().map(|world| (world.rank(), world.size())));
    *state().tables().myself().borrow_mut() = engine
        .process()
        .myself()
        .and_then(|c| predefined(c, MPI_COMM_SELF));
    info::describe(engine.size(), name);
    phase::begin(provided);
    configure_locking(&engine, provided)?;
    let _waits = lanes::WaitsOfInit;
    lanes::start(&engine, provided, watch_in_lane)?;
    initial_handler::set_chosen(engine.params(), dynamic::parent::HANDLER_KEY)?;
    // The connection to the parent may use everything that was created above.
    if let Err(failure) = dynamic::parent::meet_parent(&engine) {
        match engine.is_fault_tolerant() {
            true => exit_without_parent(&failure),
            false => return Err(failure),
        }
    }
    Ok(provided)
}

/// Joins the job for a session, without the world model. Returns the provided thread level.
///
/// As section 11.3.1 requires, this function does not wait for another process.
pub fn begin_session(level: Option<&str>) -> Result<&'static str, Failure> {
    let asked = level.unwrap_or(LEVELS[0].1);
    let found = LEVELS.into_iter().find(|(_, name)| *name == asked);
    let (level, name) = found.ok_or_else(|| {
        Failure::new(
            MPI_ERR_ARG,
            format!("thread_level is {asked}, which is none of MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED and MPI_THREAD_MULTIPLE"),
        )
    })?;
    let (engine, _) = start_engine()?;
    let (level, name) = served(&engine, level, name);
    if !LEAVING_AT_EXIT.swap(true, Relaxed) {
        // Another session may follow, so the launcher is notified only when the process ends.
        // SAFETY: the handler takes no argument, and the library is never unloaded while in use.
        unsafe { libc::atexit(leave_launcher) };
    }
    configure_locking(&engine, level)?;
    // The session provides at least the thread level of `MPI_COMM_WORLD`.
    // It provides `MPI_THREAD_MULTIPLE` if an earlier session or `MPI_COMM_WORLD` does.
    let world = match phase::running() {
        true => phase::thread_level(),
        false => MPI_THREAD_SINGLE,
    };
    let all = if state().engines().multiple().get() {
        MPI_THREAD_MULTIPLE
    } else {
        world
    };
    let had = LEVELS.into_iter().find(|(known, _)| *known == all);
    Ok(had
        .filter(|(had, _)| *had > level)
        .map_or(name, |(_, had)| had))
}

/// Ends a session. The end of the last session parks the engine.
pub fn end_session() -> Result<(), Failure> {
    park_if_unused()
}

/// Decides whether calls take the lock.
/// Once several threads may call MPI, all calls take the lock until the engine is parked.
fn configure_locking(engine: &Engine, level: c_int) -> Result<(), Failure> {
    let helped = helper::is_wanted(engine);
    let of_program = level == MPI_THREAD_MULTIPLE || state().engines().multiple().get();
    state().engines().multiple().set(of_program);
    let multiple = of_program || helped || state::tool_has_threads();
    engine
        .waiting()
        .set_relax(multiple.then_some(state::yield_lock as fn()));
    engine
        .waiting()
        .set_threads(multiple.then_some(&state::THREADS));
    let cores = engine.place().cores();
    let ranks = cores.shared_by(engine.place().neighbours().len());
    if multiple {
        state::set_cores_for_threads(cores, ranks, engine.node().rank() as usize);
    }
    state::set_locking(multiple);
    match helped {
        true => helper::start(),
        false => Ok(()),
    }
}

/// True if the launcher is notified at process exit instead of at the last finalization.
static LEAVING_AT_EXIT: AtomicBool = AtomicBool::new(false);

extern "C" fn leave_launcher() {
    // A forked child inherits this exit handler, but is not a rank of the job.
    if state::is_forked() {
        return;
    }
    // A process that exits while MPI is in use has not finalized MPI.
    // Its exit must count as a failure, so the launcher is not notified of a regular end.
    if state()
        .engines()
        .engine()
        .try_borrow()
        .is_ok_and(|e| e.is_none())
        && let Some(launcher) = launcher()
    {
        if let Ok(Some(engine)) = state().engines().parked().try_borrow().as_deref() {
            engine.leave();
        }
        // No caller remains to receive a failure.
        let _ = launcher.finalize();
    }
}

/// The lines of `mpirun --explain` about initialization.
type Explanation = Option<Vec<String>>;

/// Returns the engine: creates it on the first call, or restarts the parked engine.
fn start_engine() -> Result<(Engine, Explanation), Failure> {
    if let Some(engine) = state().engines().engine().borrow().clone() {
        return Ok((engine, None));
    }
    let parked = state().engines().parked().take();
    let (engine, explanation) = match parked {
        Some(engine) => {
            let neighbours = engine.node().nlocal() > 1;
            memory_rights::give(engine.params(), neighbours)
                .map_err(at("a parameter cannot be read"))?;
            (engine, None)
        }
        None => {
            let (engine, explanation) = create_engine()?;
            engine.waiting().set_watch(Some(watch));
            checkpoint::of(&engine).set_poll(poll_launcher);
            debug_page::begin();
            // Other threads may ring the doorbell until process exit, so it is never freed.
            let doorbell = state().engines().keep(engine.node().my_inbox().clone());
            state::set_doorbell(doorbell);
            if let Ok(page) = engine.node().state(engine.node().rank()) {
                // The state page is written until process exit, so it is never unmapped.
                let page = state().engines().keep(page);
                state::set_state_page(page);
            }
            start_observation(&engine)?;
            tool::event::attach(&engine);
            forked::watch(state::mark_forked);
            map_first_pages(&engine);
            (engine, explanation)
        }
    };
    engine
        .process()
        .start()
        .map_err(at("the engine cannot start"))?;
    *state().engines().engine().borrow_mut() = Some(engine.clone());
    if device::start(engine.params()).map_err(at("a parameter cannot be read"))? {
        state::set_staging();
    }
    state::watch_loader(device::loader_word());
    crash::install(engine.params());
    leak_report::prepare(engine.params());
    phase::set_fault_tolerant(engine.is_fault_tolerant());
    if engine.is_fault_tolerant() {
        // A rank that died before its MPI initialization has published no address.
        // The launcher reported the death before it released this rank from the fence.
        poll_launcher();
    }
    Ok((engine, explanation))
}

/// Maximum number of ranks on a node with which each rank maps pages of later calls at its start.
/// More ranks would start later, and they wait for each other longer than for page faults.
const FEW: u32 = 8;

/// Maps pages that the first calls of most programs use, so that these calls cause no page faults.
fn map_first_pages(engine: &Engine) {
    if engine.size() > 1 && engine.node().nlocal() <= FEW {
        first_pages::map_code();
        first_pages::populate_heap();
    }
}

/// Starts tracing, recording or replay, if the parameters request it.
fn start_observation(engine: &Engine) -> Result<(), Failure> {
    let place = (engine.me(), engine.size());
    let wanted = RunObserver::wanted(engine.params(), engine.node(), place)
        .map_err(at("the run cannot be traced, recorded or replayed"))?;
    let Some(witness) = wanted else { return Ok(()) };
    // Calls are traced until process exit, so the trace is never freed.
    let trace = witness.trace();
    let trace = trace.map(|trace| &**state().engines().keep(trace.clone()));
    let scripted = witness.script().is_some();
    engine.set_observer(witness);
    state::set_tracing(trace, scripted);
    Ok(())
}

/// Parks the engine if neither `MPI_COMM_WORLD` nor a session exists.
fn park_if_unused() -> Result<(), Failure> {
    if phase::running() || state().tables().sessions().borrow().iter().next().is_some() {
        return Ok(());
    }
    if phase::is_fault_tolerant() {
        // The transports must not wait for ranks of whose end only the launcher knows yet.
        poll_launcher();
    }
    let Some(engine) = state().engines().engine().take() else {
        return Ok(());
    };
    engine.process().stop();
    memory_rights::take_back(engine.params());
    state().engines().multiple().set(false);
    engine.waiting().set_relax(None);
    engine.waiting().set_threads(None);
    // The next session may begin in any thread, so calls must take the lock again.
    state::set_locking(true);
    if !LEAVING_AT_EXIT.load(Relaxed) {
        engine.leave();
    }
    *state().engines().parked().borrow_mut() = Some(engine);
    match launcher() {
        Some(launcher) if !LEAVING_AT_EXIT.load(Relaxed) => launcher.finalize().map_err(at(
            "the launcher did not acknowledge that this process leaves",
        )),
        _ => Ok(()),
    }
}

/// Ends a process of a spawned job whose parents have died or reject it.
/// If its initialization failed with an error, the parents' job would be ended, too.
fn exit_without_parent(failure: &Failure) -> ! {
    printable::eprintln!(
        "process {}: this job was spawned, and cannot reach its parent: {}; it ends",
        std::process::id(),
        failure.message()
    );
    stdio::flush();
    // SAFETY: `_exit` runs no exit handlers, so none can communicate with peers.
    unsafe { libc::_exit(1) }
}

/// The work before each sleep of a long wait: launcher, debug page and events.
fn watch() {
    poll_launcher();
    debug_page::write_in_wait();
    tool::event::deliver_in_wait();
}

/// The work before each sleep in a lane other than 0. Callbacks of events belong to lane 0.
fn watch_in_lane() {
    poll_launcher();
    debug_page::write_in_wait();
}

/// Polls the launcher for dead ranks, failed spawns, and the end of the launcher itself.
pub fn poll_launcher() {
    exit_without_launcher();
    let Some(launcher) = launcher() else { return };
    let engine = state().engines().engine().try_borrow();
    let Some(engine) = engine.ok().and_then(|engine| engine.clone()) else {
        return;
    };
    if !state().jobs().spawning().borrow().is_empty() {
        dynamic::spawn::poll_spawn_failures(&engine, launcher);
    }
    checkpoint::hear_in_wait(&engine, launcher);
    if engine.is_fault_tolerant() {
        for death in launcher.deaths() {
            engine
                .peers()
                .process_gone(&death.job, death.rank, death.left);
        }
    }
}

/// Ends this rank if its launcher has ended, since no other process would end it.
fn exit_without_launcher() {
    if let Some(lost) = launcher().and_then(Rte::lost) {
        printable::eprintln!(
            "process {}: {lost}, so this rank ends too",
            std::process::id()
        );
        // SAFETY: `_exit` runs no exit handlers, so none can communicate with peers.
        unsafe { libc::_exit(1) }
    }
}

/// Finds the launcher and the node's ranks, and assembles an engine.
/// Also returns the lines of `--explain`, if requested.
fn create_engine() -> Result<(Engine, Option<Vec<String>>), Failure> {
    let params = Params::from_process(mpi_base::installation::prefix().as_deref());
    let opened =
        rte::open(&Env::of_this_process(), &params).map_err(at("the job cannot be found"))?;
    let rte = phase::set_launcher(opened.rte);
    let identity = rte.identity();
    let membership = rte
        .node_segment()
        .map_err(at("the memory of this node cannot be shared"))?;
    let node = (membership.place.join()).map_err(at("the memory of this node cannot be used"))?;
    let page = (node.state(node.rank())).map_err(at("the memory of this node cannot be used"))?;
    page.start(std::process::id(), identity.rank);
    let plugins = components::catalogue_in_sight(&params, Some(&*page));
    // Most jobs set no parameter. The check of the values is then skipped.
    if params.settings().next().is_some() {
        let known = frameworks::with(&plugins);
        frameworks::malformed(&params, &known).map_err(at("a parameter cannot be read"))?;
        frameworks::unknown_component(&params, &known).map_err(at("a component cannot be used"))?;
    }
    stdio::prepare(&params).map_err(at("a parameter cannot be read"))?;
    // Only one `pml` component exists, so this only checks that it is not deselected.
    pml::select::select(&params).map_err(at("messages cannot be carried"))?;
    memory_rights::give(&params, membership.local_ranks.len() > 1)
        .map_err(at("a parameter cannot be read"))?;
    let context = OpenContext {
        me: identity.rank,
        size: identity.size,
        node: Some((node.clone(), membership.local_ranks.clone())),
        params: &params,
        modex: Some(Arc::new(RteModex(rte))),
    };
    let mut transports = btl::open_all(&context).map_err(at("the transports cannot be opened"))?;
    transports.btls.extend(lanes::prepare(&params));
    if identity.rank == 0 {
        for warning in &transports.warnings {
            printable::eprintln!("rank 0: {warning}");
        }
    }
    if transports.fence {
        rte.fence()
            .map_err(at("the processes of the job cannot find each other"))?;
    }
    let explains = params
        .get(&explain::EXPLAIN)
        .map_err(at("a parameter cannot be read"))?;
    let warns = params
        .get(&TELL_MISSPELT)
        .map_err(at("a parameter cannot be read"))?;
    let explanation = (explains && identity.rank == 0).then(|| {
        let found = Findings {
            rte: rte.component(),
            rte_rejected: &opened.rejected,
            btl_refused: &transports.refused,
            plugins: &plugins,
        };
        explain::before_start(&params, &found)
    });
    let cores = Cores::of_this_process().with_sharers(membership.sharers);
    let sharing = cores.shared_by(membership.local_ranks.len());
    let sharing = u32::try_from(sharing.div_ceil(cores.usable)).unwrap_or(u32::MAX);
    let pml = Config::from_params(&params, sharing).map_err(at("a parameter cannot be read"))?;
    let unopened = transports.unopened();
    let parts = Parts {
        me: identity.rank,
        size: identity.size,
        job: identity.job.clone(),
        node,
        neighbours: membership.local_ranks,
        cores,
        confinement: Confinement::at_start(),
        btls: transports.btls,
        pml,
        params,
    };
    let engine = Engine::new(parts).map_err(at("the engine cannot start"))?;
    engine.pml().bml().set_unopened(unopened);
    engine
        .process()
        .serve_collectives_by(Box::new(Coll::of(components::coll(&plugins))));
    if warns && identity.rank == 0 {
        unknown_params::warn(engine.params(), &plugins);
    }
    *state().engines().plugins().borrow_mut() = Some(plugins);
    Ok((engine, explanation))
}

/// Finalizes the world model. Also leaves the job, unless a session is open.
pub fn finalize() -> Result<(), Failure> {
    if !phase::running() {
        return Err(state::not_running());
    }
    let engine = state::engine()?;
    unread_errors::warn(
        &state::this_rank(),
        engine
            .params()
            .get(&unread_errors::WARN_UNREAD_ERRORS)
            .unwrap_or(false),
    );
    // The attributes of MPI_COMM_SELF are deleted first, in reverse order (section 11.2.4).
    // So libraries can clean up while MPI still works.
    if let Ok(myself) = state::comm(MPI_COMM_SELF) {
        myself.owner().delete_all()?;
    }
    leak_report::print();
    // Buffered messages are sent before the process leaves.
    if engine.buffer().is_attached() {
        engine.buffer().flush(&engine)?;
    }
    lanes::drain(&engine);
    lanes::end_on_failure();
    if let Some(world) = engine.world() {
        // An internal fence instead of `MPI_Barrier`, because components count the barriers of the program.
        engine.block_on(world.agreement().fence_of_living())?;
    }
    // Frees completed requests without a handle, including failed ones.
    // In a job of one process, the fence has not polled for messages to the process itself.
    engine.poll_once();
    crate::registry::request::reap_orphans();
    unreceived::warn(&engine);
    leak_report::print_all(&engine);
    lanes::end();
    mpi_core::io::report::finish(&engine);
    if let Some(matrix) = engine.observer().and_then(RunObserver::matrix) {
        matrix.finish();
    }
    // Handles are closed after the fence,
    // when no other process uses device handles of this process.
    mpi_base::accelerator::close_all();
    phase::end();
    state::set_world_place(None);
    state().tables().world().take();
    state().tables().myself().take();
    engine.process().leave_world();
    park_if_unused()
}
