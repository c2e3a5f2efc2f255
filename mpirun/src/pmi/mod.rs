//! The PMI-1 server: what the ranks of all jobs of one `mpirun` ask for and are told.
//!
//! It is a pure state machine: a line of a client goes in, [`Effect`]s come out, and other code owns sockets and processes.
//! That keeps every answer testable without a process, and lets any bytes be thrown at it.
//!
//! Protocol: [`mpi_core::rte::wire`]; served are versions 1.1 and 1.2 (barriers of groups), of which a client says what it speaks.
//! Every job has a key-value space of its own; published names are shared by all jobs of one `mpirun`.
//!
//! Where a job survives deaths ([`Server::died`]), clients that have asked for it in `init` are told of each, without a question of theirs;
//! see [`mpi_core::rte::Death`].
//!
//! Processes of our library say with which other jobs they are connected, so that what ends together is known ([`connections`]).
//!
//! Promise: a client can spoil nothing but its own job.
//! What it must not say is answered with `rc=-1` where the protocol has an answer, else the connection is given up.

mod barrier;
mod connections;
mod spawn;

use crate::ledger::Ledger;
use barrier::{Barriers, Release};
use mpi_core::rte::room;
use mpi_core::rte::wire::{
    CONNECTIONS, DEATH, HEARS_DEATHS, HEARS_FAILURE, KEY_MAX, KVSNAME_MAX, Line, Message,
    SPAWN_FAILED, TAKES_HEX, WireError, hex,
};
use spawn::Collector;
pub use spawn::{App, SpawnRequest};
use std::collections::HashMap;
use std::fmt;

/// The longest value that is announced to clients.
const VALUE_MAX: usize = 1024;

/// A process of any job of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proc(pub usize);

/// A job: one launch, or one spawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job(pub usize);

/// What the server wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send these bytes to a process.
    Send(Proc, Vec<u8>),
    /// End all jobs with this exit code.
    Abort {
        by: Proc,
        code: i32,
        message: Option<String>,
    },
    /// Start processes, then call [`Server::spawned`].
    Spawn { parent: Proc, request: SpawnRequest },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Has said nothing yet; it may be no MPI program at all.
    Silent,
    Talking,
    Finalized,
}

#[derive(Debug)]
struct Client {
    job: usize,
    rank: u32,
    appnum: usize,
    stage: Stage,
    /// Whether it has said that it understands notices of deaths.
    hears_deaths: bool,
    dead: bool,
    spawn: Option<Collector>,
    /// The numbers of the jobs that it is connected with, if it has ever said so.
    connections: Option<Vec<u64>>,
}

impl Client {
    /// Whether it is told of deaths now.
    fn listens(&self) -> bool {
        self.stage == Stage::Talking && self.hears_deaths && !self.dead
    }
}

#[derive(Debug)]
struct JobState {
    kvsname: String,
    kvs: HashMap<Vec<u8>, Vec<u8>>,
    /// Rank to process.
    procs: Vec<Proc>,
    /// Rank to host.
    hosts: Vec<u32>,
    barriers: Barriers,
    spawned: bool,
    /// Whether its parent has left something for it, and so waits for it.
    awaited: bool,
    /// The process that has spawned it, once that has been told so.
    parent: Option<Proc>,
    /// Whether any of its processes has been connected with another job.
    met: bool,
    /// Whether any of its processes has said that it is an MPI program.
    initialized: bool,
}

/// The server of all jobs of one `mpirun` on one host.
#[derive(Debug)]
pub struct Server {
    jobs: Ledger<JobState>,
    clients: Ledger<Client>,
    names: HashMap<Vec<u8>, Vec<u8>>,
    /// Those that have died and are told of, in this order.
    dead: Vec<Proc>,
    /// Makes the names of key-value spaces differ from those of any other `mpirun`.
    stem: String,
    /// How many processes there is room for.
    slots: usize,
}

/// Something a client said that ends the conversation with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Nonsense {
    pub job: usize,
    pub rank: u32,
    pub reason: WireError,
}

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rank {} of job {} does not speak PMI-1: {}",
            self.rank, self.job, self.reason
        )
    }
}

impl Server {
    /// No jobs yet; the names of their key-value spaces will begin with `stem`, which is this mpirun's alone.
    ///
    /// `slots` is how many processes there is room for on all hosts, of which `MPI_UNIVERSE_SIZE` is made ([`room`]).
    pub fn new(stem: impl Into<String>, slots: usize) -> Server {
        Server {
            jobs: Ledger::default(),
            clients: Ledger::default(),
            names: HashMap::new(),
            dead: Vec::new(),
            stem: stem.into(),
            slots,
        }
    }

    /// Adds a job whose rank `r` runs program number `appnums[r]` on host `hosts[r]`;
    /// its processes are numbered on from those that are there.
    pub fn add_job(
        &mut self,
        appnums: &[usize],
        hosts: &[u32],
        preput: &[(Vec<u8>, Vec<u8>)],
    ) -> Job {
        let job = self.jobs.next();
        let size = appnums.len();
        let first = self.clients.next();
        for (rank, &appnum) in (0..).zip(appnums) {
            self.clients.push(Client {
                job,
                rank,
                appnum,
                stage: Stage::Silent,
                hears_deaths: false,
                dead: false,
                spawn: None,
                connections: None,
            });
        }
        let mut kvs: HashMap<Vec<u8>, Vec<u8>> = preput.iter().cloned().collect();
        // One that is too long for a client is left out, as servers do; clients then find out by themselves.
        let mapping = process_mapping(hosts);
        if mapping.len() < VALUE_MAX {
            kvs.insert(b"PMI_process_mapping".into(), mapping.into_bytes());
        }
        self.jobs.push(JobState {
            kvsname: format!("kvs_{}_{job}", self.stem),
            kvs,
            procs: (first..first + size).map(Proc).collect(),
            hosts: hosts.to_vec(),
            barriers: Barriers::default(),
            spawned: job > 0,
            awaited: !preput.is_empty(),
            parent: None,
            met: false,
            initialized: false,
        });
        Job(job)
    }

    /// Takes the last job back, of which nothing has been started.
    pub fn take_back(&mut self, job: Job) {
        if job.0 + 1 != self.jobs.next() {
            return;
        }
        let procs = self.jobs.take_back().map_or(0, |state| state.procs.len());
        for _ in 0..procs {
            self.clients.take_back();
        }
    }

    /// How many jobs there have been.
    pub fn jobs(&self) -> usize {
        self.jobs.next()
    }

    /// Calls a job otherwise, because it has a name already.
    pub fn rename(&mut self, job: Job, name: String) {
        self.jobs[job.0].kvsname = name;
    }

    /// All processes of a job have ended, so no process asks for what they have put.
    pub fn forget_values(&mut self, job: Job) {
        self.jobs[job.0].kvs = HashMap::new();
    }

    /// All processes of a job have ended well and their sockets are closed: its number and theirs are not used any more.
    pub fn forget(&mut self, job: Job) {
        let state = self.jobs.remove(job.0);
        for proc in state.into_iter().flat_map(|state| state.procs) {
            self.clients.remove(proc.0);
        }
    }

    /// The name of a job's key-value space, which names the job.
    pub fn kvsname(&self, job: Job) -> &str {
        &self.jobs[job.0].kvsname
    }

    /// Whether another job has started it.
    pub fn is_spawned(&self, job: Job) -> bool {
        self.jobs[job.0].spawned
    }

    /// Whether the job that has started it has left the name of a port for it, where it waits; programs without MPI may be spawned, too.
    pub fn is_awaited(&self, job: Job) -> bool {
        self.jobs[job.0].awaited
    }

    /// Whether the process has said that it is an MPI program.
    pub fn has_initialized(&self, proc: Proc) -> bool {
        self.clients[proc.0].stage != Stage::Silent
    }

    /// Whether the process has said that it is done with MPI, so that its end is no failure.
    pub fn has_finalized(&self, proc: Proc) -> bool {
        self.clients[proc.0].stage == Stage::Finalized
    }

    /// The members of barriers that a process that has ended would have to enter; empty when no process waits for it.
    pub fn waiting_for(&self, gone: Proc) -> Vec<u32> {
        let client = &self.clients[gone.0];
        self.jobs[client.job].barriers.waiting_for(client.rank)
    }

    /// Whether any process of the same job has said that it is an MPI program.
    pub fn has_initialized_peers(&self, proc: Proc) -> bool {
        self.jobs[self.clients[proc.0].job].initialized
    }

    /// A process has died, and the others go on: no barrier waits for it, and every client of every job that asked for it is told.
    ///
    /// What the process has put stays there.
    pub fn died(&mut self, proc: Proc) -> Vec<Effect> {
        let client = &mut self.clients[proc.0];
        if std::mem::replace(&mut client.dead, true) {
            return Vec::new();
        }
        let (job, rank) = (client.job, client.rank);
        self.dead.push(proc);
        let mut effects = self.tell_all(self.notice(proc));
        // A client that leaves a barrier because of a death has been told of it before.
        let releases = self.jobs[job].barriers.leave(rank);
        for release in releases {
            effects.extend(self.released(job, &release));
        }
        effects
    }

    /// Tells all that have asked for it of a death, or that a process has left MPI: its peers hear nothing of it any more either way.
    fn tell_all(&self, notice: Line) -> Vec<Effect> {
        let listeners = self.clients.iter().filter(|(_, client)| client.listens());
        let told = listeners.filter_map(|(at, _)| send(Proc(at), notice.clone()));
        told.collect()
    }

    /// What is said of a death.
    fn notice(&self, dead: Proc) -> Line {
        let client = &self.clients[dead.0];
        Line::cmd(DEATH)
            .with("job", &self.jobs[client.job].kvsname)
            .with("rank", client.rank)
    }

    /// Takes one line of a client.
    pub fn line(&mut self, proc: Proc, line: &[u8]) -> Result<Vec<Effect>, Nonsense> {
        self.answer(proc, line).map_err(|reason| {
            let client = &self.clients[proc.0];
            Nonsense {
                job: client.job,
                rank: client.rank,
                reason,
            }
        })
    }

    /// Tells the parent what became of its spawn: the new job, and for each process, whether it could be started.
    pub fn spawned(&mut self, parent: Proc, outcome: Result<Job, String>) -> Vec<Effect> {
        let line = match outcome {
            Ok(job) => {
                self.jobs[job.0].parent = Some(parent);
                let count = self.jobs[job.0].procs.len();
                Line::cmd("spawn_result")
                    .with("rc", 0)
                    .with("errcodes", vec!["0"; count.max(1)].join(","))
                    .with("jobid", self.kvsname(job))
            }
            Err(reason) => refusal("spawn_result", &reason),
        };
        send(parent, line).into_iter().collect()
    }

    /// A spawned job that its parent waits for will never come; answers what the parent is told, or `None` if there is no parent that would understand it.
    pub fn spawn_failed(&mut self, job: Job, why: &str) -> Option<Vec<Effect>> {
        const LONGEST: usize = 400;
        let state = &self.jobs[job.0];
        let parent = state.parent?;
        let understands = state
            .kvs
            .get(HEARS_FAILURE.as_bytes())
            .is_some_and(|said| said == b"1");
        if !understands || state.met || self.clients[parent.0].stage != Stage::Talking {
            return None;
        }
        let why: String = why.chars().take(LONGEST).collect();
        let line = Line::cmd(SPAWN_FAILED)
            .with("job", &state.kvsname)
            .with("why", hex(why.as_bytes()));
        Some(send(parent, line).into_iter().collect())
    }

    fn answer(&mut self, proc: Proc, line: &[u8]) -> Result<Vec<Effect>, WireError> {
        if let Some(effects) = self.spawn_line(proc, line)? {
            return Ok(effects);
        }
        let message = Message::parse(line)?;
        let client = &self.clients[proc.0];
        let (job, rank) = (client.job, client.rank);
        let reply = match message.cmd() {
            "init" => return self.init(proc, &message),
            "get_maxes" => Line::cmd("maxes")
                .with("rc", 0)
                .with("kvsname_max", KVSNAME_MAX)
                .with("keylen_max", KEY_MAX)
                .with("vallen_max", VALUE_MAX),
            "get_appnum" => Line::cmd("appnum")
                .with("rc", 0)
                .with("appnum", client.appnum),
            "get_universe_size" => Line::cmd("universe_size")
                .with("rc", 0)
                .with("size", room(self.slots, self.jobs[job].procs.len())),
            "get_my_kvsname" => Line::cmd("my_kvsname")
                .with("rc", 0)
                .with("kvsname", &self.jobs[job].kvsname),
            "put" => self.put(job, &message)?,
            "get" => self.get(job, &message)?,
            "barrier_in" => return self.barrier(job, rank, &message),
            "finalize" => {
                self.clients[proc.0].stage = Stage::Finalized;
                let reply = Line::cmd("finalize_ack").with("rc", 0);
                let mut effects: Vec<Effect> = send(proc, reply).into_iter().collect();
                effects.extend(self.tell_all(self.notice(proc).with("left", 1)));
                return Ok(effects);
            }
            "abort" => return Ok(vec![abort(proc, &message)]),
            CONNECTIONS => {
                let jobs = connections::read(message.need("jobs")?)?;
                self.jobs[job].met |= !jobs.is_empty();
                self.clients[proc.0].connections = Some(jobs);
                return Ok(Vec::new());
            }
            "publish_name" => {
                let service = message.need_bytes("service")?;
                let port = message.need_bytes("port")?;
                if self.names.contains_key(service) {
                    refusal("publish_result", "service_is_already_published")
                } else {
                    self.names.insert(service.into(), port.into());
                    success("publish_result")
                }
            }
            "lookup_name" => match self.names.get(message.need_bytes("service")?) {
                Some(port) => success("lookup_result").with_bytes("port", port),
                None => refusal("lookup_result", "service_not_found"),
            },
            "unpublish_name" => match self.names.remove(message.need_bytes("service")?) {
                Some(_) => success("unpublish_result"),
                None => refusal("unpublish_result", "service_not_found"),
            },
            other => {
                return Err(WireError::Unexpected {
                    wanted: "one of the PMI-1 commands".into(),
                    line: other.into(),
                });
            }
        };
        Ok(send(proc, reply).into_iter().collect())
    }

    fn init(&mut self, proc: Proc, message: &Message) -> Result<Vec<Effect>, WireError> {
        let version = message.number("pmi_version")?;
        let minor = message.number("pmi_subversion")?;
        let client = &mut self.clients[proc.0];
        client.stage = Stage::Talking;
        client.hears_deaths = message.get(HEARS_DEATHS) == Some("1");
        self.jobs[client.job].initialized = true;
        let reply = Line::cmd("response_to_init");
        let reply = if version == 1 {
            reply
                .with("rc", 0)
                .with("pmi_version", 1)
                .with("pmi_subversion", minor.clamp(1, 2))
                .with(TAKES_HEX, 1)
        } else {
            reply
                .with("rc", -1)
                .with("pmi_version", 1)
                .with("pmi_subversion", 2)
        };
        let mut effects: Vec<Effect> = send(proc, reply).into_iter().collect();
        if self.clients[proc.0].listens() {
            let earlier = self.dead.iter().map(|&dead| self.notice(dead));
            effects.extend(earlier.filter_map(|notice| send(proc, notice)));
        }
        Ok(effects)
    }

    fn put(&mut self, job: usize, message: &Message) -> Result<Line, WireError> {
        let (key, value) = (message.need_bytes("key")?, message.need_bytes("value")?);
        if !self.is_own_space(job, message) {
            return Ok(refusal("put_result", "not_my_kvsname"));
        }
        if key.starts_with(b"PMI_") || value.is_empty() {
            return Ok(refusal("put_result", "reserved_key_or_empty_value"));
        }
        self.jobs[job].kvs.insert(key.into(), value.into());
        Ok(success("put_result"))
    }

    fn get(&self, job: usize, message: &Message) -> Result<Line, WireError> {
        let key = message.need_bytes("key")?;
        if !self.is_own_space(job, message) {
            return Ok(refusal("get_result", "not_my_kvsname"));
        }
        Ok(match self.jobs[job].kvs.get(key) {
            Some(value) => success("get_result").with_bytes("value", value),
            None => refusal("get_result", "key_not_found").with("value", "unknown"),
        })
    }

    /// A client may leave the name of its space out, but may not name another.
    fn is_own_space(&self, job: usize, message: &Message) -> bool {
        message
            .bytes("kvsname")
            .is_none_or(|name| name == self.jobs[job].kvsname.as_bytes())
    }

    fn barrier(
        &mut self,
        job: usize,
        rank: u32,
        message: &Message,
    ) -> Result<Vec<Effect>, WireError> {
        let state = &mut self.jobs[job];
        let group = message.get("group");
        let Some(release) = state.barriers.enter(rank, &state.hosts, group)? else {
            return Ok(Vec::new());
        };
        Ok(self.released(job, &release).collect())
    }

    fn released(&self, job: usize, release: &Release) -> impl Iterator<Item = Effect> {
        let procs = &self.jobs[job].procs;
        release.ranks.iter().filter_map(move |&rank| {
            let out = Line::cmd("barrier_out").with("rc", 0);
            let out = match &release.tag {
                Some(tag) => out.with("tag", tag),
                None => out,
            };
            send(procs[rank as usize], out)
        })
    }

    /// Takes the lines of a spawn, which have a syntax of their own; `None` if this line is none of them.
    fn spawn_line(&mut self, proc: Proc, line: &[u8]) -> Result<Option<Vec<Effect>>, WireError> {
        let client = &mut self.clients[proc.0];
        if client.spawn.is_none() {
            if line != b"mcmd=spawn" {
                return Ok(None);
            }
            client.spawn = Some(Collector::default());
        }
        let Some(collector) = client.spawn.as_mut() else {
            return Ok(None);
        };
        let Some(request) = collector.line(line)? else {
            return Ok(Some(Vec::new()));
        };
        client.spawn = None;
        let parent = proc;
        Ok(Some(vec![Effect::Spawn { parent, request }]))
    }
}

/// `(vector,(0,1,4),(1,1,2))`: which rank is on which node, nodes counted from 0 in the order of their first ranks.
fn process_mapping(hosts: &[u32]) -> String {
    let mut nodes: Vec<u32> = Vec::new();
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    for host in hosts {
        let node = nodes.iter().position(|known| known == host);
        let node = node.unwrap_or_else(|| {
            nodes.push(*host);
            nodes.len() - 1
        });
        match blocks.last_mut() {
            Some((last, ranks)) if *last == node => *ranks += 1,
            _ => blocks.push((node, 1)),
        }
    }
    let blocks: Vec<String> = blocks
        .into_iter()
        .map(|(node, ranks)| format!("({node},1,{ranks})"))
        .collect();
    format!("(vector,{})", blocks.join(","))
}

fn abort(by: Proc, message: &Message) -> Effect {
    Effect::Abort {
        by,
        code: message.number("exitcode").map_or(1, |code| code as i32),
        message: message
            .bytes("message")
            .or(message.bytes("error_msg"))
            .map(|message| unescaped(&String::from_utf8_lossy(message))),
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

fn success(cmd: &str) -> Line {
    Line::cmd(cmd).with("rc", 0).with("msg", "success")
}

/// Old clients print `msg`, and none of them may be sent a space.
fn refusal(cmd: &str, reason: &str) -> Line {
    let reason: String = reason
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() && c != '\\' {
                c
            } else {
                '_'
            }
        })
        .collect();
    Line::cmd(cmd).with("rc", -1).with("msg", reason)
}

/// A reply is made of values that came off the same wire, so that it can always be sent;
/// should one not be, the client gets a refusal rather than silence.
fn send(to: Proc, line: Line) -> Option<Effect> {
    line.finish()
        .or_else(|_| Line::cmd("error").with("rc", -1).finish())
        .ok()
        .map(|bytes| Effect::Send(to, bytes))
}

#[cfg(test)]
mod tests;
