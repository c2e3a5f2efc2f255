//! Hang reports: by request, at the end of the time limit, or after a time without progress.

use super::control::JobControl;
use super::hang_detector::HangDetector;
use super::jobs::Jobs;
use super::outputs::Outputs;
use crate::hang::{Report, Seen};
use crate::launch::links::Links;
use crate::launch::local_ranks::LocalRanks;
use crate::launch::wire::ToDaemon;
use crate::pmi::{Job, Proc};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time that other hosts have to send their ranks' snapshots.
const ANSWER: Duration = Duration::from_millis(150);

pub(super) struct HangReports<'a> {
    detector: HangDetector,
    /// The time without progress after which a report is printed (`--hang-after`).
    patience: Option<Duration>,
    /// The file for reports as JSON (`--hang-report`).
    file: Option<&'a Path>,
}

impl<'a> HangReports<'a> {
    pub(super) fn new(patience: Option<Duration>, file: Option<&'a Path>) -> HangReports<'a> {
        HangReports {
            detector: HangDetector::default(),
            patience,
            file,
        }
    }

    /// Requests snapshots from all hosts; the report is printed after the time for their answers.
    pub(super) fn request(&mut self, links: &mut Links, then_end: bool) {
        if self.detector.ends_with_report() {
            return;
        }
        links.send_all(&ToDaemon::TakeSnapshots);
        let delay = match links.is_empty() {
            true => Duration::ZERO,
            false => ANSWER,
        };
        self.detector.ask(delay, then_end);
    }

    /// Returns the time of the next report or progress check.
    pub(super) fn next(&self, is_running: bool) -> Option<Instant> {
        let check = self.patience.filter(|_| is_running);
        let check = check.map(|_| self.detector.next_check());
        self.detector.next_report().into_iter().chain(check).min()
    }

    /// Prints the report that is due and checks progress.
    /// Returns true if the job ends with the report.
    pub(super) fn step(&mut self, now: Instant, control: &mut JobControl<'_>) -> bool {
        let ends = self.detector.take_due(now).is_some_and(|then_end| {
            self.print(
                &control.ranks.jobs,
                &control.ranks.local,
                &mut control.ranks.outputs,
            );
            then_end
        });
        let checked = self.patience.filter(|_| control.is_running() && !ends);
        if let Some(patience) = checked.filter(|_| self.detector.is_check_due(now)) {
            let counts = counts(&control.ranks.jobs, &control.ranks.local);
            if self.detector.look(now, patience, counts) {
                let patience = patience.as_secs_f64();
                control
                    .ranks
                    .outputs
                    .say(&format!("nothing has moved for {patience} s"));
                self.request(&mut control.ranks.links, false);
            }
            control.ranks.links.send_all(&ToDaemon::TakeSnapshots);
        }
        ends
    }

    pub(super) fn print(&self, jobs: &Jobs<'_>, local: &LocalRanks, outputs: &mut Outputs<'_>) {
        let numbers = jobs.numbers().into_iter();
        let reports: Vec<Report> = numbers
            .map(|job| report(job, jobs, local, outputs))
            .collect();
        let texts: Vec<String> = reports.iter().map(Report::to_string).collect();
        outputs.say(&texts.join("\n"));
        let Some(file) = self.file else { return };
        if let Err(error) = write(file, &reports) {
            outputs.lose(&format!(
                "the report cannot be written to {}: {error}",
                printable::name(file)
            ));
        }
    }
}

/// Returns the number of calls and the progress count of each rank.
fn counts(jobs: &Jobs<'_>, local: &LocalRanks) -> Vec<(u64, u64)> {
    let snapshots = jobs.iter().map(|(proc, _)| jobs.snapshot(proc, local));
    snapshots
        .map(|seen| seen.map_or((0, 0), |seen| (seen.calls, seen.progress)))
        .collect()
}

/// Returns the report of one job; jobs are reported separately, since their rank numbers overlap.
fn report(job: Job, jobs: &Jobs<'_>, local: &LocalRanks, outputs: &Outputs<'_>) -> Report {
    let ranks = jobs.iter().filter(|(_, rank)| rank.job == job);
    let seen = ranks.filter_map(|(proc, _)| {
        Some(Seen {
            exception: outputs.exception(proc),
            ..seen(proc, jobs, local)?
        })
    });
    Report::of(job.0, seen.collect())
}

/// Returns the present state of a rank, as far as it is known.
pub(super) fn seen(proc: Proc, jobs: &Jobs<'_>, local: &LocalRanks) -> Option<Seen> {
    let rank = jobs.get(proc)?;
    Some(Seen {
        rank: rank.rank,
        host: jobs.host_name(rank.host),
        alive: rank.alive,
        lost: rank.lost.clone(),
        exception: None,
        snapshot: jobs.snapshot(proc, local),
    })
}

/// Writes reports as JSON; a later report replaces an earlier one.
fn write(file: &Path, reports: &[Report]) -> std::io::Result<()> {
    let json: Vec<_> = reports.iter().map(Report::json).collect();
    let text = format!("{:#}\n", serde_json::json!({ "jobs": json }));
    std::fs::write(file, text)
}
