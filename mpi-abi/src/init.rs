//! The life of the process's MPI: from nothing to a job and back (sections 11.2 to 11.4).
//!
//! This is where the library is put together: the launcher says who we are, the node's memory and the transports make an
//! engine, the collective components join it, and the engine makes `MPI_COMM_WORLD`.
//!
//! The phase may be asked from any thread at any time, so it is atomic; it changes only inside a call.

use crate::abi::*;
use crate::components;
use crate::error::Failure;
use crate::explain::{self, Findings};
use crate::info;
use crate::object::comm::CommObject;
use crate::state::{self, state};
use mpi_base::cpu::Cores;
use mpi_base::node::Node;
use mpi_base::param::Params;
use mpi_core::Engine;
use mpi_core::btl::{self, Btl, Surroundings};
use mpi_core::engine::Parts;
use mpi_core::pml::ob1::Config;
use mpi_core::rte::{self, Env, Rte};
use std::ffi::c_int;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering::Relaxed};

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const AFTER: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(MPI_THREAD_SINGLE);
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);

/// The launcher; kept to the end of the process, because ending the job goes through it.
static LAUNCHER: OnceLock<Box<dyn Rte>> = OnceLock::new();

/// Whether initialization has happened, finalization included.
pub fn initialized() -> bool {
    PHASE.load(Relaxed) != BEFORE
}

pub fn finalized() -> bool {
    PHASE.load(Relaxed) == AFTER
}

/// The level of thread support that initialization chose.
pub fn thread_level() -> c_int {
    THREAD_LEVEL.load(Relaxed)
}

/// Whether the calling thread is the one that initialized.
pub fn is_main_thread() -> bool {
    MAIN_THREAD.load(Relaxed) == crate::lock::me()
}

/// The launcher, from initialization on.
pub fn launcher() -> Option<&'static dyn Rte> {
    LAUNCHER.get().map(|rte| &**rte)
}

/// The failure of a step of initialization.
fn at<E: Display>(step: &'static str) -> impl FnOnce(E) -> Failure {
    move |e| Failure::new(MPI_ERR_OTHER, format!("{step}: {e}"))
}

/// Joins the job.
pub fn initialize(required: c_int) -> Result<c_int, Failure> {
    match PHASE.load(Relaxed) {
        RUNNING => return Err(Failure::new(MPI_ERR_OTHER, "MPI is initialized already")),
        AFTER => {
            return Err(Failure::new(
                MPI_ERR_OTHER,
                "MPI has been finalized and cannot be initialized again",
            ));
        }
        _ => {}
    }
    let levels = [
        MPI_THREAD_SINGLE,
        MPI_THREAD_FUNNELED,
        MPI_THREAD_SERIALIZED,
        MPI_THREAD_MULTIPLE,
    ];
    // Every level can be had; what lies between two is served by the one above.
    let provided = levels
        .into_iter()
        .find(|l| *l >= required)
        .unwrap_or(MPI_THREAD_MULTIPLE);
    let (engine, explanation) = join()?;
    engine.set_watch(Some(end_without_launcher));
    engine.start().map_err(at("the job cannot start"))?;
    if let Some(lines) = explanation {
        explain::tell(&engine, lines);
    }
    if let Ok(page) = engine.node().state(engine.node().rank()) {
        // The page is told about to the end of the process, so it is never given back.
        let page: &'static _ = Box::leak(Box::new(page));
        state::tell_on(page);
    }
    let predefined = |comm, handle| Some(CommObject::predefined(comm, handle));
    *state().world.borrow_mut() = engine.world().and_then(|c| predefined(c, MPI_COMM_WORLD));
    *state().myself.borrow_mut() = engine.myself().and_then(|c| predefined(c, MPI_COMM_SELF));
    if provided == MPI_THREAD_MULTIPLE {
        engine.set_relax(Some(state::relax));
    }
    info::describe(engine.size(), level_name(provided));
    *state().engine.borrow_mut() = Some(engine);
    THREAD_LEVEL.store(provided, Relaxed);
    MAIN_THREAD.store(crate::lock::me(), Relaxed);
    PHASE.store(RUNNING, Relaxed);
    state::set_locking(provided == MPI_THREAD_MULTIPLE);
    Ok(provided)
}

fn level_name(level: c_int) -> &'static str {
    match level {
        MPI_THREAD_MULTIPLE => "MPI_THREAD_MULTIPLE",
        MPI_THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        MPI_THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        _ => "MPI_THREAD_SINGLE",
    }
}

/// Ends a rank whose launcher has gone: nobody would ever end it otherwise.
fn end_without_launcher() {
    if launcher().is_some_and(Rte::launcher_lost) {
        eprintln!(
            "process {}: the launcher has ended, so this rank ends too",
            std::process::id()
        );
        // SAFETY: ends the process; nothing is left to run, least of all handlers that might talk to peers.
        unsafe { libc::_exit(1) }
    }
}

/// Finds the launcher and the neighbours, and puts an engine together; also what there is to explain, if somebody asked.
fn join() -> Result<(Engine, Option<Vec<String>>), Failure> {
    let params = Params::from_process(crate::prefix().as_deref());
    let opened =
        rte::open(&Env::of_this_process(), &params).map_err(at("the job cannot be found"))?;
    let rte = LAUNCHER.get_or_init(|| opened.rte);
    let identity = rte.identity();
    let membership = rte
        .node_segment()
        .map_err(at("the memory of this node cannot be shared"))?;
    let node = Node::attach(membership.fd, membership.local_rank)
        .map_err(at("the memory of this node cannot be used"))?;
    let around = Surroundings {
        me: identity.rank,
        node: Some((node.clone(), membership.local_ranks.clone())),
        params: &params,
    };
    let transports = btl::open_all(&around).map_err(at("the transports cannot be opened"))?;
    let shared = |btl| -> Rc<dyn Btl> { Rc::from(btl as Box<dyn Btl>) };
    let plugins = components::catalogue(&params);
    let wanted = params
        .get(&explain::EXPLAIN)
        .map_err(at("a parameter cannot be read"))?;
    let explanation = (wanted && identity.rank == 0).then(|| {
        let found = Findings {
            rte: rte.component(),
            rte_rejected: &opened.rejected,
            btl_refused: &transports.refused,
            plugins: &plugins,
        };
        explain::before_start(&params, &found)
    });
    let roomy = membership.local_ranks.len() <= Cores::of_this_process().usable;
    let pml = Config::from_params(&params, roomy).map_err(at("a parameter cannot be read"))?;
    let parts = Parts {
        me: identity.rank,
        size: identity.size,
        node,
        neighbours: membership.local_ranks,
        btls: transports.btls.into_iter().map(shared).collect(),
        pml,
        coll: components::coll(&plugins),
        params,
    };
    let engine = Engine::new(parts).map_err(at("the engine cannot start"))?;
    Ok((engine, explanation))
}

/// Leaves the job.
pub fn finalize() -> Result<(), Failure> {
    let engine = state::engine()?;
    // Attributes of MPI_COMM_SELF go first, the last set first, so that libraries can clean up while MPI still works
    // (section 11.2.4).
    if let Ok(myself) = state::comm(MPI_COMM_SELF) {
        myself.owner().delete_all()?;
    }
    // Buffered messages leave before the process does.
    if engine.buffer().is_attached() {
        engine.buffer().flush(&engine)?;
    }
    if let Some(world) = engine.world() {
        // A fence of our own: the barriers that components serve and count are the program's.
        engine.block_on(world.fence())?;
    }
    PHASE.store(AFTER, Relaxed);
    state().world.take();
    state().myself.take();
    state().engine.take();
    engine.stop();
    match launcher() {
        Some(launcher) => launcher
            .finalize()
            .map_err(at("the launcher did not take our leave")),
        None => Ok(()),
    }
}

/// Ends the whole job with an exit code; the launcher is told why.
pub fn abort(code: c_int, why: &str) -> ! {
    match launcher() {
        Some(launcher) if !finalized() => launcher.abort(code, why),
        _ => std::process::exit(if code == 0 { 1 } else { code & 0xff }),
    }
}
