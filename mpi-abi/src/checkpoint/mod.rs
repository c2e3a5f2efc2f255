//! Checkpoints in this process: the program's callbacks and regions, and the launcher's requests.
//!
//! | file | subject |
//! |---|---|
//! | `quiet` | the check for active operations and messages in transit |
//! | `regions` | memory that the library saves for the program |
//!
//! Without `mpirun --checkpoint-dir` and `--restart`, `MPIX_Checkpoint_point` is one comparison.
//! Calls of `MPIX_Checkpoint_point` (checkpoint points) read the launcher's notices,
//! at most once per [`PERIOD_NS`].
//! Notices are also read before the sleeps of long waits.
#![allow(unsafe_code)]

mod quiet;
mod regions;

use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::phase::launcher;
use crate::thrown::guarded;
use mpi_base::clock::now_ns;
use mpi_base::text;
use mpi_core::Engine;
use mpi_core::comm::Comm;
use mpi_core::crs::points::{Points, Step};
use mpi_core::crs::self_::{self, DIR, JOB, KEEP, RESTART, Taken};
use mpi_core::crs::store::{Store, rank_folder};
use mpi_core::datatype::RecvBuf;
use mpi_core::group::Comparison;
use mpi_core::rte::Rte;
use mpi_core::rte::checkpoints::Report;
use regions::Regions;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Minimum time between two reads of the launcher's notices at checkpoint points, in nanoseconds.
const PERIOD_NS: u64 = 1_000_000;

/// The sleep between two polls of a rank that waits at a checkpoint point.
const PAUSE: Duration = Duration::from_micros(300);

/// The program's callbacks that save and load its state (`MPIX_Checkpoint_handlers`).
#[derive(Clone, Copy)]
pub struct Handlers {
    pub save: Option<MPIX_Checkpoint_function>,
    pub load: Option<MPIX_Checkpoint_function>,
    pub extra_state: *mut c_void,
}

/// The checkpoint state of this process.
#[derive(Default)]
pub struct Checkpoints {
    points: Cell<Points>,
    handlers: Cell<Option<Handlers>>,
    regions: Regions,
    /// The checkpoint folder, locked and owned by rank 0.
    store: RefCell<Option<Store>>,
    /// True after the job's checkpoint has been loaded.
    is_restored: Cell<bool>,
    heard_ns: Cell<u64>,
    /// The function that polls the launcher for dead ranks and for the launcher's own end.
    poll: Cell<Option<fn()>>,
}

/// Returns the checkpoint state of this process.
pub fn of(engine: &Engine) -> &Checkpoints {
    engine.extension_of_type()
}

impl Checkpoints {
    /// Sets the callbacks that save and load the program's state.
    pub fn set_handlers(&self, handlers: Handlers) {
        self.handlers.set(Some(handlers));
    }

    /// Registers memory that the library saves under the number `id`. `None` removes the region.
    pub fn protect(&self, id: c_int, memory: Option<RecvBuf>) {
        self.regions.set(id, memory);
    }

    /// Sets the function with which a waiting rank polls the launcher.
    pub fn set_poll(&self, poll: fn()) {
        self.poll.set(Some(poll));
    }

    /// Reads the launcher's notices about checkpoints and answers them.
    fn hear(&self, launcher: &dyn Rte) {
        self.heard_ns.set(now_ns());
        for notice in launcher.checkpoint_notices() {
            let mut points = self.points.get();
            let report = points.note(notice);
            self.points.set(points);
            if let Some(report) = report {
                launcher.tell_checkpoint(&report);
            }
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut Points) -> R) -> R {
        let mut points = self.points.get();
        let result = change(&mut points);
        self.points.set(points);
        result
    }

    /// Writes the checkpoint files of this rank.
    fn save(&self, folder: &Path, rank: u32) -> Result<(), String> {
        let saved = self.regions.save(folder);
        saved.map_err(|error| {
            let folder = printable::name(folder);
            format!("rank {rank} cannot write its protected memory to {folder}: {error}")
        })?;
        match self.handlers.get() {
            Some(handlers) => handlers.call(handlers.save, folder, "save", rank),
            None => Ok(()),
        }
    }

    /// Reads the checkpoint files of this rank.
    fn load(&self, folder: &Path, rank: u32) -> Result<(), String> {
        self.regions.load(folder)?;
        match self.handlers.get() {
            Some(handlers) => handlers.call(handlers.load, folder, "load", rank),
            None => Ok(()),
        }
    }
}

impl Handlers {
    fn call(
        &self,
        function: Option<MPIX_Checkpoint_function>,
        folder: &Path,
        what: &str,
        rank: u32,
    ) -> Result<(), String> {
        let Some(function) = function else {
            return Ok(());
        };
        let shown = printable::name(folder);
        let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else {
            return Err(format!("the folder {shown} has a zero byte in its name"));
        };
        let (path, extra_state) = (path.as_ptr(), self.extra_state);
        // SAFETY: the program registered this callback with this argument.
        // The path is a C string that outlives the call.
        let code = guarded(1, || unsafe { function(path, extra_state) });
        match code {
            0 => Ok(()),
            code => Err(format!(
                "the {what} function of rank {rank} has returned {code} for the folder {shown}"
            )),
        }
    }
}

/// Reads the launcher's notices during a long wait.
pub fn hear_in_wait(engine: &Engine, launcher: &dyn Rte) {
    if launcher.takes_checkpoints() {
        of(engine).hear(launcher);
    }
}

/// Returns an error unless the communicator has the members of the job in rank order.
pub fn check_members(comm: &Comm) -> Outcome {
    let world = comm.engine().world();
    let alike = world.as_ref().map(|world| comm.compare(world));
    match alike {
        Some(Comparison::Identical | Comparison::Congruent) => Ok(()),
        _ => Err(Failure::new(
            MPI_ERR_COMM,
            format!(
                "{} is not a communicator of all ranks of the job in the order of MPI_COMM_WORLD, and checkpoints are of the whole job",
                comm.label()
            ),
        )),
    }
}

/// Returns the folder of the checkpoint from which this job restarts.
fn origin(engine: &Engine) -> Result<Option<PathBuf>, Failure> {
    let set = engine.params().get(&RESTART);
    let set = set.map_err(unreadable)?;
    Ok(Some(set).filter(|set| !set.as_os_str().is_empty()))
}

#[cold]
fn unreadable(error: mpi_base::param::ParamError) -> Failure {
    Failure::new(
        MPI_ERR_OTHER,
        format!("a parameter cannot be read: {error}"),
    )
}

/// Returns this rank's folder in the checkpoint from which the job restarts.
pub fn own_folder(engine: &Engine) -> Result<Option<PathBuf>, Failure> {
    Ok(origin(engine)?.map(|set| rank_folder(&set, engine.me())))
}

/// Implements `MPIX_Checkpoint_point`, and returns what it did (`MPIX_CHECKPOINT_NONE`, ...).
pub fn point(comm: &Comm) -> Result<c_int, Failure> {
    let engine = comm.engine();
    let checkpoints = of(engine);
    let served = launcher().filter(|launcher| launcher.takes_checkpoints());
    if !checkpoints.is_restored.replace(true)
        && let Some(set) = origin(engine)?
    {
        check_members(comm)?;
        self_::restore(comm, &set, |folder| checkpoints.load(folder, comm.rank()))?;
        return Ok(MPIX_CHECKPOINT_RESTORED);
    }
    let Some(launcher) = served else {
        return Ok(MPIX_CHECKPOINT_NONE);
    };
    check_members(comm)?;
    checkpoints.change(Points::enter);
    let done = stay(comm, checkpoints, launcher);
    checkpoints.change(Points::leave);
    done
}

/// Waits in a checkpoint point while the launcher requires it, and takes the checkpoint.
fn stay(comm: &Comm, checkpoints: &Checkpoints, launcher: &dyn Rte) -> Result<c_int, Failure> {
    let engine = comm.engine();
    if now_ns().saturating_sub(checkpoints.heard_ns.get()) >= PERIOD_NS {
        checkpoints.hear(launcher);
    }
    loop {
        match checkpoints.change(Points::step) {
            Step::Pass => return Ok(MPIX_CHECKPOINT_NONE),
            Step::Take { round, stop } => return take(comm, checkpoints, launcher, (round, stop)),
            Step::Hold => {
                // Other ranks may need the progress of this rank before they arrive.
                engine.poll_once();
                engine.waiting().let_threads_in();
                std::thread::sleep(PAUSE);
                checkpoints.hear(launcher);
                if let Some(poll) = checkpoints.poll.get() {
                    poll();
                }
            }
        }
    }
}

fn take(
    comm: &Comm,
    checkpoints: &Checkpoints,
    launcher: &dyn Rte,
    (round, stop): (u64, bool),
) -> Result<c_int, Failure> {
    let engine = comm.engine();
    let params = engine.params();
    let dir = params.get(&DIR).map_err(unreadable)?;
    let programs = params.get(&JOB).map_err(unreadable)?;
    let job = self_::Job {
        comm,
        point: checkpoints.points.get().entered(),
        dir: &dir,
        keep: params.get(&KEEP).map_err(unreadable)? as usize,
        programs: &programs,
        host: text::to_os(&crate::host::host_name()),
    };
    // The program's callbacks may call MPI, so the store is not borrowed while they run.
    let mut store = checkpoints.store.take();
    let rank = comm.rank();
    let taken = self_::take(
        &job,
        &mut store,
        || quiet::check(comm),
        |folder| checkpoints.save(folder, rank),
    );
    checkpoints.store.replace(store);
    let (report, done) = match taken? {
        Taken::Committed { number, bytes } => {
            let report = Report::Taken {
                round,
                number,
                bytes,
            };
            let done = match stop {
                true => MPIX_CHECKPOINT_STOP,
                false => MPIX_CHECKPOINT_TAKEN,
            };
            (report, done)
        }
        Taken::Dropped { why } => (Report::NotTaken { round, why }, MPIX_CHECKPOINT_FAILED),
    };
    if rank == 0 {
        launcher.tell_checkpoint(&report);
    }
    Ok(done)
}
