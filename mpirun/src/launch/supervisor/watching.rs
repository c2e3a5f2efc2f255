//! Hang reports: which rank waits for which, when a user asks, when the time is over, or when no rank makes progress.

use super::super::wire::ToDaemon;
use super::{Supervisor, TIMED_OUT};
use crate::hang::{Report, Seen};
use crate::pmi::Proc;
use std::time::{Duration, Instant};

/// How long other hosts have to send the snapshots of their ranks.
const ANSWER: Duration = Duration::from_millis(150);

impl Supervisor<'_> {
    /// Asks all hosts for snapshots; the report is printed when they have had time to answer.
    pub(super) fn look(&mut self, then_end: bool) {
        if self.hang_detector.ends_with_report() {
            return;
        }
        self.send_all_hosts(&ToDaemon::TakeSnapshots);
        let patience = if self.links.is_empty() {
            Duration::ZERO
        } else {
            ANSWER
        };
        self.hang_detector.ask(patience, then_end);
    }

    pub(super) fn watch_job(&mut self) {
        let now = Instant::now();
        if let Some(then_end) = self.hang_detector.take_due(now) {
            let reports = self.reports();
            let texts: Vec<String> = reports.iter().map(Report::to_string).collect();
            self.say(&texts.join("\n"));
            self.write_reports(&reports);
            if then_end {
                self.end(TIMED_OUT, libc::SIGTERM);
            }
        }
        let Some(patience) = self.plan.hang_after.filter(|_| self.is_running()) else {
            return;
        };
        if !self.hang_detector.is_check_due(now) {
            return;
        }
        let counts = self.counts();
        if self.hang_detector.look(now, patience, counts) {
            self.say(&format!(
                "nothing has moved for {} s",
                patience.as_secs_f64()
            ));
            self.look(false);
        }
        self.send_all_hosts(&ToDaemon::TakeSnapshots);
    }

    fn counts(&self) -> Vec<(u64, u64)> {
        let count = |proc: Proc| {
            self.snapshot(proc)
                .map_or((0, 0), |seen| (seen.calls, seen.progress))
        };
        self.ranks.iter().map(|(proc, _)| count(proc)).collect()
    }

    /// Returns one report per job, as ranks of different jobs have the same numbers.
    fn reports(&self) -> Vec<Report> {
        let seen = |job: usize| {
            self.ranks
                .iter()
                .filter(|(_, rank)| rank.job.0 == job)
                .map(|(proc, rank)| Seen {
                    rank: rank.rank,
                    host: self.host_name(rank.host),
                    alive: rank.alive,
                    lost: rank.lost.clone(),
                    snapshot: self.snapshot(proc),
                })
                .collect()
        };
        let jobs = self.nodes.iter().map(|(job, _)| job);
        jobs.map(|job| Report::of(job, seen(job))).collect()
    }

    /// Writes the reports as JSON if the user has named a file; a later report replaces an earlier one.
    fn write_reports(&mut self, reports: &[Report]) {
        let plan = self.plan;
        let Some(file) = &plan.hang_report else {
            return;
        };
        let json: Vec<_> = reports.iter().map(Report::json).collect();
        let text = format!("{:#}\n", serde_json::json!({ "jobs": json }));
        if let Err(error) = std::fs::write(file, text) {
            self.lose_output(&format!(
                "the report cannot be written to {}: {error}",
                printable::name(file)
            ));
        }
    }
}
