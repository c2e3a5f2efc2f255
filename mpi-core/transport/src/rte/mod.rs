//! RTE, the run-time environment: process identity, address exchange, and death notices.
//!
//! Each component supports one kind of launcher. The first one that finds its launcher is used, without configuration:
//! * `pmi1`: the PMI-1 wire protocol of this library's mpirun, Hydra, Slurm's `--mpi=pmi2`, gforker and Flux;
//! * `pmix`: libpmix, loaded at run time, for PRRTE, Open MPI's mpirun and Slurm's `--mpi=pmix`;
//! * `singleton`: for a process without a launcher; the process starts a launcher when it first spawns other processes.
//!   It returns an error if a launcher exists that offers no protocol to connect its processes,
//!   because N separate jobs of one process each (rank 0 of 1) would be worse than an error.
//!
//! Guarantees of every component:
//! * a value of [`Rte::put`] can be read unchanged with [`Rte::get`] by every process of the job after both have passed a [`Rte::fence`];
//! * all calls may block and are used only at startup, at shutdown and at the first contact with a peer,
//!   never for sending a message;
//! * the end of the launcher is detected ([`Rte::lost`]), so no rank continues without a launcher;
//! * if the job continues after deaths and the launcher reports them,
//!   each death is reported once ([`Rte::deaths`]);
//! * [`Rte::node_segment`] returns the same memory to all ranks of a node, for every launcher.
//!
//! The environment is read only through an [`Env`], so tests can simulate every launcher.
//! An [`Env`] describes how the launcher has started this process. Variables that name a file or code are read through [`mpi_base::environment`].

pub(crate) mod cards;
pub mod checkpoints;
pub mod deaths;
mod machine_names;
mod modex;
pub mod own_launcher;
mod pmi1;
mod pmix;
mod singleton;
mod spawn;
mod sys;
pub mod wire;

use mpi_base::environment;
use mpi_base::fdpass::PassError;
use mpi_base::node::{Claim, NodeError};
use mpi_base::param::{About, Param, ParamError, Params, Selection, SelectionError};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use wire::WireError;

pub(crate) use cards::{machine, unknown_machine};
pub use deaths::Death;
pub use machine_names::MachineNames;
pub use modex::RteModex;
#[cfg(any(test, feature = "testing"))]
pub use modex::TestModex;
pub use spawn::{FailedSpawn, SpawnRequest, SpawnedApp};
pub(crate) use sys::{remove_variable, set_variable};

/// The parameter that selects the permitted components.
pub static SELECT: Param<Selection> = Param::selection(
    "rte",
    "",
    "Run-time environments (launcher protocols) that may be used; empty: all that are found",
);

/// A component of the framework for run-time environments.
pub struct Component {
    pub name: &'static str,
    pub help: &'static str,
    pub params: &'static [&'static About],
    open: fn(&Env, &Params) -> Result<Offer, RteError>,
}

/// The result of a component's search for its launcher: the connection, or the reason why there is none.
enum Offer {
    Here(Box<dyn Rte>),
    NotHere(String),
}

/// All components, in the order in which they are tried.
pub static BUILT_IN: &[Component] = &[pmi1::COMPONENT, pmix::COMPONENT, singleton::COMPONENT];

/// The identity of this process within its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name of the job. It is unique among all present and past jobs of this machine.
    pub job: String,
    pub rank: u32,
    pub size: u32,
    /// The index of this process's program in the job, `MPI_APPNUM`.
    pub appnum: Option<u32>,
    /// The value of `MPI_UNIVERSE_SIZE`, if the launcher provides it.
    pub universe_size: Option<u32>,
    /// True if `MPI_Comm_spawn` started this job.
    pub spawned: bool,
}

/// The shared memory of this node, and this rank's position in that memory.
#[derive(Debug)]
pub struct NodeMembership {
    /// The claim of this rank on its part of the memory that `mpi_base::node::Node::create` has created.
    pub place: Claim,
    /// The job ranks of the node's processes, indexed by local rank.
    pub local_ranks: Vec<u32>,
    /// The number of local ranks that may run on this process's cores, if known; see [`mpi_base::cpu`].
    pub sharers: Option<usize>,
}

/// A loss that the launcher reports, or the loss of the launcher itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    Launcher,
    /// The process itself has closed its connection with the launcher.
    Closed,
    /// Another rank has died; `None` if the launcher does not report which rank.
    /// Only launchers that do not end the job themselves report deaths.
    Rank(Option<u32>),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Launcher => f.write_str("the launcher has ended"),
            Lost::Closed => f.write_str(
                "this process has closed its connection with the launcher (the descriptor PMI_FD)",
            ),
            Lost::Rank(Some(rank)) => write!(f, "rank {rank} has died"),
            Lost::Rank(None) => f.write_str("another rank has died"),
        }
    }
}

/// Returns `MPI_UNIVERSE_SIZE` under the mpirun of this library, for a job of `size` processes on hosts with `slots` slots.
///
/// If the job occupies all slots, mpirun places spawned processes as if no process were running, so `slots` more processes fit.
pub fn universe_of(slots: usize, size: usize) -> usize {
    match slots > size {
        true => slots,
        false => size + slots,
    }
}

/// The interface to the launcher, as one of its processes sees it.
pub trait Rte: Send + Sync {
    /// Returns the name of the component.
    fn component(&self) -> &'static str;

    /// Returns the identity of this process, which is constant.
    fn identity(&self) -> &Identity;

    /// Publishes `value` under `key` for the other processes of the job, which can read it after the next fence. Each key may be published once.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), RteError>;

    /// Waits until all processes of the job have called `fence`.
    fn fence(&self) -> Result<(), RteError>;

    /// Returns the value that `rank` has published under `key`.
    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, RteError>;

    /// Returns the shared memory of this node. All processes of the job must call it, exactly once.
    fn node_segment(&self) -> Result<NodeMembership, RteError>;

    /// Returns the loss that prevents this process from continuing, if one occurred before `finalize`; otherwise `None`.
    fn lost(&self) -> Option<Lost>;

    /// Returns the deaths since the last call, in the order in which the launcher reported them.
    ///
    /// Does not wait. If the launcher reports deaths, the call costs a system call,
    /// so waiting threads call this function, and the polling loop does not.
    fn deaths(&self) -> Vec<Death> {
        Vec::new()
    }

    /// Returns true if the launcher coordinates checkpoints with its processes.
    fn takes_checkpoints(&self) -> bool {
        false
    }

    /// Returns the notices about checkpoints since the last call, in order.
    /// Does not wait. The call costs a system call, like [`Rte::deaths`].
    fn checkpoint_notices(&self) -> Vec<checkpoints::Notice> {
        Vec::new()
    }

    /// Sends a report about a checkpoint to the launcher.
    fn tell_checkpoint(&self, _report: &checkpoints::Report) {}

    /// Publishes a port name under a service name (MPI 5.0, section 11.9.4).
    fn publish(&self, _service: &str, _port: &str) -> Result<(), RteError> {
        Err(self.lacks("place where names are published"))
    }

    /// Returns the port that was published under a service name; `None` if there is none.
    fn lookup(&self, _service: &str) -> Result<Option<String>, RteError> {
        Err(self.lacks("place where names are published"))
    }

    /// Withdraws a service name. Returns false if it is not published.
    fn unpublish(&self, _service: &str) -> Result<bool, RteError> {
        Err(self.lacks("place where names are published"))
    }

    /// Starts a child job. Either all its processes are started, or none.
    fn spawn(&self, request: &SpawnRequest) -> Result<(), RteError> {
        self.spawn_job(request).map(drop)
    }

    /// Starts a child job like [`Rte::spawn`]. Returns the name of the new job ([`Identity::job`] of its processes) if the launcher reports it.
    fn spawn_job(&self, _request: &SpawnRequest) -> Result<Option<String>, RteError> {
        Err(self.lacks("way to start processes while a job runs"))
    }

    /// Returns the jobs that failed to start after [`Rte::spawn_job`] had returned, with the reasons.
    /// Each job is returned once.
    /// Does not wait.
    fn failed_spawns(&self) -> Vec<FailedSpawn> {
        Vec::new()
    }

    /// Reports to the launcher the other jobs to which this process is connected, by their [numbers](crate::universe::job_number).
    /// The launcher ends connected jobs together.
    fn tell_connections(&self, _jobs: &[u64]) {}

    /// Returns the value that the parent job has stored for this job under a key ([`SpawnRequest::left`]).
    fn left_by_parent(&self, _key: &str) -> Option<String> {
        None
    }

    /// Returns the error for a service that this launcher does not support.
    fn lacks(&self, what: &'static str) -> RteError {
        RteError::Lacks {
            component: self.component(),
            what,
        }
    }

    /// Unregisters from the launcher. Afterwards this process may end with any exit code.
    fn finalize(&self) -> Result<(), RteError>;

    /// Ends the whole job, and in any case this process.
    fn abort(&self, code: i32, message: &str) -> !;
}

/// The environment variables from which a component recognises its launcher.
#[derive(Clone, Debug, Default)]
pub struct Env {
    values: HashMap<String, OsString>,
}

impl Env {
    /// Copies the environment of this process, so later changes by the program have no effect.
    pub fn of_this_process() -> Env {
        environment::of_launch().collect()
    }

    /// Returns the value of a variable; `None` if it is not set or not valid UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(|value| value.to_str())
    }

    /// Returns true if a variable is set, even if it is empty or not UTF-8.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns a copy without the named variables.
    fn without(&self, names: &[&str]) -> Env {
        let mut values = self.values.clone();
        values.retain(|name, _| !names.contains(&name.as_str()));
        Env { values }
    }

    /// Returns the value of a variable. Returns an error if the variable is set but is not a whole number.
    pub fn number(&self, name: &str) -> Result<Option<u32>, RteError> {
        let Some(value) = self.values.get(name) else {
            return Ok(None);
        };
        match value.to_str().and_then(|text| text.trim().parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(RteError::Environment {
                name: name.into(),
                value: value.to_string_lossy().into_owned(),
            }),
        }
    }
}

impl FromIterator<(OsString, OsString)> for Env {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(pairs: I) -> Env {
        Env {
            values: pairs
                .into_iter()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
        }
    }
}

/// Returns true if a variable is set that launchers set for their processes. Then a launcher has started this process or an ancestor.
///
/// The test is fast, for code that runs before initialization.
/// A true result does not imply that a component is available.
pub fn is_launched() -> bool {
    ["PMI_FD", "PMI_PORT", "PMIX_RANK"]
        .iter()
        .any(mpi_base::environment::is_set)
}

/// The component in use, and the reasons why components before it were rejected.
pub struct Opened {
    pub rte: Box<dyn Rte>,
    /// Components that were tried before the used one, each with the reason for its rejection.
    pub rejected: Vec<(&'static str, String)>,
}

/// Opens the first component that finds its launcher.
pub fn open(env: &Env, params: &Params) -> Result<Opened, RteError> {
    let selection = params.get(&SELECT).map_err(RteError::Param)?;
    let known: Vec<&str> = BUILT_IN.iter().map(|component| component.name).collect();
    selection
        .check("rte", &known)
        .map_err(RteError::Selection)?;
    let mut rejected = Vec::new();
    for component in BUILT_IN {
        if !selection.allows(component.name) {
            rejected.push((component.name, "it is not selected".to_string()));
            continue;
        }
        match (component.open)(env, params)? {
            Offer::Here(rte) => return Ok(Opened { rte, rejected }),
            Offer::NotHere(reason) => rejected.push((component.name, reason)),
        }
    }
    Err(RteError::NoLauncher { rejected })
}

/// The reason why no launcher was found, or why a request to the launcher failed.
#[derive(Debug)]
pub enum RteError {
    /// The launcher has set a variable to an invalid value.
    Environment {
        name: String,
        value: String,
    },
    /// Another process has already registered as this rank.
    Taken {
        rank: u32,
        size: u32,
        pid: u32,
        /// The program of the process that is registered as this rank.
        program: String,
    },
    /// mpirun has started this process, and the descriptor of its socket is not open.
    Closed {
        number: i32,
        rank: u32,
        size: u32,
    },
    /// An earlier program of this rank has ended, and this process cannot be the rank's next program.
    NotNext {
        rank: u32,
        size: u32,
        why: String,
    },
    /// A launcher has started several processes but offers no protocol to connect them.
    NoWireUp {
        launcher: &'static str,
        size: u32,
        advice: &'static str,
    },
    /// No selected component found its launcher.
    NoLauncher {
        rejected: Vec<(&'static str, String)>,
    },
    /// The launcher has closed the connection.
    LauncherLost {
        doing: String,
    },
    /// The launcher sent an invalid message or refused the request.
    Wire {
        doing: String,
        reason: WireError,
    },
    /// A PMIx launcher has started this process, but libpmix cannot be loaded.
    NoPmix {
        namespace: String,
        rank: u32,
        reasons: Vec<String>,
    },
    /// A PMIx launcher has started this process, but the program has raised privileges (set-user-ID), so libpmix is not loaded.
    Raised {
        namespace: String,
        rank: u32,
    },
    /// The PMIx launcher reports no job size, or a size that is too small for this rank.
    NoSize {
        namespace: String,
        rank: u32,
        size: Option<u32>,
    },
    /// A function of libpmix failed.
    Pmix {
        doing: String,
        words: String,
        status: i32,
    },
    System {
        doing: String,
        error: io::Error,
    },
    NoSuchKey {
        key: String,
        rank: u32,
    },
    /// The launcher has not started the requested processes.
    NotStarted {
        why: String,
    },
    /// The launcher does not support this service.
    Lacks {
        component: &'static str,
        what: &'static str,
    },
    /// The launcher's protocol cannot transfer this key.
    BadKey {
        key: String,
    },
    /// A received value does not have the format that [`Rte::put`] writes.
    Garbled {
        key: String,
        rank: u32,
    },
    Param(ParamError),
    Selection(SelectionError),
    Node(NodeError),
    Pass(PassError),
}

impl fmt::Display for RteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RteError::Environment { name, value } => write!(
                f,
                "the launcher set {name}=\"{value}\", which is not a whole number"
            ),
            RteError::Taken {
                rank,
                size,
                pid,
                program,
            } => {
                write!(
                    f,
                    "rank {rank} of {size} is process {pid} ({program}), and this process has inherited the same place from the process that started it; \
                     an MPI program that a rank starts is started by env -u PMI_FD PROGRAM to be a job of one rank, or by mpirun or MPI_Comm_spawn"
                )
            }
            RteError::Closed { number, rank, size } => write!(
                f,
                "this process is rank {rank} of {size}, and its connection with mpirun, the descriptor {number} (PMI_FD), is not open; \
                 a program must not close descriptors that it has inherited before it calls MPI_Init"
            ),
            RteError::NotNext { rank, size, why } => write!(
                f,
                "rank {rank} of {size} has run a program that calls MPI_Init before, and this process cannot be its next one: {why}; \
                 start each program by an mpirun of its own: instead of a script with both, mpirun -n {size} FIRST; mpirun -n {size} SECOND"
            ),
            RteError::NoWireUp {
                launcher,
                size,
                advice,
            } => write!(
                f,
                "this is one of {size} processes that {launcher} started without a way to find each other; {advice}"
            ),
            RteError::NoLauncher { rejected } => {
                write!(f, "no selected run-time environment is there")?;
                for (name, reason) in rejected {
                    write!(f, "; {name}: {reason}")?;
                }
                Ok(())
            }
            RteError::LauncherLost { doing } => {
                write!(
                    f,
                    "the connection to the launcher was closed (while {doing})"
                )
            }
            RteError::Wire { doing, reason } => {
                write!(f, "{doing} failed at the launcher: {reason}")
            }
            RteError::NoPmix {
                namespace,
                rank,
                reasons,
            } => write!(
                f,
                "this is rank {rank} of the job {namespace}, which was started by way of PMIx, and its library cannot be loaded ({}); install libpmix (Debian: libpmix2) or name its file by rte_pmix_library",
                reasons.join("; ")
            ),
            RteError::Raised { namespace, rank } => write!(
                f,
                "this is rank {rank} of the job {namespace}, which was started by way of PMIx; its program has more rights than its user (set-user-ID or the like), and libpmix would load what the user's environment names; start it with the mpirun of this library"
            ),
            RteError::NoSize {
                namespace,
                rank,
                size,
            } => match size {
                Some(size) => write!(
                    f,
                    "the launcher says that this is rank {rank} of the {size} of the job {namespace}"
                ),
                None => write!(
                    f,
                    "the launcher does not say how many ranks the job {namespace} has"
                ),
            },
            RteError::Pmix {
                doing,
                words,
                status,
            } => write!(f, "{doing} failed: {words} ({status})"),
            RteError::System { doing, error } => write!(f, "{doing} failed: {error}"),
            RteError::NoSuchKey { key, rank } => {
                write!(f, "rank {rank} has not made \"{key}\" known")
            }
            RteError::NotStarted { why } => {
                write!(f, "the launcher has not started the processes: {why}")
            }
            RteError::Lacks { component, what } => {
                let launcher = match *component {
                    "singleton" => "this process was started without a launcher, which",
                    "pmix" => "the launcher, which speaks PMIx,",
                    _ => "the launcher",
                };
                write!(
                    f,
                    "{launcher} offers no {what}; start the program with the mpirun of this library"
                )
            }
            RteError::BadKey { key } => write!(
                f,
                "\"{key}\" is not a key for the launcher: it is too long or has other characters than letters, digits, \"_\", \"-\" and \".\""
            ),
            RteError::Garbled { key, rank } => {
                write!(
                    f,
                    "what rank {rank} made known as \"{key}\" came back garbled"
                )
            }
            RteError::Param(error) => error.fmt(f),
            RteError::Selection(error) => error.fmt(f),
            RteError::Node(error) => error.fmt(f),
            RteError::Pass(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RteError {}

#[cfg(test)]
mod tests;
