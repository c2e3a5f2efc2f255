//! `pmix`: the component for the launchers PRRTE, Open MPI's mpirun and Slurm's `--mpi=pmix`, through libpmix.
//!
//! The launcher is found through `PMIX_NAMESPACE` and `PMIX_RANK`.
//! libpmix is loaded only if these are set ([`library`], [`abi`]).
//! Every program uses nine functions of libpmix, which exist in all versions since 3.1.
//! Programs with dynamic processes use four more functions ([`spawn`], [`names`]).
//!
//! A child process of a rank also inherits these variables, and the server would treat the child as the rank.
//! So a rank records its process ID in the environment ([`RANK`]),
//! and a child recognises by this ID that it is not the rank.
//!
//! This component requests from the server only the rank, the job size,
//! the index of the program and the universe size,
//! because every tested server provides these values.
//! The ranks of a node are found by cards ([`super::cards`]).
//! Keys have a prefix of this library.
//! The next fence commits the values and collects those of all ranks,
//! so later lookups need no communication between nodes.
//!
//! A thread of libpmix receives the end of the launcher as an event, and also the death of a rank
//! if the launcher lets the job continue.
//! The event handler records these events,
//! and waiting threads poll the record periodically ([`Rte::lost`]).

mod abi;
mod library;
mod names;
mod spawn;

use super::{
    Component, Env, Identity, Lost, NodeMembership, Offer, Rte, RteError, SpawnRequest, cards, sys,
};
use abi::{Proc, Status};
use library::{Found, Library};
use mpi_base::atomic::{AtomicBool, Ordering};
use mpi_base::param::{Level, Param, Params};
use mpi_base::{environment, text};
use std::ffi::CString;
use std::path::PathBuf;
use std::time::Duration;

static LIBRARY: Param<PathBuf> = Param::new(
    "rte",
    "pmix",
    "library",
    "",
    Level::USER,
    "Path of the libpmix to load; empty: the launcher's, else the system's",
);

static MEET: Param<Duration> = cards::patience("pmix");

pub const COMPONENT: Component = Component {
    name: "pmix",
    help: "PMIx, by the launcher's libpmix: PRRTE, Open MPI's mpirun, Slurm's --mpi=pmix.",
    params: &[LIBRARY.about(), MEET.about()],
    open,
};

/// The environment variable by which child processes of a rank recognise that they are not the rank: namespace, rank and process ID of the rank.
pub(super) const RANK: &str = "PORTCULLIS_PMIX_RANK";

/// Prefix of this library's keys, which distinguishes them from those of other libraries.
const PREFIX: &str = "portcullis.";

fn open(env: &Env, params: &Params) -> Result<Offer, RteError> {
    let (Some(namespace), Some(rank)) = (env.get("PMIX_NAMESPACE"), env.number("PMIX_RANK")?)
    else {
        return Ok(Offer::NotHere(
            "PMIX_NAMESPACE and PMIX_RANK are not set".into(),
        ));
    };
    let identifier = format!("{namespace} {rank}");
    if let Some(of) = parent_rank(env, &identifier) {
        return Ok(Offer::NotHere(format!(
            "process {of}, which started this one, is the rank"
        )));
    }
    let named = params.get(&LIBRARY).map_err(RteError::Param)?;
    let patience = params.get(&MEET).map_err(RteError::Param)?;
    if mpi_base::privilege::is_raised() {
        // libpmix loads plugins and files that the environment names, and the user controls the environment and the parent process.
        // So a process with raised privileges must not load libpmix.
        return Err(RteError::Raised {
            namespace: namespace.into(),
            rank,
        });
    }
    let prefixes: Vec<PathBuf> = environment::var("PMIX_PREFIX")
        .map(PathBuf::from)
        .into_iter()
        .chain(library::prefix_of_parent())
        .collect();
    let library = Library::open(&library::candidates(&named, &prefixes)).map_err(|reasons| {
        RteError::NoPmix {
            namespace: namespace.into(),
            rank,
            reasons,
        }
    })?;
    let me = library
        .init()
        .map_err(|status| failed(&library, "PMIx_Init", status))?;
    sys::set_variable(RANK, &format!("{identifier} {}", std::process::id()));
    let pmix = Pmix {
        identity: identify(&library, &me)?,
        env: env.clone(),
        me,
        library,
        patience,
        uncommitted: AtomicBool::new(false),
        finalized: AtomicBool::new(false),
    };
    pmix.library
        .watch()
        .map_err(pmix.failed("PMIx_Register_event_handler"))?;
    Ok(Offer::Here(Box::new(pmix)))
}

/// If another process is the rank, returns its process ID.
fn parent_rank(env: &Env, identifier: &str) -> Option<u32> {
    let (known, process) = env.get(RANK)?.rsplit_once(' ')?;
    let process = process.parse().ok()?;
    (known == identifier && process != std::process::id()).then_some(process)
}

fn identify(library: &Library, me: &Proc) -> Result<Identity, RteError> {
    let of_job = me.peer(abi::WILDCARD);
    let ask = |of: &Proc, name: &str| match library::key(name) {
        Some(key) => library
            .get(of, &key, &abi::directive("pmix.optional"))
            .map_err(|status| failed(library, &format!("PMIx_Get of {name}"), status)),
        None => Ok(None),
    };
    let number = |of: &Proc, name: &str| {
        ask(of, name).map(|found| match found {
            Some(Found::Number(number)) => u32::try_from(number).ok(),
            _ => None,
        })
    };
    let size = number(&of_job, "pmix.job.size")?;
    Ok(Identity {
        job: abi::text(&me.namespace),
        rank: me.rank,
        size: size
            .filter(|&size| me.rank < size)
            .ok_or_else(|| RteError::NoSize {
                namespace: abi::text(&me.namespace),
                rank: me.rank,
                size,
            })?,
        appnum: number(me, "pmix.appnum")?,
        universe_size: number(&of_job, "pmix.univ.size")?,
        spawned: ask(me, "pmix.parent")?.is_some(),
    })
}

/// Converts a status to an error, with the library's error text.
fn failed(library: &Library, doing: &str, status: Status) -> RteError {
    let doing = doing.to_string();
    match status {
        abi::UNREACHABLE | abi::LOST_CONNECTION | abi::LOST_CONNECTION_TO_SERVER => {
            RteError::LauncherLost { doing }
        }
        status => RteError::Pmix {
            doing,
            words: library.words(status),
            status,
        },
    }
}

struct Pmix {
    identity: Identity,
    /// The environment, which contains the values that the parent job has stored for this job.
    env: Env,
    me: Proc,
    library: Library,
    patience: Duration,
    /// True if a value was stored after the last commit.
    uncommitted: AtomicBool,
    finalized: AtomicBool,
}

impl Pmix {
    /// Converts the result of a call that some launchers do not support:
    /// the library lacks the function (`None`), or the function has returned `NOT_SUPPORTED`.
    fn done<T>(
        &self,
        doing: &str,
        what: &'static str,
        answer: Option<Result<T, Status>>,
    ) -> Result<T, RteError> {
        match answer {
            Some(Ok(done)) => Ok(done),
            Some(Err(abi::NOT_SUPPORTED)) | None => Err(self.lacks(what)),
            Some(Err(status)) => Err(failed(&self.library, doing, status)),
        }
    }

    fn failed(&self, doing: &str) -> impl FnOnce(Status) -> RteError {
        move |status| failed(&self.library, doing, status)
    }
}

const NAMES: &str = "place where names are published";

fn wire_key(key: &str) -> Result<CString, RteError> {
    library::key(&format!("{PREFIX}{key}")).ok_or_else(|| RteError::BadKey { key: key.into() })
}

/// Returns the key for a service name. It contains a hash, because service names can have any characters and length, but keys cannot.
fn service_key(service: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(text::to_bytes(service));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}service.{hex}")
}

impl Rte for Pmix {
    fn component(&self) -> &'static str {
        COMPONENT.name
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), RteError> {
        self.uncommitted.store(true, Ordering::Relaxed);
        self.library
            .put(&wire_key(key)?, value)
            .map_err(self.failed("PMIx_Put"))
    }

    fn fence(&self) -> Result<(), RteError> {
        if self.uncommitted.swap(false, Ordering::Relaxed) {
            self.library.commit().map_err(self.failed("PMIx_Commit"))?;
        }
        self.library.fence().map_err(self.failed("PMIx_Fence"))
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, RteError> {
        // After a fence, a key that the server does not have was stored by no rank, so the call need not wait.
        let immediate = abi::directive("pmix.immediate");
        let found = self
            .library
            .get(&self.me.peer(rank), &wire_key(key)?, &immediate)
            .map_err(self.failed("PMIx_Get"))?;
        match found {
            Some(Found::Bytes(bytes)) => Ok(bytes),
            Some(_) => Err(RteError::Garbled {
                key: key.into(),
                rank,
            }),
            None => Err(RteError::NoSuchKey {
                key: key.into(),
                rank,
            }),
        }
    }

    fn node_segment(&self) -> Result<NodeMembership, RteError> {
        cards::meet(self, self.patience)
    }

    fn publish(&self, service: &str, port: &str) -> Result<(), RteError> {
        let key = service_key(service);
        let text = CString::new(text::to_bytes(port).into_owned())
            .map_err(|_| RteError::BadKey { key: port.into() })?;
        self.done("PMIx_Publish", NAMES, self.library.publish(&key, &text))
    }

    fn lookup(&self, service: &str) -> Result<Option<String>, RteError> {
        let found = self.library.lookup(&service_key(service));
        self.done("PMIx_Lookup", NAMES, found)
    }

    fn unpublish(&self, service: &str) -> Result<bool, RteError> {
        if self.lookup(service)?.is_none() {
            return Ok(false);
        }
        let key = library::key(&service_key(service)).ok_or_else(|| RteError::BadKey {
            key: service.into(),
        })?;
        let done = self.library.unpublish(&key);
        self.done("PMIx_Unpublish", NAMES, done).map(|()| true)
    }

    fn spawn_job(&self, request: &SpawnRequest) -> Result<Option<String>, RteError> {
        let spawned = self.library.spawn(spawn::Request::of(request)?);
        let what = "way to start processes while a job runs";
        self.done("PMIx_Spawn", what, spawned).map(Some)
    }

    fn left_by_parent(&self, key: &str) -> Option<String> {
        self.env.get(&spawn::left(key)).map(str::to_string)
    }

    fn lost(&self) -> Option<Lost> {
        library::lost().filter(|_| !self.finalized.load(Ordering::Relaxed))
    }

    fn finalize(&self) -> Result<(), RteError> {
        if self.finalized.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.library
            .finalize()
            .map_err(self.failed("PMIx_Finalize"))
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        let text: Vec<u8> = message.bytes().filter(|&byte| byte != 0).collect();
        let status = sys::abort_status(code);
        self.library
            .abort(status, &CString::new(text).unwrap_or_default());
        sys::exit_now(status)
    }
}

#[cfg(test)]
mod tests;
