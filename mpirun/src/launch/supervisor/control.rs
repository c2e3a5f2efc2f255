//! Job control: what a rank's request, end or loss means for the jobs.
//!
//! * [`requests`] serves the ranks' PMI requests;
//! * [`deaths`] decides whether the end of a rank is a failure, and reports it;
//! * [`checkpoint_rounds`] agrees on checkpoints with the ranks;
//! * [`losses`] counts dead ranks of jobs that go on without them.

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
    /// An abort that may be the consequence of a death that another host has yet to report.
    deferred_cause: DeferredCause,
    /// Jobs that ranks have asked for and that the supervisor has yet to start.
    spawns: VecDeque<(Proc, SpawnRequest)>,
}

impl<'a> JobControl<'a> {
    /// Creates the state without ranks; ranks get `nofile` as their limit of open files.
    pub(super) fn new(plan: &'a Plan, nofile: Option<u64>) -> Result<Self, StartError> {
        let host = crate::hosts::own_name();
        let stem = format!("{}_{}_{host}", rustix::process::getpid(), node::unique());
        Ok(JobControl {
            plan,
            server: Server::new(stem, plan.slots()),
            ranks: AllRanks::new(plan, nofile)?,
            ending: Ending::new(plan),
            losses: Losses::default(),
            checkpoints: Checkpoints::new(plan),
            deferred_cause: DeferredCause::default(),
            spawns: VecDeque::new(),
        })
    }

    /// Returns true while no end of all jobs was asked for.
    pub(super) fn is_running(&self) -> bool {
        self.ending.is_running()
    }

    /// Returns true while there is a rank to serve or a failure to report.
    pub(super) fn is_busy(&self) -> bool {
        let waits = self.ranks.jobs.any_alive() || self.deferred_cause.is_there();
        waits && !self.ending.has_given_up()
    }

    /// Returns the next time at which [`Self::step`] has something to do.
    pub(super) fn next_step(&self) -> Option<Instant> {
        let next = [self.ending.next(), self.deferred_cause.next()];
        next.into_iter().flatten().min()
    }

    /// Does what is due. Returns true once, when the time of the job is over.
    pub(super) fn step(&mut self, now: Instant) -> bool {
        let late = self.ending.step(now, &mut self.ranks);
        self.forget_jobs();
        self.settle_deferred_cause();
        late
    }

    /// Begins the ending of all jobs, unless it has begun.
    pub(super) fn end(&mut self, code: i32, signal: Signal) {
        self.ending.begin(code, signal, &mut self.ranks);
    }

    /// Ends jobs while others go on, at once or after the grace period.
    pub(super) fn dismiss(&mut self, jobs: &BTreeSet<usize>, signal: Signal) {
        self.ending.dismiss(jobs, signal, &mut self.ranks);
    }
}
