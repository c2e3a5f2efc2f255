//! The PMI-1 server of the ranks of all jobs of one `mpirun`.
//!
//! The server is a pure state machine: it takes a client's line and returns [`Effect`]s.
//! Other code owns sockets and processes, so tests and fuzzers need none.
//!
//! Protocol: [`mpi_core::rte::wire`]. Versions 1.1 and 1.2 (group barriers) are served;
//! the client names its version.
//! Every job has its own key-value space; published names are shared by all jobs of one `mpirun`.
//!
//! In a fault-tolerant job, the server reports each death ([`Server::died`],
//! [`mpi_core::rte::Death`]).
//! The server sends the notice, unrequested, to each client that has asked for notices in `init`.
//!
//! Processes of this library report the jobs that they are connected with.
//! So the server knows which jobs end together ([`connections`]).
//!
//! The ranks of a job may run several programs one after the other ([`programs`]).
//!
//! Promise: a client can damage only its own job.
//! A forbidden request is answered with `rc=-1` if the protocol has an answer;
//! otherwise the connection is closed.

mod barrier;
mod connections;
mod programs;
mod spawn;

use crate::ledger::Ledger;
use barrier::{Barriers, Release};
use mpi_core::rte::checkpoints::{Notice, Report};
use mpi_core::rte::universe_of;
use mpi_core::rte::wire::{
    CHECKPOINT, CONNECTIONS, DEATH, HEARS_CHECKPOINTS, HEARS_DEATHS, HEARS_FAILURE, KEY_MAX,
    KVSNAME_MAX, Line, Message, PROGRAM, SPAWN_FAILED, WireError, hex,
};
use programs::Joining;
use spawn::Collector;
pub use spawn::{App, SpawnRequest};
use std::collections::HashMap;
use std::fmt;

/// The maximum length of a value in bytes, as announced to clients.
const VALUE_MAX: usize = 1024;

/// The index of a process, unique among the processes of all jobs on this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proc(pub usize);

/// The index of a launched or spawned job, unique on this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Job(pub usize);

/// An action that the server requests from its caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send these bytes to a process.
    Send(Proc, Vec<u8>),
    /// Send these bytes to a process, with the descriptor of its host's memory for its job's program `program`.
    Welcome {
        proc: Proc,
        program: u32,
        bytes: Vec<u8>,
    },
    /// End all jobs with this exit code; the process `by` has called `MPI_Abort`.
    Abort {
        by: Proc,
        code: i32,
        message: Option<String>,
    },
    /// Start these programs, then call [`Server::spawned`].
    Spawn { parent: Proc, request: SpawnRequest },
    /// Process a checkpoint report of a process.
    Checkpoint { by: Proc, report: Report },
    /// Record that a process has left MPI by `MPI_Finalize`.
    Left(Proc),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The process has sent nothing yet; its program may not use MPI.
    Silent,
    Talking,
    Finalized,
    /// A later process of the rank has sent `init`, and waits for the other ranks.
    Joining,
}

#[derive(Debug)]
struct Client {
    job: usize,
    rank: u32,
    appnum: usize,
    stage: Stage,
    /// Whether the process understands notices of deaths, as announced in `init`.
    hears_deaths: bool,
    /// Whether the process understands notices of checkpoints, as announced in `init`.
    hears_checkpoints: bool,
    dead: bool,
    /// Whether the rank has ended.
    has_ended: bool,
    /// The request of a process that waits for the rank's next program.
    joining: Option<Joining>,
    spawn: Option<Collector>,
    /// The numbers of the jobs that the process is connected with, if it has reported them.
    connections: Option<Vec<u64>>,
}

impl Client {
    /// Returns true if the client is notified of deaths at present.
    fn listens(&self) -> bool {
        self.stage == Stage::Talking && self.hears_deaths && !self.dead
    }
}

#[derive(Debug)]
struct JobState {
    kvsname: String,
    /// The number of the present program; later programs of the ranks have numbers from 1.
    program: u32,
    kvs: HashMap<Vec<u8>, Vec<u8>>,
    /// The process index of each rank.
    procs: Vec<Proc>,
    /// The host index of each rank.
    hosts: Vec<u32>,
    barriers: Barriers,
    spawned: bool,
    /// Whether the parent has stored a value for this job, and therefore waits for the job.
    awaited: bool,
    /// The process that has spawned this job; `None` until [`Server::spawned`] sets it.
    parent: Option<Proc>,
    /// Whether any process of this job has been connected with another job.
    met: bool,
    /// Whether any process of this job has sent `init`.
    initialized: bool,
}

/// The server of all jobs of one `mpirun` on one host.
#[derive(Debug)]
pub struct Server {
    jobs: Ledger<JobState>,
    clients: Ledger<Client>,
    names: HashMap<Vec<u8>, Vec<u8>>,
    /// The processes whose deaths were announced, in the order of the announcements.
    dead: Vec<Proc>,
    /// The prefix of the names of key-value spaces, unique to this `mpirun`.
    stem: String,
    /// The total number of slots of all hosts.
    slots: usize,
    /// The reason why each rank may run one program only.
    one_program: Option<String>,
}

/// A malformed request that ends the connection with its client.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolError {
    pub job: usize,
    pub rank: u32,
    pub reason: WireError,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rank {} of job {} does not speak PMI-1: {}",
            self.rank, self.job, self.reason
        )
    }
}

impl Server {
    /// Creates a server without jobs; `stem` is the unique prefix of its key-value spaces' names.
    ///
    /// `slots` is the total number of slots, for `MPI_UNIVERSE_SIZE` ([`universe_of`]).
    pub fn new(stem: impl Into<String>, slots: usize) -> Server {
        Server {
            jobs: Ledger::default(),
            clients: Ledger::default(),
            names: HashMap::new(),
            dead: Vec::new(),
            stem: stem.into(),
            slots,
            one_program: None,
        }
    }

    /// Adds a job; rank `r` runs program `appnums[r]` on host `hosts[r]`.
    /// The job's processes get the next process indexes, in rank order.
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
                hears_checkpoints: false,
                dead: false,
                has_ended: false,
                joining: None,
                spawn: None,
                connections: None,
            });
        }
        let mut kvs: HashMap<Vec<u8>, Vec<u8>> = preput.iter().cloned().collect();
        kvs.extend(initial_values(hosts));
        self.jobs.push(JobState {
            kvsname: format!("kvs_{}_{job}", self.stem),
            program: 0,
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

    /// Removes the last job, of which no process has been started.
    pub fn take_back(&mut self, job: Job) {
        if job.0 + 1 != self.jobs.next() {
            return;
        }
        let procs = self.jobs.take_back().map_or(0, |state| state.procs.len());
        for _ in 0..procs {
            self.clients.take_back();
        }
    }

    /// Returns the number of jobs so far, including removed jobs.
    pub fn jobs(&self) -> usize {
        self.jobs.next()
    }

    /// Renames a job, such as that of an adopted process, which has chosen its name.
    pub fn rename(&mut self, job: Job, name: String) {
        self.jobs[job.0].kvsname = name;
    }

    /// Frees the key-value space of a job whose processes have all ended.
    pub fn forget_values(&mut self, job: Job) {
        self.jobs[job.0].kvs = HashMap::new();
    }

    /// Removes a job whose processes have all ended and closed their sockets.
    /// The indexes of the job and of its processes are not used again.
    pub fn forget(&mut self, job: Job) {
        let state = self.jobs.remove(job.0);
        for proc in state.into_iter().flat_map(|state| state.procs) {
            self.clients.remove(proc.0);
        }
    }

    /// Returns the name of a job's key-value space, which also names the job.
    pub fn kvsname(&self, job: Job) -> &str {
        &self.jobs[job.0].kvsname
    }

    /// Returns true if the job was spawned by another job.
    pub fn is_spawned(&self, job: Job) -> bool {
        self.jobs[job.0].spawned
    }

    /// Returns true if the job's parent has stored a port name and waits at that port for the job.
    /// No parent waits for a spawned program without MPI.
    pub fn is_awaited(&self, job: Job) -> bool {
        self.jobs[job.0].awaited
    }

    /// Returns true if the process has sent `init`.
    pub fn has_initialized(&self, proc: Proc) -> bool {
        self.clients[proc.0].stage != Stage::Silent
    }

    /// Returns true if the process has sent `finalize`, so that its end is not a failure.
    pub fn has_finalized(&self, proc: Proc) -> bool {
        self.clients[proc.0].stage == Stage::Finalized
    }

    /// Returns the ranks that wait in a barrier which this ended process has not entered.
    pub fn waiting_for(&self, gone: Proc) -> Vec<u32> {
        let client = &self.clients[gone.0];
        self.jobs[client.job].barriers.waiting_for(client.rank)
    }

    /// Returns true if any process of the same job has sent `init`.
    pub fn has_initialized_peers(&self, proc: Proc) -> bool {
        self.jobs[self.clients[proc.0].job].initialized
    }

    /// Records the death of a process in a fault-tolerant job.
    /// Barriers exclude the process from then on, and clients are notified.
    ///
    /// The values that the process has stored remain.
    pub fn died(&mut self, proc: Proc) -> Vec<Effect> {
        let client = &mut self.clients[proc.0];
        if std::mem::replace(&mut client.dead, true) {
            return Vec::new();
        }
        let (job, rank) = (client.job, client.rank);
        self.dead.push(proc);
        let mut effects = self.notify_all(self.death_notice(proc));
        // Death notices precede barrier releases:
        // a client that leaves a barrier knows of the death.
        let releases = self.jobs[job].barriers.leave(rank);
        for release in releases {
            effects.extend(self.released(job, &release));
        }
        effects
    }

    /// Returns true if a process takes part in checkpoints at present.
    pub fn hears_checkpoints(&self, proc: Proc) -> bool {
        let client = self.clients.get(proc.0);
        client.is_some_and(|client| {
            client.stage == Stage::Talking && client.hears_checkpoints && !client.dead
        })
    }

    /// Sends a notice about a checkpoint to all processes of a job that take part in checkpoints.
    pub fn tell_checkpoint(&self, job: Job, notice: Notice) -> Vec<Effect> {
        let procs = self.jobs.get(job.0).map_or(&[][..], |state| &state.procs);
        let hearing = procs.iter().filter(|proc| self.hears_checkpoints(**proc));
        hearing
            .filter_map(|proc| send(*proc, notice.line()))
            .collect()
    }

    /// Sends a notice to all clients that have asked for notices.
    /// The notice reports a process's death or exit from MPI; no message from the process follows.
    fn notify_all(&self, death_notice: Line) -> Vec<Effect> {
        let listeners = self.clients.iter().filter(|(_, client)| client.listens());
        let notices = listeners.filter_map(|(at, _)| send(Proc(at), death_notice.clone()));
        notices.collect()
    }

    /// Builds the notice of a death.
    fn death_notice(&self, dead: Proc) -> Line {
        let client = &self.clients[dead.0];
        Line::cmd(DEATH)
            .with("job", &self.jobs[client.job].kvsname)
            .with("rank", client.rank)
    }

    /// Handles one line of a client.
    pub fn line(&mut self, proc: Proc, line: &[u8]) -> Result<Vec<Effect>, ProtocolError> {
        self.answer(proc, line).map_err(|reason| {
            let client = &self.clients[proc.0];
            ProtocolError {
                job: client.job,
                rank: client.rank,
                reason,
            }
        })
    }

    /// Notifies the parent of its spawn's result: the new job, and one error code per process.
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

    /// Handles a spawned job that will never connect to its waiting parent.
    /// Returns the notice for the parent, or `None` if the parent does not understand such notices.
    pub fn spawn_failed(&mut self, job: Job, why: &str) -> Option<Vec<Effect>> {
        const LONGEST: usize = 400;
        let state = self.jobs.get(job.0)?;
        let parent = state.parent?;
        // A parent that has ended may have been removed from the table.
        let is_there = (self.clients.get(parent.0)).is_some_and(|it| it.stage == Stage::Talking);
        let understands = state
            .kvs
            .get(HEARS_FAILURE.as_bytes())
            .is_some_and(|said| said == b"1");
        if !understands || state.met || !is_there {
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
                .with("size", universe_of(self.slots, self.jobs[job].procs.len())),
            "get_my_kvsname" => Line::cmd("my_kvsname")
                .with("rc", 0)
                .with("kvsname", &self.jobs[job].kvsname),
            "put" => self.put(job, &message)?,
            "get" => self.get(job, &message)?,
            "barrier_in" => return self.barrier(job, rank, &message),
            "finalize" => {
                let client = &mut self.clients[proc.0];
                (client.stage, client.joining) = (Stage::Finalized, None);
                let reply = Line::cmd("finalize_ack").with("rc", 0);
                let mut effects: Vec<Effect> = send(proc, reply).into_iter().collect();
                effects.extend(self.notify_all(self.death_notice(proc).with("left", 1)));
                effects.push(Effect::Left(proc));
                return Ok(effects);
            }
            // A malformed checkpoint report has no reply.
            CHECKPOINT => {
                let report = Report::read(&message);
                let effect = report.map(|report| Effect::Checkpoint { by: proc, report });
                return Ok(effect.into_iter().collect());
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
        let process = message.get(PROGRAM).map(str::to_string);
        let is_later = match self.clients[proc.0].stage {
            Stage::Silent => false,
            // Another library may send `init` twice in one process.
            Stage::Talking => process.is_some(),
            Stage::Finalized | Stage::Joining => true,
        };
        if is_later && version == 1 {
            return Ok(self.join(proc, Joining { process, minor }));
        }
        let client = &mut self.clients[proc.0];
        client.stage = Stage::Talking;
        client.hears_deaths = message.get(HEARS_DEATHS) == Some("1");
        client.hears_checkpoints = message.get(HEARS_CHECKPOINTS) == Some("1");
        self.jobs[client.job].initialized = true;
        let reply = match version {
            1 => programs::accepted(minor),
            _ => programs::refused(),
        };
        let reply = match process {
            Some(process) => reply.with(PROGRAM, process),
            None => reply,
        };
        let mut effects: Vec<Effect> = send(proc, reply).into_iter().collect();
        if self.clients[proc.0].listens() {
            let earlier = self.dead.iter().map(|&dead| self.death_notice(dead));
            effects.extend(earlier.filter_map(|death_notice| send(proc, death_notice)));
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

    /// Returns true if the message names the client's own key-value space or none.
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

    /// Handles a line of a spawn request, which has its own syntax; `None` for any other line.
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

/// Returns the values that the server itself stores in the key-value space of a new job or program.
fn initial_values(hosts: &[u32]) -> HashMap<Vec<u8>, Vec<u8>> {
    // A mapping above the maximum length is omitted; clients then detect the nodes themselves.
    let mapping = Some(process_mapping(hosts)).filter(|mapping| mapping.len() < VALUE_MAX);
    let mapping = mapping.map(|text| (b"PMI_process_mapping".to_vec(), text.into_bytes()));
    mapping.into_iter().collect()
}

/// Builds a process mapping such as `(vector,(0,1,4),(1,1,2))`, the node of each rank.
/// Nodes are numbered from 0 in the order of their first ranks.
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

/// Builds a refusal. Old clients print `msg`; a space would end the value, so spaces are replaced.
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

/// Encodes a reply. Its values were received over the same protocol, so the encoding succeeds;
/// otherwise the client gets a refusal.
fn send(to: Proc, line: Line) -> Option<Effect> {
    line.finish()
        .or_else(|_| Line::cmd("error").with("rc", -1).finish())
        .ok()
        .map(|bytes| Effect::Send(to, bytes))
}

#[cfg(test)]
mod tests;
