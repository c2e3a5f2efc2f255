//! Deaths of ranks: the decision whether a death is a failure, and its report.

use super::super::deferred_cause::Failure;
use super::super::jobs::Rank;
use super::JobControl;
use crate::launch::ending::{Cause, Weight};
use crate::launch::sys::{Ended, FailedStart, FailedStep};
use crate::launch::wire::End;
use crate::pmi::{Job, Proc};
use std::collections::BTreeSet;

impl JobControl<'_> {
    /// Handles an abort that a rank requests.
    ///
    /// With several hosts, the rank may have seen a broken connection before the peer's death is
    /// reported to the supervisor. That death is the cause that the user needs to know.
    pub(super) fn abort(&mut self, by: Proc, cause: Cause, code: i32) {
        if self.is_dismissed(by) {
            return;
        }
        if self.ranks.links.is_empty() {
            return self.fail(by, cause, code);
        }
        self.defer_cause(by, cause, code);
    }

    /// Returns true if the rank's job is being ended while other jobs continue.
    fn is_dismissed(&self, proc: Proc) -> bool {
        self.ranks
            .jobs
            .get(proc)
            .is_some_and(|rank| rank.is_dismissed)
    }

    /// Holds a failure back, so that a report that explains it can arrive.
    fn defer_cause(&mut self, proc: Proc, cause: Cause, code: i32) {
        if !self.is_running() {
            return;
        }
        self.deferred_cause.hold(Failure { proc, cause, code });
    }

    /// Handles the deferred failure if no other failure has explained it in time.
    pub(super) fn settle_deferred_cause(&mut self) {
        let (jobs, local) = (&self.ranks.jobs, &self.ranks.local);
        let is_dying = |asked: &[Proc]| jobs.is_another_dying(local, asked);
        if let Some(failure) = self.deferred_cause.take_due(is_dying) {
            self.fail_now(failure.proc, &failure.cause, failure.code);
        }
    }

    /// Handles the end of a rank of this host, whose last requests have been read.
    pub(in super::super) fn on_exit(&mut self, proc: Proc, ended: Ended) {
        let end = self.ranks.local.record_end(proc, ended);
        self.record_death(proc, end);
    }

    /// Records the end of a rank of any host.
    pub(in super::super) fn record_death(&mut self, proc: Proc, end: End) {
        self.ranks.jobs.record_end(proc);
        self.leave_checkpoints(proc);
        let Some(rank) = self.ranks.jobs.get(proc) else {
            return;
        };
        let (job, pid) = (rank.job, rank.pid);
        if !rank.is_dismissed {
            match end {
                End::Exited(code) => self.judge_end(proc, job, Ended::Exited(code)),
                End::Killed(signal) => self.judge_end(proc, job, Ended::Killed(signal)),
                End::NeverBegan { errno, step } => {
                    let step = FailedStep::numbered(step);
                    self.fail_start(proc, job, &FailedStart { pid, errno, step });
                }
            }
        }
        // Processes that join the next program would wait for this rank.
        let refusals = self.server.ended(proc);
        if self.is_running() {
            self.apply(refusals);
        }
        self.give_back(job);
    }

    /// Handles a rank that could not execute its program.
    fn fail_start(&mut self, proc: Proc, job: Job, report: &FailedStart) {
        let rank = self.ranks.jobs.get(proc);
        let (rank, program) = rank.map_or((0, ""), |rank| (rank.rank, &*rank.program));
        let said = format!("rank {rank} ({program}) could not be started: {report}");
        self.fail_job_start(job, &said, report.code());
    }

    /// Handles the failed start of a job: notifies the job's parent, or else ends all jobs.
    pub(in super::super) fn fail_job_start(&mut self, job: Job, why: &str, code: i32) {
        if self.fail_spawn(job, why) {
            return;
        }
        if self.is_running() {
            self.ranks.outputs.say(why);
        }
        self.end(code, libc::SIGTERM);
    }

    /// Decides whether the end of a rank is a failure, and reports a failure.
    fn judge_end(&mut self, proc: Proc, job: Job, ended: Ended) {
        let (initialized, finalized) = (
            self.server.has_initialized(proc),
            self.server.has_finalized(proc),
        );
        let is_awaited = self.server.is_awaited(job);
        if !initialized && is_awaited {
            let cause = match ended {
                Ended::Exited(0) => Cause::NotInitializedChild,
                _ => Cause::Died(ended),
            };
            let said = format!("{} {cause}", self.ranks.jobs.name_of(proc));
            if self.fail_spawn(job, &said) {
                return;
            }
        }
        match ended {
            Ended::Exited(0) if !initialized && is_awaited => {
                self.fail(proc, Cause::NotInitializedChild, 1);
            }
            Ended::Exited(0) if !initialized || finalized => self.find_abandoned(),
            Ended::Exited(0) => self.fail(proc, Cause::NotFinalized, 1),
            // After MPI_Finalize no other rank depends on this rank.
            // The rank's exit code counts as the job's, and the other ranks continue.
            _ if finalized => {
                if self.is_running() && self.ending.fail(ended.code()) {
                    let name = self.ranks.jobs.name_of(proc);
                    let cause = Cause::Died(ended);
                    self.ranks
                        .outputs
                        .say(&format!("{name} {cause} after MPI_Finalize"));
                }
            }
            _ => self.fail(proc, Cause::Died(ended), ended.code()),
        }
    }

    /// Notifies a spawned job's parent that the job will never connect, and ends the job's ranks.
    /// Returns false if the job has no parent that can be notified.
    fn fail_spawn(&mut self, job: Job, why: &str) -> bool {
        if !self.is_running() {
            return false;
        }
        let Some(effects) = self.server.spawn_failed(job, why) else {
            return false;
        };
        self.dismiss(&BTreeSet::from([job.0]), libc::SIGKILL);
        self.apply(effects);
        true
    }

    /// Handles the loss of hosts and of all ranks on them.
    pub(in super::super) fn lose_hosts(&mut self, hosts: &[u32], why: &str) {
        // An ended rank may have left an open pipe to a process that is lost with the host.
        let silent = self.ranks.jobs.on_hosts(hosts);
        let is_alive = |proc: &Proc| self.ranks.jobs.get(*proc).is_some_and(|rank| rank.alive);
        let lost: Vec<Proc> = silent.iter().copied().filter(is_alive).collect();
        self.ranks.record_gone(&silent);
        if self.losses.was_one_reached(&lost, &self.ranks.jobs) {
            self.ending.note_lost_host();
        }
        if self.plan.tolerates_deaths && self.losses.were_reached(&lost, &self.ranks.jobs) {
            return self.lose_with_hosts(hosts, &lost, why);
        }
        if let Some(&first) = lost.first() {
            let host = self.ranks.jobs.get(first).map_or(0, |rank| rank.host);
            let cause = Cause::HostLost {
                host: self.ranks.jobs.host_name(host),
                why: why.to_string(),
            };
            self.fail(first, cause, 1);
        }
        for proc in lost {
            if let Some(job) = self.ranks.jobs.get(proc).map(|rank| rank.job) {
                self.give_back(job);
            }
        }
    }

    /// Queues an ended spawned job for removal, unless a trace needs its event rings.
    pub(in super::super) fn give_back(&mut self, job: Job) {
        if !self.plan.needs_event_rings() {
            self.ranks.jobs.queue_if_over(job);
        }
    }

    /// Releases the memory of queued spawned jobs; removes jobs whose pipes and sockets are closed.
    pub(super) fn forget_jobs(&mut self) {
        // The message about a deferred failure needs the rank's name and last call.
        if self.deferred_cause.is_there() {
            return;
        }
        for job in self.ranks.jobs.over() {
            self.ranks.local.release(job);
            self.ranks.local.forget_released();
            self.server.forget_values(job);
            let outputs = &self.ranks.outputs;
            if self
                .ranks
                .jobs
                .forget(job, |proc| outputs.has_streams(proc))
            {
                self.server.forget(job);
            }
        }
    }

    /// Records a failure of a rank; the first failure decides the exit code and ends all ranks.
    ///
    /// A signal is never a consequence, except SIGBUS after an access to a dying rank's memory.
    /// Any other failure may be a reaction to another rank's death.
    /// A possible consequence is held back while another rank is dying: the kernel breaks the
    /// connections and unmaps the memory of that rank before it notifies this process.
    pub(super) fn fail(&mut self, proc: Proc, cause: Cause, code: i32) {
        if self.plan.tolerates_deaths && cause.is_a_death() {
            return self.lose(proc, &cause, code);
        }
        if !self.is_running() || self.is_explained(proc) || self.is_dismissed(proc) {
            return;
        }
        let may_be_explained = self.deferred_cause.is_there()
            || self.ranks.jobs.is_another_dying(&self.ranks.local, &[proc]);
        if cause.weight() < Weight::Certain && may_be_explained {
            return self.defer_cause(proc, cause, code);
        }
        self.fail_now(proc, &cause, code);
    }

    /// Returns true if the rank's own deferred abort explains its end.
    pub(super) fn is_explained(&self, proc: Proc) -> bool {
        self.deferred_cause.is_of(proc)
    }

    fn fail_now(&mut self, proc: Proc, cause: &Cause, code: i32) {
        self.deferred_cause.clear();
        let Some(job) = self.ranks.jobs.get(proc).map(|rank| rank.job) else {
            return;
        };
        if self.is_dismissed(proc) {
            return;
        }
        let mut text = self.ranks.sentence(proc, cause);
        let connected = self.server.connected(job);
        let alive = self.ranks.jobs.alive().map(|(_, rank)| rank);
        let alive = alive.filter(|rank| !rank.is_dismissed);
        let (with, without): (Vec<&Rank>, Vec<&Rank>) =
            alive.partition(|rank| connected.contains(&rank.job.0));
        let (with, without) = (with.len(), without.len());
        match (with, without) {
            (0, 0) => {}
            (_, 0) => text += " All other ranks are ended.",
            (0, _) => text += " Jobs that are not connected with it go on.",
            _ => {
                text += " All ranks that are connected with it are ended, other jobs go on.";
            }
        }
        self.ranks.outputs.say(&text);
        if without == 0 {
            let is_death = match cause {
                Cause::Died(Ended::Killed(_)) => true,
                // The loss of a host that was never reached is a failed start.
                Cause::HostLost { .. } => self.losses.were_reached(&[proc], &self.ranks.jobs),
                _ => false,
            };
            if self.is_running() && is_death {
                self.ending.note_death();
            }
            return self.end(code, libc::SIGTERM);
        }
        self.ending.fail(code);
        self.dismiss(&connected, libc::SIGTERM);
    }
}
