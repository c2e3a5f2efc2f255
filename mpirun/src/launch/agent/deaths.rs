//! How the agent takes deaths: which of them is a failure, what is said of it, and how the others are ended.

use super::super::ending::{Cause, Who, last_call};
use super::super::sys::{Ended, FailedStart, Signal};
use super::{Agent, Ending, GIVE_UP};
use crate::node;
use crate::pmi::Proc;
use std::time::Instant;

impl Agent<'_> {
    pub(super) fn bury(&mut self, proc: Proc, ended: Ended) {
        // What it said before it died counts before its death does: an abort, a finalize, a failed start.
        self.hear_client(proc);
        let report = FailedStart::read(&self.reports.0);
        let Some(rank) = self.ranks.get_mut(proc) else {
            return;
        };
        rank.alive = false;
        if let Some(report) = report {
            let (program, rank) = (rank.program.clone(), rank.rank);
            if self.is_running() {
                self.say(&format!(
                    "rank {rank} ({program}) could not be started: {report}"
                ));
            }
            self.end(
                if report.errno == libc::EACCES {
                    126
                } else {
                    127
                },
                libc::SIGTERM,
            );
            return;
        }
        let (initialized, finalized) = (
            self.server.has_initialized(proc),
            self.server.has_finalized(proc),
        );
        match ended {
            Ended::Exited(0) if !initialized || finalized => self.look_for_abandoned(),
            Ended::Exited(0) => self.fail(proc, &Cause::NotFinalized, 1),
            // After MPI_Finalize nobody depends on it: the code counts, the others go on.
            _ if finalized => {
                if self.is_running() && self.status == 0 {
                    self.status = ended.code();
                    let who = self.who(proc);
                    self.say(&format!("{who} {} after MPI_Finalize", Cause::Died(ended)));
                }
            }
            _ => self.fail(proc, &Cause::Died(ended), ended.code()),
        }
    }

    /// Something went wrong with a rank; if it is the first thing, it decides, and all others are ended.
    pub(super) fn fail(&mut self, proc: Proc, cause: &Cause, code: i32) {
        if !self.is_running() {
            return;
        }
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
                host: self.host.clone(),
            }
            .to_string()
        })
    }

    pub(super) fn last_call(&self, proc: Proc) -> Option<String> {
        let (job, rank) = self.ranks.get(proc).map(|rank| (rank.job, rank.rank))?;
        let state = self.nodes.get(job.0)?.state_of(rank)?;
        last_call(&state, node::now_ns(), node::call_name)
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
        self.ranks.signal(signal);
        if signal != libc::SIGTERM {
            // A shell ignores SIGINT for what it runs; SIGTERM reaches those too.
            self.ranks.signal(libc::SIGTERM);
        }
        // A stopped process takes no signal but this one and SIGKILL.
        self.ranks.signal(libc::SIGCONT);
        self.ending = Ending::Asked {
            until: Instant::now() + self.plan.grace,
        };
    }

    pub(super) fn kill(&mut self) {
        self.ranks.signal(libc::SIGKILL);
        self.ending = Ending::Killed {
            until: Instant::now() + GIVE_UP,
        };
    }
}
