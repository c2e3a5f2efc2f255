//! How the agent takes deaths: which of them is a failure, what is said of it, and how the others are ended.

use super::super::ending::{Cause, Who, last_call};
use super::super::polite;
use super::super::sys::{self, Ended, FailedStart, Signal};
use super::super::wire::ToDaemon;
use super::{Ending, GIVE_UP, Supervisor};
use crate::pmi::Proc;
use crate::rank_snapshot::RankSnapshot;
use std::time::{Duration, Instant};

/// How long an abort waits for news from other hosts, and for the end of a rank of this host that has begun to die.
const HEARSAY: Duration = Duration::from_millis(50);

/// A rank that has begun to die is waited for no longer than this: giving back much memory takes the system that long.
const DYING: Duration = Duration::from_secs(5);

/// A failure that may be the consequence of a death that has still to be heard of.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) until: Instant,
    since: Instant,
    who: Proc,
    cause: Cause,
    code: i32,
    /// Everybody who has asked for the end since; their own ends are no news.
    asked: Vec<Proc>,
}

impl Doubt {
    /// Somebody else asks for the end: the first who does so for a reason of its own is believed.
    fn hear(&mut self, who: Proc, cause: Cause, code: i32) {
        self.asked.push(who);
        if self.cause.is_another_s_end() && !cause.is_another_s_end() {
            (self.who, self.cause, self.code) = (who, cause, code);
        }
    }
}

impl Supervisor<'_> {
    /// A rank asks for the end of the job.
    ///
    /// With ranks on several hosts it may have seen a connection break sooner than we hear that the rank at its other end has died,
    /// which is what people want to know.
    pub(super) fn abort(&mut self, who: Proc, cause: Cause, code: i32) {
        if self.links.is_empty() {
            return self.fail(who, cause, code);
        }
        self.hold_cause(who, cause, code);
    }

    /// A failure waits for the news that may explain it.
    fn hold_cause(&mut self, who: Proc, cause: Cause, code: i32) {
        if !self.is_running() {
            return;
        }
        match &mut self.hold_cause {
            Some(hold_cause) => hold_cause.hear(who, cause, code),
            None => {
                let now = Instant::now();
                self.hold_cause = Some(Doubt {
                    until: now + HEARSAY,
                    since: now,
                    who,
                    cause,
                    code,
                    asked: vec![who],
                })
            }
        }
    }

    /// Whether a rank of this host, other than those that `asked` for the job's end, has begun to die.
    fn another_is_dying(&self, asked: &[Proc]) -> bool {
        let mut alive = self
            .ranks
            .iter()
            .filter(|(_, rank)| rank.alive && rank.here);
        alive.any(|(proc, rank)| !asked.contains(&proc) && sys::is_dying(rank.pid))
    }

    /// Believes a failure that nothing else has explained in the meantime.
    pub(super) fn settle_held_cause(&mut self) {
        let now = Instant::now();
        if self
            .hold_cause
            .as_ref()
            .is_none_or(|hold_cause| now < hold_cause.until)
        {
            return;
        }
        let Some(mut hold_cause) = self.hold_cause.take() else {
            return;
        };
        if now < hold_cause.since + DYING && self.another_is_dying(&hold_cause.asked) {
            hold_cause.until = now + HEARSAY;
            self.hold_cause = Some(hold_cause);
            return;
        }
        self.fail_now(hold_cause.who, &hold_cause.cause, hold_cause.code);
    }

    /// A rank of this host has ended.
    pub(super) fn on_exit(&mut self, proc: Proc, ended: Ended) {
        // What it said before it died counts before its death does: an abort, a finalize, a failed start.
        self.read_client(proc);
        let report = FailedStart::read(&self.reports.0);
        self.bury(proc, ended, report);
    }

    /// A rank has ended, on whichever host.
    pub(super) fn bury(&mut self, proc: Proc, ended: Ended, failed: Option<FailedStart>) {
        let Some(rank) = self.ranks.get_mut(proc) else {
            return;
        };
        rank.alive = false;
        if let Some(report) = failed {
            let (program, rank) = (rank.program.clone(), rank.rank);
            if self.is_running() {
                self.say(&format!(
                    "rank {rank} ({program}) could not be started: {report}"
                ));
            }
            self.end(report.code(), libc::SIGTERM);
            return;
        }
        let (initialized, finalized) = (
            self.server.has_initialized(proc),
            self.server.has_finalized(proc),
        );
        let is_awaited = self.server.is_awaited(rank.job);
        match ended {
            Ended::Exited(0) if !initialized && is_awaited => {
                self.fail(proc, Cause::NotMetParent, 1);
            }
            Ended::Exited(0) if !initialized || finalized => {
                self.find_abandoned();
                self.give_back(proc);
            }
            Ended::Exited(0) => self.fail(proc, Cause::NotFinalized, 1),
            // After MPI_Finalize nobody depends on it: the code counts, the others go on.
            _ if finalized => {
                if self.is_running() && self.status == 0 {
                    self.status = ended.code();
                    let who = self.who(proc);
                    self.say(&format!("{who} {} after MPI_Finalize", Cause::Died(ended)));
                }
            }
            _ => self.fail(proc, Cause::Died(ended), ended.code()),
        }
    }

    /// A spawned job that has ended well leaves nothing: a program may spawn for days.
    fn give_back(&mut self, proc: Proc) {
        let Some(job) = self.ranks.get(proc).map(|rank| rank.job) else {
            return;
        };
        let mut of_job = self.ranks.iter().filter(|(_, rank)| rank.job == job);
        if job.0 > 0 && !self.plan.needs_tapes() && of_job.all(|(_, rank)| !rank.alive) {
            if let Some(node) = self.nodes.get_mut(job.0) {
                *node = None;
            }
            self.server.forget_values(job);
        }
    }

    /// Something went wrong with a rank; if it is the first thing, it decides, and all others are ended.
    ///
    /// A death by a signal is never a consequence. Anything else may be the reaction of a rank that saw another one die, so it waits
    /// while a rank of this host is dying: the kernel breaks its connections before this process is told of its end.
    pub(super) fn fail(&mut self, proc: Proc, cause: Cause, code: i32) {
        if self.plan.tolerates_deaths && cause.is_a_death() {
            return self.lose(proc, &cause, code);
        }
        if !self.is_running() || self.is_explained(proc) {
            return;
        }
        let first = matches!(
            cause,
            Cause::Died(Ended::Killed(_)) | Cause::HostLost { .. }
        );
        if !first && (self.hold_cause.is_some() || self.another_is_dying(&[proc])) {
            return self.hold_cause(proc, cause, code);
        }
        self.fail_now(proc, &cause, code);
    }

    /// Whether a rank ends because it has asked for the end of the job, for a reason that is held back.
    pub(super) fn is_explained(&self, proc: Proc) -> bool {
        let asked = |hold_cause: &Doubt| hold_cause.asked.contains(&proc);
        self.hold_cause.as_ref().is_some_and(asked)
    }

    fn fail_now(&mut self, proc: Proc, cause: &Cause, code: i32) {
        self.hold_cause = None;
        let who = self.who(proc);
        let others = self.ranks.iter().filter(|(_, rank)| rank.alive).count();
        let mut text = format!("{who} {cause}.");
        if let Some(call) = self.last_call(proc) {
            text += &format!(" {call}");
        }
        if others > 0 {
            text += " All other ranks are ended.";
        }
        self.say(&text);
        self.end(code, libc::SIGTERM);
    }

    pub(super) fn who(&self, proc: Proc) -> String {
        self.ranks.get(proc).map_or_else(String::new, |rank| {
            Who {
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

    /// What a rank does, or did last.
    pub(super) fn snapshot(&self, proc: Proc) -> Option<RankSnapshot> {
        let rank = self.ranks.get(proc)?;
        match self.nodes.get(rank.job.0)?.as_ref().filter(|_| rank.here) {
            Some(node) => RankSnapshot::of_local(node, rank.local_rank),
            None => rank.snapshot.clone(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.ending, Ending::No)
    }

    /// Begins the ending, unless it has begun.
    pub(super) fn end(&mut self, code: i32, signal: Signal) {
        if !self.is_running() {
            return;
        }
        if self.status == 0 {
            self.status = code;
        }
        for signal in polite(signal) {
            self.signal_all(signal);
        }
        self.let_go();
        self.ending = Ending::Asked {
            until: Instant::now() + self.plan.grace,
        };
        self.cut_unanswered();
    }

    /// A process that was not started here is not ended here: it sees its socket close.
    fn let_go(&mut self) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.is_adopted) {
            rank.alive = false;
            rank.pmi = None;
        }
    }

    pub(super) fn kill(&mut self) {
        self.ranks.signal(libc::SIGKILL);
        self.send_all_hosts(&ToDaemon::Kill);
        self.ending = Ending::Killed {
            until: Instant::now() + GIVE_UP,
        };
    }
}
