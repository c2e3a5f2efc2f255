//! Hang detector: times of hang reports, and detection of missing progress.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct HangDetector {
    /// The next requested report.
    report: Option<Due>,
    job: Option<Job>,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    then_end: bool,
}

/// The last known progress of the job.
#[derive(Debug)]
struct Job {
    next: Instant,
    since: Instant,
    /// The number of calls and the progress count of each rank.
    counts: Vec<(u64, u64)>,
    /// Whether the missing progress has been reported.
    is_reported: bool,
}

impl HangDetector {
    /// Returns true if the job ends with the pending report.
    pub(super) fn ends_with_report(&self) -> bool {
        self.report.is_some_and(|report| report.then_end)
    }

    /// Requests a report after `patience`; if `then_end`, the job ends after the report.
    pub(super) fn ask(&mut self, patience: Duration, then_end: bool) {
        let at = Instant::now() + patience;
        self.report = Some(Due { at, then_end });
    }

    /// Removes the report that is due now; returns true if the job ends with the report.
    /// Returns `None` if no report is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<bool> {
        let report = self.report.take_if(|report| now >= report.at)?;
        Some(report.then_end)
    }

    /// Returns true if a progress check is due.
    pub(super) fn is_check_due(&self, now: Instant) -> bool {
        self.job.as_ref().is_none_or(|job| now >= job.next)
    }

    /// Checks progress. Returns true, once per stall, if no rank has made progress for `patience`.
    pub(super) fn look(
        &mut self,
        now: Instant,
        patience: Duration,
        counts: Vec<(u64, u64)>,
    ) -> bool {
        let next = now + (patience / 4).clamp(Duration::from_millis(5), Duration::from_secs(5));
        let moved = self.job.as_ref().is_none_or(|job| job.counts != counts);
        let job = self.job.get_or_insert(Job {
            next,
            since: now,
            counts: Vec::new(),
            is_reported: false,
        });
        job.next = next;
        if moved {
            (job.since, job.counts, job.is_reported) = (now, counts, false);
            return false;
        }
        let over = !job.is_reported && now - job.since >= patience;
        job.is_reported |= over;
        over
    }

    /// Returns the time of the next requested report.
    pub(super) fn next_report(&self) -> Option<Instant> {
        self.report.map(|report| report.at)
    }

    /// Returns the time of the next progress check.
    pub(super) fn next_check(&self) -> Instant {
        self.job.as_ref().map_or_else(Instant::now, |job| job.next)
    }
}
