//! `pmi1`: the component for PMI-1, the protocol that the launchers of most clusters and the mpirun of this library support.
//!
//! The launcher is found through `PMI_FD` (the number of an inherited socket) with `PMI_RANK` and `PMI_SIZE`,
//! or through `PMI_PORT` (an address) with `PMI_ID`.
//! The variables of this library's mpirun count only if they describe this connection ([`own_launcher`]).
//! In a child process of a rank, `PMI_FD` is not a connected socket,
//! so this component is unusable there.
//!
//! Other launchers send some values only on request.
//! The mpirun of this library passes these values in the environment (`PORTCULLIS_*`).
//! It also passes the descriptor of the node's memory, so startup on one host needs only one request.
//!
//! A script may run several programs one after the other as the same rank. Each later program takes over the claim of the ended one
//! in the inherited memory, and gets new memory with the reply to its `init` ([`wire::PROGRAM`](super::wire::PROGRAM)).
//!
//! Values are sent as hexadecimal digits, divided into pieces that every server accepts; see [`client`].

mod client;

use super::{
    Component, Death, Env, FailedSpawn, Identity, Lost, NodeMembership, Offer, Rte, RteError,
    SpawnRequest, cards, checkpoints, deaths, own_launcher, sys,
};
use client::{Client, Greeting, Welcome};
use mpi_base::atomic::{AtomicBool, Ordering};
use mpi_base::cpu::SHARERS;
use mpi_base::node::{self, Claim, Node, NodeError};
use mpi_base::param::{Param, Params};
use mpi_base::ranges;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

static MEET: Param<Duration> = cards::patience("pmi1");

pub const COMPONENT: Component = Component {
    name: "pmi1",
    help: "The PMI-1 wire protocol: our mpirun, Hydra, Slurm's --mpi=pmi2, gforker, Flux.",
    params: &[MEET.about()],
    open,
};

fn open(env: &Env, params: &Params) -> Result<Offer, RteError> {
    let patience = params.get(&MEET).map_err(RteError::Param)?;
    let number = match own_launcher::has_inner_port(env) {
        true => None,
        false => env.number("PMI_FD")?,
    };
    let (mut client, rank, size, env) = match number {
        Some(number) => {
            let number = i32::try_from(number).unwrap_or(-1);
            let Some(socket) = sys::inherited(number, sys::is_connected) else {
                if own_launcher::has_started_this_process(env) {
                    let (rank, size) = (need(env, "PMI_RANK")?, need(env, "PMI_SIZE")?);
                    return Err(RteError::Closed { number, rank, size });
                }
                let reason = format!("PMI_FD is {number}, which is not a connected socket here");
                return Ok(Offer::NotHere(reason));
            };
            let (rank, size) = (need(env, "PMI_RANK")?, need(env, "PMI_SIZE")?);
            let env = own_launcher::of_connection(env, rank, size, Some(socket.as_fd()));
            (Client::new(socket), rank, size, env)
        }
        None => match env.get("PMI_PORT") {
            Some(address) => {
                let id = env.get("PMI_ID").unwrap_or("0");
                let (client, rank, size) = Client::connect(address, id)?;
                let env = own_launcher::of_connection(env, rank, size, None);
                (client, rank, size, env)
            }
            None => return Ok(Offer::NotHere("neither PMI_FD nor PMI_PORT is set".into())),
        },
    };
    let env = &*env;
    // This check precedes all messages,
    // because a second process with the same socket would receive the replies for the first one.
    let inherited = Inherited::find(env, rank, size)?;
    let is_served = |name| env.get(name) == Some("1");
    let takes_checkpoints = is_served(checkpoints::SERVED);
    let is_ours = env.has("PORTCULLIS_JOB");
    let welcome = client.init(Greeting {
        hears_deaths: is_served(deaths::SERVED),
        hears_checkpoints: takes_checkpoints,
        program: is_ours.then(std::process::id),
    })?;
    let (job, memory) = match welcome {
        Welcome::Taken { job, memory } => (job, memory),
        Welcome::NotNext { why } => return Err(RteError::NotNext { rank, size, why }),
    };
    let on_node = match inherited {
        Some(inherited) => inherited.with_memory(memory, rank, size)?,
        None => None,
    };
    let mut identity = identify(env, &mut client, rank, size)?;
    identity.job = job.unwrap_or(identity.job);
    client.set_kvsname(&identity.job);
    Ok(Offer::Here(Box::new(Pmi1 {
        identity,
        socket: client.socket(),
        client: Mutex::new(client),
        on_node: Mutex::new(on_node),
        patience,
        finalized: AtomicBool::new(false),
        is_ours,
        takes_checkpoints,
    })))
}

fn need(env: &Env, name: &str) -> Result<u32, RteError> {
    env.number(name)?.ok_or_else(|| RteError::Environment {
        name: name.into(),
        value: String::new(),
    })
}

/// Reads the identity from the environment that this library's mpirun has set, or requests it from another launcher.
fn identify(env: &Env, client: &mut Client, rank: u32, size: u32) -> Result<Identity, RteError> {
    let (job, appnum, universe_size) = match env.get("PORTCULLIS_JOB") {
        Some(job) => (
            job.to_string(),
            env.number("PORTCULLIS_APPNUM")?,
            env.number("PORTCULLIS_UNIVERSE_SIZE")?,
        ),
        None => (
            client.kvsname()?,
            // The mpirun of this library also starts ranks through launchers that do not support several programs, such as srun.
            client.appnum()?.or(env.number("PORTCULLIS_APPNUM")?),
            client.universe_size()?,
        ),
    };
    Ok(Identity {
        job,
        rank,
        size,
        appnum,
        universe_size,
        spawned: env.get("PMI_SPAWNED") == Some("1"),
    })
}

/// The place of this process on its node, which the mpirun of this library has passed.
struct Inherited {
    local_rank: u32,
    local_ranks: Vec<u32>,
    /// The number of local ranks on this process's cores, if mpirun has bound it.
    sharers: Option<usize>,
    place: Place,
}

/// The part of the node's memory that belongs to a rank.
enum Place {
    /// This process is the first one that has claimed the rank in the inherited memory.
    Claimed(Claim),
    /// This process has succeeded process `ended` of the same rank, and needs new memory.
    Succeeds { ended: u32 },
    /// The rank has not inherited the memory.
    Closed,
}

impl Inherited {
    fn find(env: &Env, rank: u32, size: u32) -> Result<Option<Inherited>, RteError> {
        let (Some(number), Some(local_rank), Some(local_size)) = (
            env.number("PORTCULLIS_NODE_FD")?,
            env.number("PORTCULLIS_LOCAL_RANK")?,
            env.number("PORTCULLIS_LOCAL_SIZE")?,
        ) else {
            return Ok(None);
        };
        let local_ranks = match env.get("PORTCULLIS_LOCAL_RANKS") {
            Some(text) => ranges::read(text, size as usize).map(|ranks| {
                ranks
                    .into_iter()
                    .map(|rank| rank as u32)
                    .collect::<Vec<_>>()
            }),
            None if local_size == size => Some((0..size).collect()),
            // The job has several nodes and the launcher does not report their ranks,
            // so cards are used instead.
            None => None,
        };
        let Some(local_ranks) = local_ranks.filter(|ranks| ranks.len() == local_size as usize)
        else {
            return Ok(None);
        };
        let number = i32::try_from(number).unwrap_or(-1);
        let fd = sys::inherited(number, |fd| {
            rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_size > 0)
        });
        let place = match fd {
            Some(fd) => claim(&fd, local_rank, (rank, size))?,
            None => Place::Closed,
        };
        let sharers = env.number(SHARERS)?;
        Ok(Some(Inherited {
            local_rank,
            local_ranks,
            sharers: sharers.map(|ranks| ranks as usize),
            place,
        }))
    }

    /// Returns the claim on the inherited memory, or on the memory that has arrived with the reply to `init`.
    fn with_memory(
        self,
        memory: Option<OwnedFd>,
        rank: u32,
        size: u32,
    ) -> Result<Option<NodeMembership>, RteError> {
        let place = match (memory, self.place) {
            (Some(memory), _) => Node::claim(memory, self.local_rank).map_err(RteError::Node)?,
            (None, Place::Claimed(claim)) => claim,
            (None, Place::Succeeds { ended }) => {
                let why = format!(
                    "process {ended} was this rank before, and mpirun has passed no new memory of this node"
                );
                return Err(RteError::NotNext { rank, size, why });
            }
            (None, Place::Closed) => return Ok(None),
        };
        Ok(Some(NodeMembership {
            place,
            local_ranks: self.local_ranks,
            sharers: self.sharers,
        }))
    }
}

/// Claims a rank in the inherited memory, or succeeds the ended process that has claimed it.
fn claim(memory: &OwnedFd, local_rank: u32, (rank, size): (u32, u32)) -> Result<Place, RteError> {
    let mut claimed = match Node::claim(memory, local_rank) {
        Ok(claim) => return Ok(Place::Claimed(claim)),
        Err(error) => error,
    };
    loop {
        let NodeError::Claimed { pid, .. } = claimed else {
            return Err(RteError::Node(claimed));
        };
        // In a PID namespace of its own, each program of a rank may have the same ID.
        if let Some(program) = program(pid)
            && pid != std::process::id()
        {
            return Err(RteError::Taken {
                rank,
                size,
                pid,
                program,
            });
        }
        match node::succeed(memory, local_rank, pid) {
            Ok(()) => return Ok(Place::Succeeds { ended: pid }),
            Err(error) => claimed = error,
        }
    }
}

/// Returns the name of the program that a process runs; `None` if the process has ended or is not visible.
fn program(pid: u32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any characters; the state follows it.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let is_zombie = matches!(stat.get(end + 2), Some(b'Z' | b'X'));
    if is_zombie {
        return None;
    }
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii()).into_owned())
}

pub(super) struct Pmi1 {
    identity: Identity,
    /// A duplicate of the client's socket, which is polled while another thread uses the client.
    socket: Option<OwnedFd>,
    client: Mutex<Client>,
    on_node: Mutex<Option<NodeMembership>>,
    patience: Duration,
    finalized: AtomicBool,
    /// True if the launcher is the mpirun of this library.
    is_ours: bool,
    /// True if the launcher coordinates checkpoints with its processes.
    takes_checkpoints: bool,
}

impl Pmi1 {
    /// Creates the component for a singleton (`identity` is known),
    /// connected by `socket` to the launcher that the singleton has started.
    pub(super) fn adopted(socket: OwnedFd, identity: Identity) -> Result<Pmi1, RteError> {
        let mut client = Client::new(socket);
        client.init(Greeting::default())?;
        client.set_kvsname(&identity.job);
        Ok(Pmi1 {
            identity,
            socket: client.socket(),
            client: Mutex::new(client),
            on_node: Mutex::new(None),
            patience: Duration::ZERO,
            finalized: AtomicBool::new(false),
            is_ours: true,
            takes_checkpoints: false,
        })
    }

    fn client(&self) -> std::sync::MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pmi1 {
    /// Returns notices that the launcher has sent, which `take` removes from the client.
    fn notices<T>(&self, take: impl FnOnce(&mut Client) -> Vec<T>) -> Vec<T> {
        if self.finalized.load(Ordering::Relaxed) {
            return Vec::new();
        }
        match self.client.try_lock() {
            Ok(mut client) => take(&mut client),
            Err(TryLockError::Poisoned(poisoned)) => take(&mut poisoned.into_inner()),
            // Another thread waits for a reply. It stores notices that arrive before the reply.
            Err(TryLockError::WouldBlock) => Vec::new(),
        }
    }
}

impl Rte for Pmi1 {
    fn component(&self) -> &'static str {
        COMPONENT.name
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<(), RteError> {
        self.client().put(self.identity.rank, key, value)
    }

    fn fence(&self) -> Result<(), RteError> {
        self.client().barrier()
    }

    fn get(&self, rank: u32, key: &str) -> Result<Vec<u8>, RteError> {
        self.client().get(rank, key)
    }

    fn node_segment(&self) -> Result<NodeMembership, RteError> {
        let on_node = self
            .on_node
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match on_node {
            Some(on_node) => Ok(on_node),
            None => cards::meet(self, self.patience),
        }
    }

    fn publish(&self, service: &str, port: &str) -> Result<(), RteError> {
        self.client().publish(service, port)
    }

    fn lookup(&self, service: &str) -> Result<Option<String>, RteError> {
        self.client().lookup(service)
    }

    fn unpublish(&self, service: &str) -> Result<bool, RteError> {
        self.client().unpublish(service)
    }

    fn spawn_job(&self, request: &SpawnRequest) -> Result<Option<String>, RteError> {
        self.client().spawn(request)
    }

    fn failed_spawns(&self) -> Vec<FailedSpawn> {
        self.notices(Client::take_failed_spawns)
    }

    fn tell_connections(&self, jobs: &[u64]) {
        if self.is_ours && !self.finalized.load(Ordering::Relaxed) {
            // An error is ignored: [`Rte::lost`] detects the end of the launcher.
            let _ = self.client().tell_connections(jobs);
        }
    }

    fn takes_checkpoints(&self) -> bool {
        self.takes_checkpoints && !self.finalized.load(Ordering::Relaxed)
    }

    fn checkpoint_notices(&self) -> Vec<checkpoints::Notice> {
        match self.takes_checkpoints {
            true => self.notices(Client::take_checkpoint_notices),
            false => Vec::new(),
        }
    }

    fn tell_checkpoint(&self, report: &checkpoints::Report) {
        if self.takes_checkpoints() {
            // An error is ignored: [`Rte::lost`] detects the end of the launcher.
            let _ = self.client().tell_checkpoint(report);
        }
    }

    fn left_by_parent(&self, key: &str) -> Option<String> {
        self.client().left_by_parent(key)
    }

    fn lost(&self) -> Option<Lost> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if self.finalized.load(Ordering::Relaxed) {
            return None;
        }
        let socket = self.socket.as_ref()?;
        let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let closed = poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0);
        let is_ours = fds[0].revents().contains(PollFlags::NVAL);
        closed.then_some(if is_ours {
            Lost::Closed
        } else {
            Lost::Launcher
        })
    }

    fn deaths(&self) -> Vec<Death> {
        self.notices(Client::take_deaths)
    }

    fn finalize(&self) -> Result<(), RteError> {
        if self.finalized.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.client().finalize()
    }

    fn abort(&self, code: i32, message: &str) -> ! {
        // Another thread may hold the client's lock while it waits in a fence that never ends,
        // so `abort` does not take the lock.
        // This line is valid even if it is sent between two lines of the other thread.
        if let Some(socket) = &self.socket {
            client::send_abort(socket, code, message);
        }
        sys::exit_now(sys::abort_status(code))
    }
}
