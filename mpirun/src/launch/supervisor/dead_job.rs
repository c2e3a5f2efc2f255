//! Deadlocked jobs: all ranks wait inside MPI, and no rank can ever make progress (`--end-dead`).
//!
//! The proof is in [`crate::hang::proof`]; this module takes the snapshots for the proof.
//! Snapshots of other hosts are requested only while all ranks of this host are passive.
//! The next round begins only after all hosts have answered, so rounds never overlap.
//! Ranks that make no progress while others do are reported too ([`crate::hang::standstill`]).

use super::control::JobControl;
use super::watching::seen;
use crate::hang::proof::{Proof, may_be_passive};
use crate::hang::standstill::Standstill;
use crate::hang::{Finding, Seen};
use crate::launch::program::{EndDead, Plan};
use crate::launch::wire::ToDaemon;
use crate::pmi::{Job, Proc};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The interval of checks while the job makes progress; [`ROUND`] is the interval during a proof.
const PAUSE: Duration = Duration::from_millis(400);
const ROUND: Duration = Duration::from_millis(100);
/// The interval of rounds in a job on several hosts: each round sends a message to every host.
const ROUND_OF_HOSTS: Duration = Duration::from_millis(250);

/// The interval of requests to other hosts after a rank on another host has made progress.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// The interval of checks for ranks that make no progress while others do.
const PART: Duration = Duration::from_secs(2);

/// The result of a check: the apparent state of the job.
pub(super) enum Seems {
    /// No new finding.
    Alive,
    /// No rank can make progress any more; returned once for each proof.
    Dead,
    /// These ranks have made no progress for long, while others have.
    InPart(Vec<Finding>),
}

pub(super) struct DeadJob {
    wanted: EndDead,
    proof: Proof,
    standstill: Standstill,
    next_part: Instant,
    next: Instant,
    /// The time in nanoseconds of each remote rank's snapshot in the last round.
    /// The time is 0 if the rank did not wait.
    used: BTreeMap<Proc, u64>,
    is_asked: bool,
    is_reported: bool,
}

impl DeadJob {
    pub(super) fn new(plan: &Plan) -> DeadJob {
        DeadJob {
            // A notice of a death can wake any fault-tolerant job, so no deadlock is certain.
            wanted: match plan.tolerates_deaths {
                true => EndDead::No,
                false => plan.end_dead,
            },
            proof: Proof::default(),
            standstill: Standstill::default(),
            next_part: Instant::now() + PART,
            next: Instant::now() + PAUSE,
            used: BTreeMap::new(),
            is_asked: false,
            is_reported: false,
        }
    }

    /// Returns the time at which [`Self::step`] is due.
    pub(super) fn next(&self, is_running: bool) -> Option<Instant> {
        (is_running && self.wanted != EndDead::No).then_some(self.next)
    }

    /// Takes snapshots if due, and returns the job's apparent state.
    pub(super) fn step(&mut self, now: Instant, control: &mut JobControl<'_>) -> Seems {
        let is_due = self
            .next(control.is_running())
            .is_some_and(|next| now >= next);
        if !is_due {
            return Seems::Alive;
        }
        if !is_this_host_passive(control) {
            self.proof.reset();
            (self.is_asked, self.is_reported) = (false, false);
            self.next = now + PAUSE;
            return self.part(now, control);
        }
        self.next = now
            + match control.ranks.links.is_empty() {
                true => ROUND,
                false => ROUND_OF_HOSTS,
            };
        if self.have_hosts_answered(control) {
            let jobs = &control.ranks.jobs;
            let ranks = jobs
                .iter()
                .map(|(proc, _)| seen(proc, jobs, &control.ranks.local));
            let ranks: Vec<Seen> = ranks.flatten().collect();
            let dead = self.proof.add(&ranks);
            if !self.proof.has_begun() {
                self.next = now + ELSEWHERE;
            }
            if dead && !self.is_reported {
                self.is_reported = true;
                return Seems::Dead;
            }
            self.is_reported &= dead;
            self.is_asked = false;
        }
        if !self.is_asked {
            self.is_asked = true;
            control.ranks.links.send_all(&ToDaemon::TakeSnapshots);
        }
        Seems::Alive
    }

    /// Finds ranks of this host that make no progress while others do.
    fn part(&mut self, now: Instant, control: &JobControl<'_>) -> Seems {
        if now < self.next_part {
            return Seems::Alive;
        }
        self.next_part = now + PART;
        let jobs = &control.ranks.jobs;
        let here = jobs
            .alive()
            .filter(|(_, rank)| rank.here && rank.job == Job(0));
        let ranks = here.filter_map(|(proc, _)| seen(proc, jobs, &control.ranks.local));
        let found = self.standstill.add(&ranks.collect::<Vec<Seen>>());
        match found.is_empty() {
            true => Seems::Alive,
            false => Seems::InPart(found),
        }
    }

    /// Returns true if a proven deadlock ends the job (`--end-dead yes`).
    pub(super) fn ends(&self) -> bool {
        self.wanted == EndDead::Yes
    }

    /// Returns true if all living ranks on other hosts have snapshots newer than in the last round.
    /// The times of these snapshots are stored for the next round.
    fn have_hosts_answered(&mut self, control: &JobControl<'_>) -> bool {
        let jobs = &control.ranks.jobs;
        let elsewhere = jobs.alive().filter(|(_, rank)| !rank.here);
        let taken = elsewhere.map(|(proc, _)| {
            let snapshot = jobs.snapshot(proc, &control.ranks.local)?;
            // A rank that does not wait has time 0; the proof handles that case.
            Some((proc, snapshot.quiet.map_or(0, |quiet| quiet.taken_ns)))
        });
        let Some(taken) = taken.collect::<Option<BTreeMap<Proc, u64>>>() else {
            return false;
        };
        let is_newer =
            |(proc, time): (&Proc, &u64)| *time == 0 || self.used.get(proc) != Some(time);
        if !taken.iter().all(is_newer) {
            return false;
        }
        self.used = taken;
        true
    }
}

/// Returns true if each living rank of this host may be passive; stops at the first active rank.
fn is_this_host_passive(control: &JobControl<'_>) -> bool {
    let jobs = &control.ranks.jobs;
    let mut here = jobs.alive().filter(|(_, rank)| rank.here);
    here.all(|(proc, _)| {
        seen(proc, jobs, &control.ranks.local).is_some_and(|seen| may_be_passive(&seen))
    })
}

/// Returns the report about ranks that make no progress while others do.
pub(super) fn part_sentence(finding: &Finding) -> String {
    format!(
        "a part of the job has stood still for {} s while other ranks go on; the job is not ended for that (--timeout ends it after a time):\n{finding}",
        4 * PART.as_secs()
    )
}

/// Returns the message that precedes the hang report of a deadlocked job.
pub(super) fn sentence(living: usize, ends: bool) -> String {
    let ranks = match living {
        1 => "its only living rank waits inside MPI".to_owned(),
        _ => format!("all {living} living ranks wait inside MPI for each other"),
    };
    let wakes = match living {
        1 => "it",
        _ => "them",
    };
    let then = match ends {
        true => "The job is ended; with --end-dead no it would go on waiting.",
        false => "The job goes on waiting; with --end-dead yes it would be ended.",
    };
    format!(
        "the job cannot go on: {ranks}, no message is in flight, and nothing else can wake {wakes}. {then}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_tells_whether_the_job_ends_and_how_to_change_that() {
        assert_eq!(
            sentence(3, true),
            "the job cannot go on: all 3 living ranks wait inside MPI for each other, no message is in flight, and nothing else can wake them. \
             The job is ended; with --end-dead no it would go on waiting."
        );
        assert!(sentence(1, false).contains(
            "its only living rank waits inside MPI, no message is in flight, and nothing else can wake it."
        ));
        assert!(
            sentence(1, false)
                .ends_with("The job goes on waiting; with --end-dead yes it would be ended.")
        );
    }
}
