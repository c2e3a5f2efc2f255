//! Job control: the reactions to a rank's request, end or loss.
//!
//! * [`requests`] serves the ranks' PMI requests;
//! * [`deaths`] decides whether the end of a rank is a failure, and reports it;
//! * [`checkpoint_rounds`] runs the checkpoint protocol with the ranks;
//! * [`losses`] records dead ranks of fault-tolerant jobs.

pub(super) mod checkpoint_rounds;
mod deaths;
mod losses;
mod requests;

use super::all_ranks::AllRanks;
use super::checkpoints::Checkpoints;
use super::deferred_cause::DeferredCause;
use super::ending::Ending;
use crate::launch::program::Plan;
use crate::launch::starter::StartError;
use crate::launch::sys::Signal;
use crate::node;
use crate::pmi::{Proc, Server, SpawnRequest};
use losses::Losses;
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

pub(super) struct JobControl<'a> {
    plan: &'a Plan,
    pub(super) server: Server,
    pub(super) ranks: AllRanks<'a>,
    pub(super) ending: Ending,
    pub(super) losses: Losses,
    pub(super) checkpoints: Checkpoints<'a>,
    /// An abort that may be the consequence of a death that another host has not reported yet.
    deferred_cause: DeferredCause,
    /// Spawn requests of ranks that the supervisor has not served yet.
    spawns: VecDeque<(Proc, SpawnRequest)>,
}

impl<'a> JobControl<'a> {
    /// Creates the state without ranks; `nofile` is the limit of open files for ranks.
    pub(super) fn new(plan: &'a Plan, nofile: Option<u64>) -> Result<Self, StartError> {
        let host = crate::hosts::own_name();
        let stem = format!("{}_{}_{host}", rustix::process::getpid(), node::unique());
        let mut server = Server::new(stem, plan.slots());
        if let Some(option) = plan.needs_one_program() {
            server.permit_one_program(&format!(
                "with {option} of mpirun, each rank runs one program"
            ));
        }
        Ok(JobControl {
            plan,
            server,
            ranks: AllRanks::new(plan, nofile)?,
            ending: Ending::new(plan),
            losses: Losses::default(),
            checkpoints: Checkpoints::new(plan),
            deferred_cause: DeferredCause::default(),
            spawns: VecDeque::new(),
        })
    }

    /// Returns true until all jobs are being ended.
    pub(super) fn is_running(&self) -> bool {
        self.ending.is_running()
    }

    /// Returns true while a rank is alive or a deferred failure is unreported.
    pub(super) fn is_busy(&self) -> bool {
        let waits = self.ranks.jobs.any_alive() || self.deferred_cause.is_there();
        waits && !self.ending.has_given_up()
    }

    /// Returns the time at which [`Self::step`] is due.
    pub(super) fn next_step(&self) -> Option<Instant> {
        let next = [self.ending.next(), self.deferred_cause.next()];
        next.into_iter().flatten().min()
    }

    /// Executes the steps that are due. Returns true once, when the job's time limit has passed.
    pub(super) fn step(&mut self, now: Instant) -> bool {
        let late = self.ending.step(now, &mut self.ranks);
        self.forget_jobs();
        self.settle_deferred_cause();
        late
    }

    /// Begins to end all jobs, unless they are being ended already.
    pub(super) fn end(&mut self, code: i32, signal: Signal) {
        self.ending.begin(code, signal, &mut self.ranks);
    }

    /// Ends `jobs` by `signal`, and by SIGKILL after the grace period; other jobs continue.
    pub(super) fn dismiss(&mut self, jobs: &BTreeSet<usize>, signal: Signal) {
        self.ending.dismiss(jobs, signal, &mut self.ranks);
    }
}
