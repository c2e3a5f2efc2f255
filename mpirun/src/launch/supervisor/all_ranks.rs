//! Operations on the ranks of all jobs on all hosts: signals, answers and losses.
//!
//! Each operation acts on this host's processes and sends an order over the links to other hosts.

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
    /// Ranks of this host whose sockets have begun or ceased to have queued bytes.
    requeued: Vec<Proc>,
}

impl<'a> AllRanks<'a> {
    /// Creates the tables without ranks; `nofile` is the limit of open files for ranks.
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

    /// Sends a signal from the user to all ranks.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.local.signal(signal);
        self.links.send_all(&ToDaemon::Signal(signal));
    }

    /// Sends a signal that requests termination to all ranks.
    /// Closes the links to hosts that have not sent their greeting, because these run no ranks.
    pub(super) fn ask_to_end(&mut self, signal: Signal) {
        term_signals::ask_to_end(self.local.leaders(), signal);
        self.links.send_all(&ToDaemon::AskToEnd(signal));
        self.let_go(|_| true);
        for number in self.links.unanswered() {
            let hosts = self.links.close(number);
            self.record_gone(&self.jobs.on_hosts(&hosts));
        }
    }

    /// Kills the ranks that have no handler for the signal that requested their termination.
    pub(super) fn kill_without_handler(&mut self, signal: Signal) {
        term_signals::kill_without_handler(self.local.leaders(), signal);
        self.links.send_all(&ToDaemon::KillWithoutHandler(signal));
    }

    pub(super) fn kill(&mut self) {
        self.local.signal(libc::SIGKILL);
        self.links.send_all(&ToDaemon::Kill);
    }

    /// Sends a signal to all ranks of the jobs `jobs`.
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

    /// Closes the sockets of the adopted processes in jobs for which `is_meant` returns true.
    /// These processes then count as ended.
    pub(super) fn let_go(&mut self, is_meant: impl Fn(Job) -> bool) {
        for proc in self.jobs.let_go(is_meant) {
            self.local.close_socket(proc);
        }
    }

    // ---- requests and answers -------------------------------------------------------------------------------------

    /// Reads the PMI socket of a rank of this host with one system call.
    pub(super) fn receive(&mut self, proc: Proc) -> Received {
        let jobs = &mut self.jobs;
        self.local.receive(proc, |bytes| jobs.receive(proc, bytes))
    }

    /// Sends bytes to a rank's PMI socket. Returns false if the rank does not read its socket.
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

    /// Sends the reply that lets a process begin its rank's program `program`, with the memory of its host for that program.
    /// Returns false if the rank does not read its socket.
    pub(super) fn welcome(&mut self, proc: Proc, program: u32, bytes: Vec<u8>) -> bool {
        let Some(rank) = self.jobs.get(proc) else {
            return true;
        };
        if rank.here {
            return self.send_here(proc, |local| local.welcome(proc, program, &bytes));
        }
        let (host, proc) = (rank.host, proc.0);
        let order = ToDaemon::Welcome {
            proc,
            program,
            bytes,
        };
        self.links.send(host, &order);
        true
    }

    /// Writes queued bytes to a rank of this host.
    /// Returns false if the rank does not read its socket.
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
        // A hang-up is no error here: the rank's unread requests and its hang-up are read later.
        sent != SendOutcome::Unread
    }

    /// Returns the ranks for which the epoll must begin or cease to watch for socket space.
    pub(super) fn take_requeued(&mut self) -> Vec<Proc> {
        std::mem::take(&mut self.requeued)
    }

    /// Closes the connection to a rank: no request is read from then on.
    pub(super) fn disconnect(&mut self, proc: Proc) {
        self.jobs.disconnect(proc);
        self.local.close_socket(proc);
    }

    // ---- ends -----------------------------------------------------------------------------------------------------

    /// Records that the ranks of a job on `host` will never be started.
    pub(super) fn never_began(&mut self, job: Job, host: u32) {
        self.record_gone(&self.jobs.not_started(job, host));
    }

    /// Records the end of ranks on lost hosts, which no report will announce.
    pub(super) fn record_gone(&mut self, procs: &[Proc]) {
        for &proc in procs {
            self.jobs.record_end(proc);
            self.disconnect(proc);
            self.outputs.end_all(proc);
        }
    }

    /// Formats the end of a rank with its last MPI call.
    pub(super) fn sentence(&self, proc: Proc, cause: &Cause) -> String {
        let mut text = format!("{} {cause}.", self.jobs.name_of(proc));
        let snapshot = self.jobs.snapshot(proc, &self.local);
        if let Some(call) = snapshot.as_ref().and_then(last_call) {
            text += &format!(" {call}");
        }
        text
    }
}
