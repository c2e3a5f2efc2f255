//! Ending some of the jobs: the connected set of a failure, or a spawned job that has failed to start. The other jobs go on.
//!
//! What the ranks of a dismissed job do from then on is a consequence and is not reported.

use super::super::sys::Signal;
use super::super::wire::ToDaemon;
use super::Supervisor;
use crate::pmi::Job;
use std::collections::BTreeSet;
use std::time::Instant;

/// Jobs that were asked to end, and the time at which each set is killed.
#[derive(Debug, Default)]
pub(super) struct Dismissals(Vec<(BTreeSet<usize>, Instant)>);

impl Dismissals {
    /// Returns when the next of them is due to be killed.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(_, until)| *until).min()
    }

    /// Removes and returns the jobs whose time is over.
    fn take_due(&mut self, now: Instant) -> Vec<BTreeSet<usize>> {
        let due = |(_, until): &mut (BTreeSet<usize>, Instant)| now >= *until;
        self.0.extract_if(.., due).map(|(jobs, _)| jobs).collect()
    }
}

impl Supervisor<'_> {
    /// Ends jobs while others go on, at once or after the grace period.
    pub(super) fn dismiss(&mut self, jobs: &BTreeSet<usize>, signal: Signal) {
        for rank in self.ranks.iter_mut() {
            if jobs.contains(&rank.job.0) {
                // Also a rank that has ended or was never started: no rank of its job waits for it any more.
                rank.is_dismissed = true;
                if rank.alive && rank.is_adopted {
                    // It was not started here, and sees its socket close.
                    rank.alive = false;
                    rank.pmi = None;
                }
            }
        }
        if signal == libc::SIGKILL {
            return self.signal_jobs(jobs, signal);
        }
        // A stopped process acts on no signal but SIGCONT and SIGKILL.
        for signal in [signal, libc::SIGCONT] {
            self.signal_jobs(jobs, signal);
        }
        let until = Instant::now() + self.plan.grace;
        self.dismissals.0.push((jobs.clone(), until));
    }

    fn signal_jobs(&mut self, jobs: &BTreeSet<usize>, signal: Signal) {
        let ranks = self.ranks.iter();
        let remote =
            ranks.filter(|(_, rank)| rank.alive && !rank.here && jobs.contains(&rank.job.0));
        let procs: Vec<usize> = remote.map(|(proc, _)| proc.0).collect();
        if !procs.is_empty() {
            self.send_all_hosts(&ToDaemon::SignalRanks { procs, signal });
        }
        self.ranks
            .signal_those(signal, |rank| jobs.contains(&rank.job.0));
    }

    /// Kills the ranks of dismissed jobs that have not ended in time.
    pub(super) fn kill_dismissed(&mut self, now: Instant) {
        for jobs in self.dismissals.take_due(now) {
            self.signal_jobs(&jobs, libc::SIGKILL);
        }
    }

    /// A spawned job will never connect to its parent: notifies the parent and ends what is left of the job.
    /// Returns false if no parent understands the notice.
    pub(super) fn fail_spawn(&mut self, job: Job, why: &str) -> bool {
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
}
