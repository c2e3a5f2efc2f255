//! Programs that the ranks of a job run one after the other, such as those of a script `./a; ./b`.
//!
//! A process that sends `init` after an earlier process of its rank has sent `finalize` *joins* the rank's next program.
//! The next program of the job begins when all ranks have joined it. The k-th programs of all ranks form one MPI job:
//! it has a new name, a new key-value space, new barriers and, on each host, new memory.
//!
//! A rank that has ended joins no program, so the joining processes of the other ranks are refused, with the reason.

use super::barrier::Barriers;
use super::{Effect, Proc, Server, Stage, initial_values, send};
use mpi_core::rte::wire::{Line, PROGRAM, PROGRAM_JOB, TAKES_HEX, WHY, hex};

/// A client's request to be the next program of its rank, until the program begins.
#[derive(Debug)]
pub(super) struct Joining {
    /// The ID of the process, which its library has sent; `None` for other libraries.
    pub(super) process: Option<String>,
    /// The minor version of the protocol that the process asks for.
    pub(super) minor: i64,
}

impl Joining {
    /// Builds the reply to `init`; `job` is the name of the program's key-value space.
    fn accepted(&self, job: &str) -> Line {
        let reply = accepted(self.minor).with(PROGRAM_JOB, job);
        self.named(reply)
    }

    fn refused(&self, why: &str) -> Line {
        let reply = refused().with(WHY, hex(why.as_bytes()));
        self.named(reply)
    }

    fn named(&self, reply: Line) -> Line {
        match &self.process {
            Some(process) => reply.with(PROGRAM, process),
            None => reply,
        }
    }
}

/// Builds the reply to a successful `init`.
pub(super) fn accepted(minor: i64) -> Line {
    Line::cmd("response_to_init")
        .with("rc", 0)
        .with("pmi_version", 1)
        .with("pmi_subversion", minor.clamp(1, 2))
        .with(TAKES_HEX, 1)
}

/// Builds the reply to a refused `init`.
pub(super) fn refused() -> Line {
    Line::cmd("response_to_init")
        .with("rc", -1)
        .with("pmi_version", 1)
        .with("pmi_subversion", 2)
}

impl Server {
    /// Permits only one program for each rank; `why` names the option that requires this.
    pub fn permit_one_program(&mut self, why: &str) {
        self.one_program = Some(why.to_string());
    }

    /// Handles `init` of a process whose rank has run a program before.
    pub(super) fn join(&mut self, proc: Proc, joining: Joining) -> Vec<Effect> {
        let job = self.clients[proc.0].job;
        if let Some(why) = self.obstacle(proc) {
            return send(proc, joining.refused(&why)).into_iter().collect();
        }
        let client = &mut self.clients[proc.0];
        client.stage = Stage::Joining;
        client.joining = Some(joining);
        let procs = &self.jobs[job].procs;
        match procs
            .iter()
            .all(|proc| self.clients[proc.0].joining.is_some())
        {
            true => self.begin_program(job),
            false => Vec::new(),
        }
    }

    /// Returns the reason why a process cannot be the next program of its rank.
    fn obstacle(&self, proc: Proc) -> Option<String> {
        let client = &self.clients[proc.0];
        let state = &self.jobs[client.job];
        if let Some(why) = &self.one_program {
            return Some(why.clone());
        }
        if client.stage == Stage::Talking {
            return Some("the earlier program has not called MPI_Finalize".into());
        }
        if state.spawned {
            return Some("a spawned rank runs one program".into());
        }
        let mut clients = state.procs.iter().map(|proc| &self.clients[proc.0]);
        let ended = clients.find(|client| client.has_ended)?;
        Some(absence(ended.rank))
    }

    /// Records the end of a rank; refuses the processes that join a program, which would wait for the rank.
    pub fn ended(&mut self, proc: Proc) -> Vec<Effect> {
        let Some(client) = self.clients.get_mut(proc.0) else {
            return Vec::new();
        };
        client.has_ended = true;
        client.joining = None;
        let (job, why) = (client.job, absence(client.rank));
        let procs = self.jobs[job].procs.clone();
        let mut effects = Vec::new();
        for proc in procs {
            let client = &mut self.clients[proc.0];
            if let Some(joining) = client.joining.take() {
                // The end of the refused process is no failure: its rank has finalized the earlier program.
                client.stage = Stage::Finalized;
                effects.extend(send(proc, joining.refused(&why)));
            }
        }
        effects
    }

    /// Begins the next program of a job, which all ranks have joined.
    fn begin_program(&mut self, job: usize) -> Vec<Effect> {
        let stem = &self.stem;
        let state = &mut self.jobs[job];
        state.program += 1;
        let program = state.program;
        state.kvsname = format!("kvs_{stem}_{job}.{program}");
        state.kvs = initial_values(&state.hosts);
        state.barriers = Barriers::default();
        (state.met, state.awaited) = (false, false);
        let name = state.kvsname.clone();
        let mut effects = Vec::new();
        for proc in self.jobs[job].procs.clone() {
            let client = &mut self.clients[proc.0];
            client.stage = Stage::Talking;
            client.connections = None;
            let Some(joining) = client.joining.take() else {
                continue;
            };
            let effect = match (send(proc, joining.accepted(&name)), &joining.process) {
                (Some(Effect::Send(proc, bytes)), Some(_)) => Some(Effect::Welcome {
                    proc,
                    program,
                    bytes,
                }),
                (effect, _) => effect,
            };
            effects.extend(effect);
        }
        effects
    }
}

fn absence(rank: u32) -> String {
    format!(
        "rank {rank} has ended and runs no further program, and the next program of a rank is one job with those of all other ranks; \
         a program for one rank alone is started by env -u PMI_FD PROGRAM"
    )
}
