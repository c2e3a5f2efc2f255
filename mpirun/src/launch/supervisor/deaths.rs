//! Deaths of ranks: which of them is a failure, how it is reported, and how the other ranks are ended.

use super::super::ending::{Cause, NamedRank, Weight, last_call, list};
use super::super::ranks::{Rank, Ranks};
use super::super::sys::{self, Ended, FailedStart, Signal};
use super::super::term_signals;
use super::super::wire::ToDaemon;
use super::Supervisor;
use super::deferred_cause::Failure;
use super::lifecycle::Due;
use crate::pmi::{Job, Proc};
use crate::rank_snapshot::RankSnapshot;

impl Supervisor<'_> {
    /// A rank asks for the end of the job.
    ///
    /// With ranks on several hosts it may have seen a connection break before this process is notified that the rank at the other end
    /// has died, which is the cause that a user needs to know.
    pub(super) fn abort(&mut self, by: Proc, cause: Cause, code: i32) {
        if self.is_dismissed(by) {
            return;
        }
        if self.links.is_empty() {
            return self.fail(by, cause, code);
        }
        self.defer_cause(by, cause, code);
    }

    /// Returns true if a rank's job is being ended already, while others go on.
    fn is_dismissed(&self, proc: Proc) -> bool {
        self.ranks.get(proc).is_some_and(|rank| rank.is_dismissed)
    }

    /// Holds a failure back until news that may explain it has had time to arrive.
    fn defer_cause(&mut self, proc: Proc, cause: Cause, code: i32) {
        if !self.is_running() {
            return;
        }
        self.deferred_cause.hold(Failure { proc, cause, code });
    }

    /// Returns true if a rank, other than those that `asked` for the job's end, is known to have begun to die.
    fn is_another_dying(ranks: &Ranks, asked: &[Proc]) -> bool {
        let mut alive = ranks
            .iter()
            .filter(|(_, rank)| rank.alive && !rank.is_dismissed);
        alive.any(|(proc, rank)| {
            let is_dying = rank.is_dying || (rank.here && sys::is_dying(rank.pid));
            is_dying && !asked.contains(&proc)
        })
    }

    /// Acts on the held failure if nothing else has explained it in time.
    pub(super) fn settle_deferred_cause(&mut self) {
        let ranks = &self.ranks;
        let due = (self.deferred_cause).take_due(|asked| Self::is_another_dying(ranks, asked));
        if let Some(Failure { proc, cause, code }) = due {
            self.fail_now(proc, &cause, code);
        }
    }

    /// A rank of this host has ended.
    pub(super) fn on_exit(&mut self, proc: Proc, ended: Ended) {
        // Requests that the rank sent before it died are handled before its death: an abort, a finalize, a failed start.
        self.read_client(proc);
        let report = FailedStart::read(&self.reports.0);
        self.record_death(proc, ended, report);
    }

    /// Records the end of a rank, on whichever host.
    pub(super) fn record_death(&mut self, proc: Proc, ended: Ended, failed: Option<FailedStart>) {
        let Some(rank) = self.ranks.get_mut(proc) else {
            return;
        };
        rank.alive = false;
        self.unserved.is_settled(proc);
        let job = rank.job;
        if !rank.is_dismissed {
            self.judge_end(proc, job, ended, failed);
        }
        self.give_back(job);
    }

    /// Decides whether the end of a rank is a failure, and reports it.
    fn judge_end(&mut self, proc: Proc, job: Job, ended: Ended, failed: Option<FailedStart>) {
        if let Some(report) = failed {
            let started = self.ranks.get(proc);
            let (rank, program) = started.map_or((0, ""), |rank| (rank.rank, &*rank.program));
            let said = format!("rank {rank} ({program}) could not be started: {report}");
            if self.fail_spawn(job, &said) {
                return;
            }
            if self.is_running() {
                self.say(&said);
            }
            self.end(report.code(), libc::SIGTERM);
            return;
        }
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
            let said = format!("{} {cause}", self.name_of(proc));
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
            // After MPI_Finalize no rank depends on it: its exit code counts, and the others go on.
            _ if finalized => {
                if self.is_running() && self.lifecycle.fail(ended.code()) {
                    let name = self.name_of(proc);
                    self.say(&format!("{name} {} after MPI_Finalize", Cause::Died(ended)));
                }
            }
            _ => self.fail(proc, Cause::Died(ended), ended.code()),
        }
    }

    /// Queues a spawned job whose ranks have all ended to be forgotten: a program may spawn for days.
    pub(super) fn give_back(&mut self, job: Job) {
        let mut of_job = self.ranks.of(job).peekable();
        let is_over = of_job.peek().is_some() && of_job.all(|rank| !rank.alive);
        if job.0 > 0 && !self.plan.needs_event_rings() && is_over {
            self.ended_jobs.insert(job);
        }
    }

    /// Releases the memory of spawned jobs whose ranks have all ended, and forgets such a job once the pipes and sockets of its
    /// ranks have been read to the end, on whichever host.
    pub(super) fn forget_jobs(&mut self) {
        // The sentence about a failure that is held back names the rank and its last call.
        if self.deferred_cause.is_there() {
            return;
        }
        let (ranks, nodes, server) = (&mut self.ranks, &mut self.nodes, &mut self.server);
        self.ended_jobs.retain(|&job| {
            if let Some(node) = nodes.get_mut(job.0) {
                *node = None;
            }
            server.forget_values(job);
            // Losses are listed when all ranks of all jobs have ended.
            if ranks.of(job).any(|rank| rank.lost.is_some()) {
                return false;
            }
            let forgotten = ranks.forget(job);
            if forgotten {
                nodes.remove(job.0);
                server.forget(job);
            }
            !forgotten
        });
    }

    /// Records a failure of a rank; the first failure decides the exit code and ends all other ranks.
    ///
    /// A death by a signal is never a consequence, except SIGBUS, which a rank also gets when it touches memory of a dying rank.
    /// Any other failure may be the reaction of a rank that saw another one die. A possible consequence is held back
    /// while another rank is dying: the kernel breaks its connections and unmaps its memory before it notifies this process.
    pub(super) fn fail(&mut self, proc: Proc, cause: Cause, code: i32) {
        if self.plan.tolerates_deaths && cause.is_a_death() {
            return self.lose(proc, &cause, code);
        }
        if !self.is_running() || self.is_explained(proc) || self.is_dismissed(proc) {
            return;
        }
        let may_be_explained =
            self.deferred_cause.is_there() || Self::is_another_dying(&self.ranks, &[proc]);
        if cause.weight() < Weight::Certain && may_be_explained {
            return self.defer_cause(proc, cause, code);
        }
        self.fail_now(proc, &cause, code);
    }

    /// Returns true if a rank ends because of its own request for the end of the job, which is held back.
    pub(super) fn is_explained(&self, proc: Proc) -> bool {
        self.deferred_cause.is_of(proc)
    }

    fn fail_now(&mut self, proc: Proc, cause: &Cause, code: i32) {
        self.deferred_cause.clear();
        let Some(job) = self.ranks.get(proc).map(|rank| rank.job) else {
            return;
        };
        if self.is_dismissed(proc) {
            return;
        }
        let name = self.name_of(proc);
        let mut text = format!("{name} {cause}.");
        if let Some(call) = self.last_call(proc) {
            text += &format!(" {call}");
        }
        let connected = self.server.connected(job);
        let alive = self.ranks.iter().map(|(_, rank)| rank);
        let alive = alive.filter(|rank| rank.alive && !rank.is_dismissed);
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
        self.say(&text);
        if without == 0 {
            return self.end(code, libc::SIGTERM);
        }
        self.lifecycle.fail(code);
        self.dismiss(&connected, libc::SIGTERM);
    }

    pub(super) fn name_of(&self, proc: Proc) -> String {
        self.ranks.get(proc).map_or_else(String::new, |rank| {
            NamedRank {
                rank: rank.rank,
                size: rank.size,
                job: rank.job.0,
                pid: rank.pid,
                program: rank.program.clone(),
                host: self.host_name(rank.host),
            }
            .to_string()
        })
    }

    pub(super) fn last_call(&self, proc: Proc) -> Option<String> {
        last_call(&self.snapshot(proc)?)
    }

    /// Returns the current or last snapshot of a rank.
    pub(super) fn snapshot(&self, proc: Proc) -> Option<RankSnapshot> {
        let rank = self.ranks.get(proc)?;
        match self.nodes.get(rank.job.0)?.as_ref().filter(|_| rank.here) {
            Some(node) => node.snapshot_of(rank.local_rank),
            None => rank.snapshot.clone(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.lifecycle.is_running()
    }

    /// Begins the ending, unless it has begun.
    pub(super) fn end(&mut self, code: i32, signal: Signal) {
        if !self.is_running() {
            return;
        }
        self.ask_to_end(code, signal);
        self.lifecycle.begin_ending(self.plan.grace);
    }

    /// Ends the job because of a signal of the user, unless it is ending: ranks that handle the signal have time for that.
    pub(super) fn end_by_signal(&mut self, signal: Signal) {
        if !self.is_running() {
            return;
        }
        self.ask_to_end(128 + signal, signal);
        let (short, long) = (self.plan.grace, self.plan.signal_grace);
        self.lifecycle.begin_ending_by_signal(signal, short, long);
    }

    fn ask_to_end(&mut self, code: i32, signal: Signal) {
        self.lifecycle.fail(code);
        term_signals::ask_to_end(self.ranks.leaders(), signal);
        self.send_all_hosts(&ToDaemon::AskToEnd(signal));
        self.let_go();
        self.close_unanswered();
    }

    /// Carries out the step that is due for ranks that were asked to end.
    pub(super) fn go_on_ending(&mut self, due: Due) {
        match due {
            Due::KillWithoutHandler(signal) => {
                term_signals::kill_without_handler(self.ranks.leaders(), signal);
                self.send_all_hosts(&ToDaemon::KillWithoutHandler(signal));
            }
            Due::Announce { signal, left } => {
                let alive = self.ranks.iter().filter(|(_, rank)| rank.alive);
                let alive: Vec<u32> = alive.map(|(_, rank)| rank.rank).collect();
                let (ranks, have) = match alive.len() {
                    1 => ("rank", "has"),
                    _ => ("ranks", "have"),
                };
                self.say(&format!(
                    "{ranks} {} {have} not ended after {} and {have} {} s more; the same signal once more ends the job at once",
                    list(&alive),
                    sys::signal_name(signal),
                    left.as_secs_f64().ceil()
                ));
            }
            Due::Kill => self.kill(),
        }
    }

    /// Lets an adopted process go: it was not started here and is not killed here, but sees its socket close.
    fn let_go(&mut self) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.is_adopted) {
            rank.alive = false;
            rank.pmi = None;
        }
    }

    pub(super) fn kill(&mut self) {
        self.ranks.signal(libc::SIGKILL);
        self.send_all_hosts(&ToDaemon::Kill);
        self.lifecycle.note_killed();
    }
}
