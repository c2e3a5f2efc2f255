//! All ranks of all jobs, and the ways to reach them: this host's processes, the links to other hosts, and the outputs.
//!
//! What concerns every rank, wherever it runs, is done here once for this host and once for the others.

use super::jobs::Jobs;
use super::outputs::Outputs;
use crate::launch::ending::{Cause, last_call};
use crate::launch::links::Links;
use crate::launch::local_ranks::LocalRanks;
use crate::launch::pmi_socket::{PmiSocket, Received, SendOutcome};
use crate::launch::program::Plan;
use crate::launch::starter::{StartError, system};
use crate::launch::sys::Signal;
use crate::launch::term_signals;
use crate::launch::wire::ToDaemon;
use crate::pmi::{Job, Proc};
use std::collections::BTreeSet;

pub(super) struct AllRanks<'a> {
    pub(super) jobs: Jobs<'a>,
    pub(super) local: LocalRanks,
    pub(super) links: Links,
    pub(super) outputs: Outputs<'a>,
    /// Ranks of this host for which bytes were queued, or are queued no more.
    requeued: Vec<Proc>,
}

impl<'a> AllRanks<'a> {
    /// Creates the parts without ranks; ranks get `nofile` as their limit of open files.
    pub(super) fn new(plan: &'a Plan, nofile: Option<u64>) -> Result<Self, StartError> {
        Ok(AllRanks {
            jobs: Jobs::new(&plan.hosts),
            local: LocalRanks::new(nofile).map_err(system("opening /dev/null and a pipe"))?,
            links: Links::default(),
            outputs: Outputs::new(&plan.io, plan.quiet)?,
            requeued: Vec::new(),
        })
    }

    // ---- signals --------------------------------------------------------------------------------------------------

    /// Sends a signal of the user to all ranks.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.local.signal(signal);
        self.links.send_all(&ToDaemon::Signal(signal));
    }

    /// Asks all ranks to end by a signal. Hosts that have not answered run nothing, so they are not waited for.
    pub(super) fn ask_to_end(&mut self, signal: Signal) {
        term_signals::ask_to_end(self.local.leaders(), signal);
        self.links.send_all(&ToDaemon::AskToEnd(signal));
        self.let_go(|_| true);
        for number in self.links.unanswered() {
            let hosts = self.links.close(number);
            self.record_gone(&self.jobs.on_hosts(&hosts));
        }
    }

    /// Kills the ranks that do not handle the signal that has asked them to end.
    pub(super) fn kill_without_handler(&mut self, signal: Signal) {
        term_signals::kill_without_handler(self.local.leaders(), signal);
        self.links.send_all(&ToDaemon::KillWithoutHandler(signal));
    }

    pub(super) fn kill(&mut self) {
        self.local.signal(libc::SIGKILL);
        self.links.send_all(&ToDaemon::Kill);
    }

    /// Sends a signal to the ranks of some jobs.
    pub(super) fn signal_jobs(&mut self, jobs: &BTreeSet<usize>, signal: Signal) {
        let alive = self.jobs.alive();
        let of_jobs = alive.filter(|(_, rank)| jobs.contains(&rank.job.0));
        let (here, remote): (Vec<_>, Vec<_>) = of_jobs.partition(|(_, rank)| rank.here);
        let procs: Vec<usize> = remote.iter().map(|(proc, _)| proc.0).collect();
        let here: BTreeSet<Proc> = here.iter().map(|(proc, _)| *proc).collect();
        if !procs.is_empty() {
            self.links
                .send_all(&ToDaemon::SignalRanks { procs, signal });
        }
        self.local.signal_those(signal, |proc| here.contains(&proc));
    }

    /// Lets adopted processes go, which see their sockets close.
    pub(super) fn let_go(&mut self, is_meant: impl Fn(Job) -> bool) {
        for proc in self.jobs.let_go(is_meant) {
            self.local.close_socket(proc);
        }
    }

    // ---- requests and answers -------------------------------------------------------------------------------------

    /// Reads a rank of this host once.
    pub(super) fn receive(&mut self, proc: Proc) -> Received {
        let jobs = &mut self.jobs;
        self.local.receive(proc, |bytes| jobs.receive(proc, bytes))
    }

    /// Sends bytes to a rank. Returns false if it does not read.
    pub(super) fn send(&mut self, proc: Proc, bytes: Vec<u8>) -> bool {
        let Some(rank) = self.jobs.get(proc) else {
            return true;
        };
        if rank.here {
            return self.send_here(proc, |local| local.send(proc, &bytes));
        }
        let (host, proc) = (rank.host, proc.0);
        self.links.send(host, &ToDaemon::Pmi { proc, bytes });
        true
    }

    /// Writes the bytes that are queued for a rank of this host. Returns false if it does not read.
    pub(super) fn send_queued(&mut self, proc: Proc) -> bool {
        self.send_here(proc, |local| local.send_queued(proc))
    }

    fn send_here(&mut self, proc: Proc, send: impl FnOnce(&mut LocalRanks) -> SendOutcome) -> bool {
        let has_queued = |local: &LocalRanks| local.socket(proc).is_some_and(PmiSocket::has_queued);
        let had_queued = has_queued(&self.local);
        let sent = send(&mut self.local);
        if has_queued(&self.local) != had_queued {
            self.requeued.push(proc);
        }
        // The earlier requests of a rank that has hung up are still to be read; its end is found there.
        sent != SendOutcome::Unread
    }

    /// Returns the ranks whose sockets must be watched for space, or not any more.
    pub(super) fn take_requeued(&mut self) -> Vec<Proc> {
        std::mem::take(&mut self.requeued)
    }

    /// Receives nothing more from a rank; a rank of this host sees its socket close.
    pub(super) fn disconnect(&mut self, proc: Proc) {
        self.jobs.disconnect(proc);
        self.local.close_socket(proc);
    }

    // ---- ends -----------------------------------------------------------------------------------------------------

    /// The ranks of a job that were to start on `host` will never run.
    pub(super) fn never_began(&mut self, job: Job, host: u32) {
        self.record_gone(&self.jobs.not_started(job, host));
    }

    /// Nothing more arrives of ranks whose end was not reported.
    pub(super) fn record_gone(&mut self, procs: &[Proc]) {
        for &proc in procs {
            self.jobs.record_end(proc);
            self.disconnect(proc);
            self.outputs.end_all(proc);
        }
    }

    /// Formats the end of a rank, with its last call.
    pub(super) fn sentence(&self, proc: Proc, cause: &Cause) -> String {
        let mut text = format!("{} {cause}.", self.jobs.name_of(proc));
        let snapshot = self.jobs.snapshot(proc, &self.local);
        if let Some(call) = snapshot.as_ref().and_then(last_call) {
            text += &format!(" {call}");
        }
        text
    }
}
