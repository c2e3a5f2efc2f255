//! Table of all ranks of all jobs on all hosts: names, states, partially received requests.
//!
//! Other modules of the supervisor read ranks; only methods of this table change them.

use super::super::ending::{NamedRank, list};
use super::super::local_ranks::LocalRanks;
use super::super::wire::Order;
use crate::hosts::Host;
use crate::ledger::Ledger;
use crate::pmi::{Job, Proc};
use crate::rank_snapshot::RankSnapshot;
use mpi_core::rte::wire::{Lines, WireError};
use std::collections::{BTreeMap, BTreeSet};

/// The host index of this host if the plan does not contain this host.
const NOWHERE: u32 = u32::MAX;

/// One rank of one job.
#[derive(Debug)]
pub(super) struct Rank {
    pub(super) job: Job,
    pub(super) rank: u32,
    pub(super) size: usize,
    pub(super) program: String,
    /// The rank's host, as an index into the plan's hosts.
    pub(super) host: u32,
    /// Whether the rank runs on this host.
    pub(super) here: bool,
    /// Whether the rank is an adopted process, which started this launcher.
    /// The process gets no signals, and the closing of its socket counts as its end.
    pub(super) is_adopted: bool,
    /// The process id; 0 until the launcher on its host has reported the start.
    pub(super) pid: i32,
    pub(super) alive: bool,
    /// Whether the rank's host has reported that the rank has begun to die.
    pub(super) is_dying: bool,
    /// Whether the rank's job is being ended while others continue; the rank's end is not reported.
    pub(super) is_dismissed: bool,
    /// The cause of the rank's death, if the job continues without the rank.
    pub(super) lost: Option<String>,
    /// The received bytes of the rank's next request; `None` if the rank is disconnected.
    requests: Option<Lines>,
    /// The last snapshot that the rank's host has sent.
    snapshot: Option<RankSnapshot>,
}

impl Rank {
    /// Returns true while requests may arrive from this rank.
    pub(super) fn is_connected(&self) -> bool {
        self.requests.is_some()
    }
}

/// The ranks of all jobs, by process index.
pub(super) struct Jobs<'a> {
    hosts: &'a [Host],
    /// This host's index in `hosts`.
    here: u32,
    ranks: Ledger<Rank>,
    /// Spawned jobs whose ranks have all ended but may have unread data.
    over: BTreeSet<Job>,
}

impl<'a> Jobs<'a> {
    /// Creates an empty table for jobs on these hosts.
    pub(super) fn new(hosts: &'a [Host]) -> Jobs<'a> {
        let here = hosts.iter().position(|host| host.here);
        Jobs {
            hosts,
            here: here.map_or(NOWHERE, |host| host as u32),
            ranks: Ledger::default(),
            over: BTreeSet::new(),
        }
    }

    /// Returns this host's index among the plan's hosts.
    pub(super) fn here(&self) -> u32 {
        self.here
    }

    pub(super) fn host_name(&self, host: u32) -> String {
        let host = self.hosts.get(host as usize);
        host.map_or_else(String::new, |host| host.name.clone())
    }

    // ---- ranks ----------------------------------------------------------------------------------------------------

    /// Adds all ranks of a job that is about to start, in rank order.
    pub(super) fn add(&mut self, order: &Order) {
        for (rank, (&host, &appnum)) in (0..).zip(order.hosts.iter().zip(&order.appnums)) {
            let app = order.apps.get(appnum);
            let program = app.map(|app| app.program.to_string_lossy().into_owned());
            let job = (Job(order.job), rank, order.hosts.len());
            self.push(job, host, program.unwrap_or_default());
        }
    }

    /// Adds the process that has started this launcher, as the only rank of a job.
    pub(super) fn add_adopted(&mut self, job: Job, program: String, pid: i32) -> Proc {
        let proc = self.push((job, 0, 1), self.here, program);
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            (rank.is_adopted, rank.here, rank.pid) = (true, true, pid);
        }
        proc
    }

    fn push(&mut self, (job, rank, size): (Job, u32, usize), host: u32, program: String) -> Proc {
        Proc(self.ranks.push(Rank {
            job,
            rank,
            size,
            program,
            host,
            here: host == self.here,
            is_adopted: false,
            pid: 0,
            alive: true,
            is_dying: false,
            is_dismissed: false,
            lost: None,
            requests: Some(Lines::default()),
            snapshot: None,
        }))
    }

    /// Returns a rank, living or ended, unless its job was removed.
    pub(super) fn get(&self, proc: Proc) -> Option<&Rank> {
        self.ranks.get(proc.0)
    }

    /// Returns all ranks in the table, with their process indexes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Proc, &Rank)> {
        self.ranks.iter().map(|(number, rank)| (Proc(number), rank))
    }

    /// Returns the ranks of a job.
    pub(super) fn of(&self, job: Job) -> impl Iterator<Item = &Rank> {
        let ranks = self.ranks.iter().map(|(_, rank)| rank);
        ranks.filter(move |rank| rank.job == job)
    }

    /// Returns the jobs that have ranks in the table.
    pub(super) fn numbers(&self) -> BTreeSet<Job> {
        self.ranks.iter().map(|(_, rank)| rank.job).collect()
    }

    /// Returns the number of ranks so far, including ended and removed ranks.
    pub(super) fn count(&self) -> usize {
        self.ranks.next()
    }

    /// Returns true if ranks have been removed; none of these was lost.
    pub(super) fn has_forgotten(&self) -> bool {
        self.ranks.has_forgotten()
    }

    /// Returns the living ranks.
    pub(super) fn alive(&self) -> impl Iterator<Item = (Proc, &Rank)> {
        self.iter().filter(|(_, rank)| rank.alive)
    }

    /// Returns true if a rank is alive on any host.
    pub(super) fn any_alive(&self) -> bool {
        self.alive().next().is_some()
    }

    /// Returns true if a rank runs on another host, `host`, which alone may report about the rank.
    pub(super) fn is_on(&self, proc: Proc, host: u32) -> bool {
        self.get(proc)
            .is_some_and(|rank| rank.host == host && !rank.here)
    }

    /// Returns the ranks on `hosts`, without ranks on this host.
    pub(super) fn on_hosts(&self, hosts: &[u32]) -> Vec<Proc> {
        let ranks = self.iter();
        let there = ranks.filter(|(_, rank)| !rank.here && hosts.contains(&rank.host));
        there.map(|(proc, _)| proc).collect()
    }

    /// Returns the ranks of a job on `host` that were not started.
    pub(super) fn not_started(&self, job: Job, host: u32) -> Vec<Proc> {
        let ranks = self.iter();
        let waiting =
            ranks.filter(|(_, rank)| rank.host == host && rank.job == job && rank.pid == 0);
        waiting.map(|(proc, _)| proc).collect()
    }

    /// Returns true if a rank outside `asked` (the ranks that have aborted) has begun to die.
    pub(super) fn is_another_dying(&self, local: &LocalRanks, asked: &[Proc]) -> bool {
        let is_other = |proc: &Proc| {
            let rank = self.get(*proc);
            rank.is_some_and(|rank| rank.alive && !rank.is_dismissed) && !asked.contains(proc)
        };
        let reported = self.iter().filter(|(_, rank)| rank.is_dying);
        let reported = reported.map(|(proc, _)| proc);
        reported.chain(local.dying()).any(|proc| is_other(&proc))
    }

    // ---- state ----------------------------------------------------------------------------------------------------

    /// Records the start of a rank.
    pub(super) fn record_start(&mut self, proc: Proc, pid: i32) {
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            rank.pid = pid;
        }
    }

    /// Records that a rank has begun to die.
    pub(super) fn record_dying(&mut self, proc: Proc) {
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            rank.is_dying = true;
        }
    }

    /// Records a snapshot that the host of a rank has sent.
    pub(super) fn record_snapshot(&mut self, proc: Proc, snapshot: Option<RankSnapshot>) {
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            rank.snapshot = snapshot;
        }
    }

    /// Records the end of a rank.
    pub(super) fn record_end(&mut self, proc: Proc) {
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            rank.alive = false;
        }
    }

    /// Records that a dead rank is lost and the job continues without it.
    pub(super) fn record_lost(&mut self, proc: Proc, cause: String) {
        self.disconnect(proc);
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            rank.lost = Some(cause);
        }
    }

    /// Records that jobs are being ended while others continue.
    /// All ranks of the jobs are marked, also those that have ended or were never started.
    pub(super) fn dismiss(&mut self, jobs: &BTreeSet<usize>) {
        let ranks = self.ranks.values_mut();
        for rank in ranks.filter(|rank| jobs.contains(&rank.job.0)) {
            rank.is_dismissed = true;
        }
    }

    /// Disconnects the adopted processes of the selected jobs; adopted processes are never killed.
    /// Returns the processes whose sockets the caller must close.
    pub(super) fn let_go(&mut self, is_meant: impl Fn(Job) -> bool) -> Vec<Proc> {
        let adopted = self.iter().filter(|(_, rank)| rank.is_adopted);
        let adopted = adopted.filter(|(_, rank)| is_meant(rank.job));
        let adopted: Vec<Proc> = adopted.map(|(proc, _)| proc).collect();
        for &proc in &adopted {
            self.record_end(proc);
            self.disconnect(proc);
        }
        adopted
    }

    /// Appends bytes to the requests of a rank.
    pub(super) fn receive(&mut self, proc: Proc, bytes: &[u8]) {
        let rank = self.ranks.get_mut(proc.0);
        if let Some(requests) = rank.and_then(|rank| rank.requests.as_mut()) {
            requests.push(bytes);
        }
    }

    /// Returns the complete requests of a rank; the list is empty if the rank is disconnected.
    pub(super) fn take_requests(&mut self, proc: Proc) -> Result<Vec<Vec<u8>>, WireError> {
        let rank = self.ranks.get_mut(proc.0);
        match rank.and_then(|rank| rank.requests.as_mut()) {
            Some(requests) => std::iter::from_fn(|| requests.next_line().transpose()).collect(),
            None => Ok(Vec::new()),
        }
    }

    /// Records that no more requests are read from a rank.
    pub(super) fn disconnect(&mut self, proc: Proc) {
        if let Some(rank) = self.ranks.get_mut(proc.0) {
            rank.requests = None;
        }
    }

    // ---- jobs that are over ---------------------------------------------------------------------------------------

    /// Queues a spawned job for removal if all its ranks have ended.
    /// Otherwise the table would grow without a limit in a program that spawns jobs for days.
    pub(super) fn queue_if_over(&mut self, job: Job) {
        let is_over = self.of(job).count() > 0 && self.of(job).all(|rank| !rank.alive);
        if job.0 > 0 && is_over {
            self.over.insert(job);
        }
    }

    /// Returns the jobs that are queued for removal.
    pub(super) fn over(&self) -> Vec<Job> {
        self.over.iter().copied().collect()
    }

    /// Removes a queued job unless a rank may have unread data.
    /// Returns true if the job was removed.
    ///
    /// A job with lost ranks stays in the table, since all losses are listed at the end.
    pub(super) fn forget(&mut self, job: Job, has_unread: impl Fn(Proc) -> bool) -> bool {
        if self.of(job).any(|rank| rank.lost.is_some()) {
            self.over.remove(&job);
            return false;
        }
        let of_job = self.iter().filter(|(_, rank)| rank.job == job);
        let of_job: Vec<Proc> = of_job.map(|(proc, _)| proc).collect();
        let unread = |&proc: &Proc| {
            let rank = self.get(proc);
            rank.is_some_and(|rank| rank.alive || rank.is_connected()) || has_unread(proc)
        };
        if of_job.iter().any(unread) {
            return false;
        }
        for proc in of_job {
            self.ranks.remove(proc.0);
        }
        self.over.remove(&job);
        true
    }

    // ---- sentences ------------------------------------------------------------------------------------------------

    /// Formats a rank, for example: "rank 1 (of 2; prog, pid 17) on host".
    pub(super) fn name_of(&self, proc: Proc) -> String {
        self.get(proc).map_or_else(String::new, |rank| {
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

    /// Formats ranks, for example: "ranks 2, 3 and 0, 1 of spawned job 1".
    pub(super) fn names_of(&self, procs: &[Proc]) -> String {
        let mut jobs: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for rank in procs.iter().filter_map(|&proc| self.get(proc)) {
            jobs.entry(rank.job.0).or_default().push(rank.rank);
        }
        let of_job = |(job, ranks): (usize, Vec<u32>)| match job {
            0 => list(&ranks),
            job => format!("{} of spawned job {job}", list(&ranks)),
        };
        let named: Vec<String> = jobs.into_iter().map(of_job).collect();
        format!("ranks {}", named.join(" and "))
    }

    /// Formats the losses of all jobs.
    /// For example: "2 of 8 ranks were lost: 2, 5; 1 of 2 ranks of spawned job 1 was lost: 0".
    pub(super) fn losses(&self) -> String {
        let numbers = self.numbers().into_iter();
        let losses: Vec<String> = numbers.filter_map(|job| self.losses_of(job)).collect();
        losses.join("; ")
    }

    fn losses_of(&self, job: Job) -> Option<String> {
        let mut size = 0;
        let mut lost = Vec::new();
        for rank in self.of(job) {
            size = rank.size;
            lost.extend(rank.lost.is_some().then_some(rank.rank));
        }
        let of = match job.0 {
            0 => String::new(),
            job => format!(" of spawned job {job}"),
        };
        let verb = if lost.len() == 1 { "was" } else { "were" };
        let (count, list) = (lost.len(), list(&lost));
        (count > 0).then(|| format!("{count} of {size} ranks{of} {verb} lost: {list}"))
    }

    /// Returns a snapshot of a rank: the current one on this host, else the last one that was sent.
    pub(super) fn snapshot(&self, proc: Proc, local: &LocalRanks) -> Option<RankSnapshot> {
        let rank = self.get(proc)?;
        match rank.here {
            true => local.snapshot(proc),
            false => rank.snapshot.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Request, request};

    /// Returns a table with job 0 of three ranks and spawned job 1 of two ranks, all on this host.
    fn table(hosts: &[Host]) -> Jobs<'_> {
        let mut jobs = Jobs::new(hosts);
        for (job, size) in [(0, 3), (1, 2)] {
            for rank in 0..size as u32 {
                jobs.push((Job(job), rank, size), 0, "prog".into());
            }
        }
        jobs
    }

    fn hosts() -> Vec<Host> {
        match request(["mpirun", "-n", "1", "prog"].map(Into::into)).unwrap() {
            Request::Job(plan) => plan.hosts,
            Request::Restart(_)
            | Request::Daemon
            | Request::DaemonWithImages
            | Request::Adoption { .. } => {
                panic!("a job was asked for")
            }
        }
    }

    #[test]
    fn a_spawned_job_is_forgotten_when_it_has_ended_and_was_read_to_the_end() {
        let hosts = hosts();
        let mut jobs = table(&hosts);
        jobs.record_end(Proc(3));
        jobs.queue_if_over(Job(1));
        assert!(jobs.over().is_empty(), "its rank 1 lives");
        jobs.record_end(Proc(4));
        jobs.queue_if_over(Job(1));
        jobs.queue_if_over(Job(0));
        assert_eq!(jobs.over(), [Job(1)]);
        assert!(!jobs.forget(Job(1), |_| false), "both are connected");
        jobs.disconnect(Proc(3));
        jobs.disconnect(Proc(4));
        assert!(!jobs.forget(Job(1), |proc| proc == Proc(4)));
        assert!(jobs.forget(Job(1), |_| false));
        assert_eq!((jobs.over(), jobs.of(Job(1)).count()), (Vec::new(), 0));
        assert_eq!((jobs.count(), jobs.has_forgotten()), (5, true));
    }

    #[test]
    fn a_spawned_job_that_has_lost_a_rank_is_listed_at_the_end() {
        let hosts = hosts();
        let mut jobs = table(&hosts);
        for proc in [1, 3, 4].map(Proc) {
            jobs.record_end(proc);
            jobs.record_lost(proc, "was killed".into());
        }
        jobs.queue_if_over(Job(1));
        assert!(!jobs.forget(Job(1), |_| false));
        assert!(jobs.over().is_empty());
        assert_eq!(
            jobs.losses(),
            "1 of 3 ranks was lost: 1; 2 of 2 ranks of spawned job 1 were lost: 0, 1"
        );
        let named = jobs.names_of(&[0, 1, 4].map(Proc));
        assert_eq!(named, "ranks 0, 1 and 1 of spawned job 1");
    }

    #[test]
    fn requests_are_cut_into_lines_until_a_rank_is_disconnected() {
        let hosts = hosts();
        let mut jobs = table(&hosts);
        jobs.receive(Proc(2), b"cmd=a\ncmd=b\ncm");
        let lines = |jobs: &mut Jobs<'_>| jobs.take_requests(Proc(2)).unwrap();
        assert_eq!(lines(&mut jobs).len(), 2);
        jobs.receive(Proc(2), b"d=c\n");
        assert_eq!(lines(&mut jobs).len(), 1);
        jobs.receive(Proc(2), b"cmd=d\n");
        jobs.disconnect(Proc(2));
        assert!(lines(&mut jobs).is_empty());
    }
}
