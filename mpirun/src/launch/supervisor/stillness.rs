//! When reports of the ranks are due, and whether the job moves.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Stillness {
    /// A report that is to be made.
    report: Option<Due>,
    job: Option<Job>,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    then_end: bool,
}

/// What was last seen of the job.
#[derive(Debug)]
struct Job {
    next: Instant,
    since: Instant,
    /// Calls and progress of each rank.
    counts: Vec<(u64, u64)>,
    told: bool,
}

impl Stillness {
    /// Whether a report is to be made with which the job ends.
    pub(super) fn ends_with_report(&self) -> bool {
        self.report.is_some_and(|report| report.then_end)
    }

    /// A report is to be made so long from now, and the job may end with it.
    pub(super) fn ask(&mut self, patience: Duration, then_end: bool) {
        let at = Instant::now() + patience;
        self.report = Some(Due { at, then_end });
    }

    /// Whether a report is due, which is then made, and whether the job ends with it.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<bool> {
        let report = self.report.take_if(|report| now >= report.at)?;
        Some(report.then_end)
    }

    /// Whether it is time to look whether the job moves.
    pub(super) fn is_look_due(&self, now: Instant) -> bool {
        self.job.as_ref().is_none_or(|job| now >= job.next)
    }

    /// Looks; answers whether nothing has moved for as long as the user has patience, once.
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
            told: false,
        });
        job.next = next;
        if moved {
            (job.since, job.counts, job.told) = (now, counts, false);
            return false;
        }
        let over = !job.told && now - job.since >= patience;
        job.told |= over;
        over
    }

    /// When a report is due.
    pub(super) fn next_report(&self) -> Option<Instant> {
        self.report.map(|report| report.at)
    }

    /// When to look next.
    pub(super) fn next_look(&self) -> Instant {
        self.job.as_ref().map_or_else(Instant::now, |job| job.next)
    }
}
