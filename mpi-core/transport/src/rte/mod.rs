//! RTE, the run-time environment: which process we are, how we find each other, which processes died.
//!
//! A component speaks to one kind of launcher; the first that finds its launcher serves, without configuration:
//! * [`pmi1`]: the PMI-1 wire protocol, which our mpirun, Hydra, Slurm's `--mpi=pmi2`, gforker and Flux speak;
//! * [`pmix`]: libpmix, loaded at run time, for PRRTE, Open MPI's mpirun and Slurm's `--mpi=pmix`;
//! * `singleton`: no launcher has started us, and one is started when we first spawn; it refuses where one has and gave us no way to speak to it,
//!   because N processes that each believe to be alone are worse than an error.
//!
//! Promises of every component:
//! * [`Rte::put`] values can be [`Rte::get`] by every process of the job after both have passed a [`Rte::fence`], bytes for bytes;
//! * everything blocks and is meant for start, end, and first contacts; nothing here is on a message's way;
//! * a launcher that is lost is noticed ([`Rte::lost`]), so that no rank stays behind as an orphan;
//! * where a job survives deaths, each is told once, if the launcher tells of them at all ([`Rte::deaths`]);
//! * [`Rte::node_segment`] gives all ranks of a node the same memory, whichever launcher started them.
//!
//! Nothing is read from the process but through an [`Env`], so that tests can play every launcher.
//! An [`Env`] says how the launcher started this process; what names a file or code comes from [`mpi_base::environment`].

mod board;
mod cards;
pub mod deaths;
mod machine_names;
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

pub use board::Board;
#[cfg(any(test, feature = "testing"))]
pub use board::SharedBoard;
pub(crate) use cards::{machine, unknown_machine};
pub use deaths::Death;
pub use machine_names::MachineNames;
pub use spawn::{FailedSpawn, SpawnRequest, SpawnedApp};

/// Which components may serve.
pub static SELECT: Param<Selection> = Param::selection(
    "rte",
    "",
    "The run-time environments to look for; by default all that are there.",
);

/// A component of this framework.
pub struct Component {
    pub name: &'static str,
    pub help: &'static str,
    pub params: &'static [&'static About],
    open: fn(&Env, &Params) -> Result<Offer, RteError>,
}

/// What a component finds when it looks for its launcher.
enum Offer {
    Here(Box<dyn Rte>),
    NotHere(String),
}

/// All components, in the order in which they are asked.
pub static BUILT_IN: &[Component] = &[pmi1::COMPONENT, pmix::COMPONENT, singleton::COMPONENT];

/// Which process of which job we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A name that no other job of this machine has, now or before.
    pub job: String,
    pub rank: u32,
    pub size: u32,
    /// The number of our program among those of the job, `MPI_APPNUM`.
    pub appnum: Option<u32>,
    /// `MPI_UNIVERSE_SIZE`.
    pub universe_size: Option<u32>,
    /// Whether `MPI_Comm_spawn` started this job.
    pub spawned: bool,
}

/// The memory we share with the ranks of our node.
#[derive(Debug)]
pub struct NodeMembership {
    /// Our place in the memory, which `mpi_base::node::Node::create` has made.
    pub place: Claim,
    /// Job ranks in the order of local ranks.
    pub local_ranks: Vec<u32>,
    /// How many of them may run on our cores, if that was found out; see [`mpi_base::cpu`].
    pub sharers: Option<usize>,
}

/// What a launcher's processes can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    Launcher,
    /// Another rank, if the launcher says which; told by launchers that do not end the job themselves.
    Rank(Option<u32>),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Launcher => f.write_str("the launcher has ended"),
            Lost::Rank(Some(rank)) => write!(f, "rank {rank} has died"),
            Lost::Rank(None) => f.write_str("another rank has died"),
        }
    }
}

/// `MPI_UNIVERSE_SIZE` under our mpirun: how many processes there is room for, if a job of `size` processes has begun where there are `slots`.
///
/// Where the job has taken all slots, what it spawns is placed as if nothing ran, so there is room for as many again.
pub fn room(slots: usize, size: usize) -> usize {
    match slots > size {
        true => slots,
        false => size + slots,
    }
}

/// A launcher as its processes see it.
pub trait Rte: Send + Sync {
    /// The name of the component.
    fn component(&self) -> &'static str;

    /// Which process this is in its job; it never changes.
    fn identity(&self) -> &Identity;

    /// Makes bytes known to the other processes of the job after the next fence; a key is put once.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), RteError>;

    /// Waits until all processes of the job have come here.
    fn fence(&self) -> Result<(), RteError>;

    /// What `rank` has put under `key`.
    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, RteError>;

    /// The memory of our node; collective over the job, called once.
    fn node_segment(&self) -> Result<NodeMembership, RteError>;

    /// What has gone away that this process cannot go on without, before we were done with it.
    fn lost(&self) -> Option<Lost>;

    /// The deaths that this process has been told of and that no earlier call has returned, in the order in which they were told.
    ///
    /// It never waits, and costs a system call where the launcher tells of deaths, so it is for naps and not for polls.
    fn deaths(&self) -> Vec<Death> {
        Vec::new()
    }

    /// Makes the name of a port known under the name of a service (MPI 5.0, section 11.9.4).
    fn publish(&self, _service: &str, _port: &str) -> Result<(), RteError> {
        Err(self.lacks("place where names are published"))
    }

    /// The port that was published for a service.
    fn lookup(&self, _service: &str) -> Result<Option<String>, RteError> {
        Err(self.lacks("place where names are published"))
    }

    /// Takes a name back; false if there is none.
    fn unpublish(&self, _service: &str) -> Result<bool, RteError> {
        Err(self.lacks("place where names are published"))
    }

    /// Starts a job whose parent is this one, all of it or nothing.
    fn spawn(&self, request: &SpawnRequest) -> Result<(), RteError> {
        self.spawn_job(request).map(drop)
    }

    /// The same; the result is the name of the new job ([`Identity::job`] of its processes), where the launcher says it.
    fn spawn_job(&self, _request: &SpawnRequest) -> Result<Option<String>, RteError> {
        Err(self.lacks("way to start processes while a job runs"))
    }

    /// The jobs of which this process was told, since the last call, that they have not come about after [`Rte::spawn_job`] had returned:
    /// their names, and why. It never waits.
    fn failed_spawns(&self) -> Vec<FailedSpawn> {
        Vec::new()
    }

    /// Makes known with which other jobs this process is connected, by their [numbers](crate::universe::job_number):
    /// the launcher ends those that are connected together.
    fn tell_connections(&self, _jobs: &[u64]) {}

    /// What the parent has left for this job under a key ([`SpawnRequest::left`]).
    fn left_by_parent(&self, _key: &str) -> Option<String> {
        None
    }

    /// The error of something that this launcher does not have.
    fn lacks(&self, what: &'static str) -> RteError {
        RteError::Lacks {
            component: self.component(),
            what,
        }
    }

    /// Says good-bye: from now on this process may end with any exit code.
    fn finalize(&self) -> Result<(), RteError>;

    /// Ends the whole job, and this process in any case.
    fn abort(&self, code: i32, message: &str) -> !;
}

/// The environment variables a component may look at.
#[derive(Clone, Debug, Default)]
pub struct Env {
    values: HashMap<String, OsString>,
}

impl Env {
    /// A copy, so that later changes of the program are not seen.
    pub fn of_this_process() -> Env {
        environment::of_launch().collect()
    }

    /// The value of a variable, if it is set and is text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(|value| value.to_str())
    }

    /// Whether it is set, be it empty or no text.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of a variable that, if it is set, must be a whole number.
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

/// Whether a launcher has started this process or one that it descends from, by the variables that launchers set.
///
/// Cheap, and no promise that a component will serve; for code that runs before initialization.
pub fn is_launched() -> bool {
    ["PMI_FD", "PMI_PORT", "PMIX_RANK"]
        .iter()
        .any(mpi_base::environment::is_set)
}

/// The component that serves, and why others do not.
pub struct Opened {
    pub rte: Box<dyn Rte>,
    /// Components that were asked before, each with its reason.
    pub rejected: Vec<(&'static str, String)>,
}

/// Looks for the launcher.
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

/// Why a launcher could not be found or did not do what was asked.
#[derive(Debug)]
pub enum RteError {
    /// A variable that the launcher sets and that makes no sense.
    Environment {
        name: String,
        value: String,
    },
    /// Another process has registered as this rank before.
    Taken {
        rank: u32,
        size: u32,
        pid: u32,
        /// Its program, while it lives.
        program: Option<String>,
    },
    /// A launcher started several of us and gave us no way to speak to it.
    NoWireUp {
        launcher: &'static str,
        size: u32,
        advice: &'static str,
    },
    /// No selected component found its launcher.
    NoLauncher {
        rejected: Vec<(&'static str, String)>,
    },
    /// The launcher's end of the connection has closed.
    LauncherLost {
        doing: String,
    },
    /// The launcher said something that it must not, or no.
    Wire {
        doing: String,
        reason: WireError,
    },
    /// A PMIx launcher has started us, and its library cannot be loaded.
    NoPmix {
        namespace: String,
        rank: u32,
        reasons: Vec<String>,
    },
    /// A PMIx launcher has started us, and this program has more rights than its user.
    Raised {
        namespace: String,
        rank: u32,
    },
    /// A PMIx launcher that does not say how many we are, or fewer than our rank needs.
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
    /// The launcher has not started the processes that were asked for.
    NotStarted {
        why: String,
    },
    /// Something that this launcher does not have.
    Lacks {
        component: &'static str,
        what: &'static str,
    },
    /// A key the protocol cannot carry.
    BadKey {
        key: String,
    },
    /// A value that came back is not what [`Rte::put`] sends.
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
                let first = match program {
                    Some(program) => format!("is process {pid} ({program})"),
                    None => format!("was process {pid}, which has ended"),
                };
                write!(
                    f,
                    "rank {rank} of {size} {first}, and this process has inherited the same place from the process that started it; \
                     an MPI program that a rank starts is started by env -u PMI_FD PROGRAM to be a job of its own, or by mpirun or MPI_Comm_spawn"
                )
            }
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
                write!(f, "the launcher has gone away (while {doing})")
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
