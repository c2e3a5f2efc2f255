//! The ending of jobs: of all of them, or only of the connected set of a failure, or of a spawned job that has failed to start.
//!
//! Ranks are asked by a signal, and killed when their time is over.
//! What the ranks of an ending job do from then on is a consequence and is not reported.

use super::all_ranks::AllRanks;
use super::lifecycle::{Due, Lifecycle};
use crate::launch::ending::list;
use crate::launch::program::Plan;
use crate::launch::sys::{self, Signal};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub(super) struct Ending {
    lifecycle: Lifecycle,
    /// Jobs that were asked to end while others go on, and the time at which each set is killed.
    dismissals: Vec<(BTreeSet<usize>, Instant)>,
    /// The time between SIGTERM and SIGKILL.
    grace: Duration,
    /// The same for ranks that handle the signal that mpirun received.
    signal_grace: Duration,
}

impl Ending {
    pub(super) fn new(plan: &Plan) -> Ending {
        Ending {
            lifecycle: Lifecycle::new(plan.timeout),
            dismissals: Vec::new(),
            grace: plan.grace,
            signal_grace: plan.signal_grace,
        }
    }

    /// Returns true while no end of all jobs was asked for.
    pub(super) fn is_running(&self) -> bool {
        self.lifecycle.is_running()
    }

    /// Returns true if mpirun no longer waits for the ends of killed ranks.
    pub(super) fn has_given_up(&self) -> bool {
        self.lifecycle.has_given_up()
    }

    /// Records a failure whose exit status is `status`. Returns true if it is the job's first, which determines mpirun's exit status.
    pub(super) fn fail(&mut self, status: i32) -> bool {
        self.lifecycle.fail(status)
    }

    /// mpirun's exit status.
    pub(super) fn status(&self) -> i32 {
        self.lifecycle.status()
    }

    /// Returns the next time at which [`Self::step`] has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        let dismissals = self.dismissals.iter().map(|(_, until)| *until);
        dismissals.chain(self.lifecycle.next()).min()
    }

    /// Begins the ending of all jobs, unless it has begun.
    pub(super) fn begin(&mut self, code: i32, signal: Signal, ranks: &mut AllRanks<'_>) {
        if self.is_running() {
            self.lifecycle.fail(code);
            self.lifecycle.begin_ending(self.grace);
            ranks.ask_to_end(signal);
        }
    }

    /// Ends all jobs because of a signal of the user, unless they are ending: ranks that handle the signal have time for that.
    /// A second signal shortens the time to zero.
    pub(super) fn begin_by_signal(&mut self, signal: Signal, ranks: &mut AllRanks<'_>) {
        if self.lifecycle.is_asked() {
            self.kill(ranks);
        }
        if self.is_running() {
            let (short, long) = (self.grace, self.signal_grace);
            self.lifecycle.fail(128 + signal);
            self.lifecycle.begin_ending_by_signal(signal, short, long);
            ranks.ask_to_end(signal);
        }
    }

    /// Does what is due. Returns true once, when the time of the job is over.
    pub(super) fn step(&mut self, now: Instant, ranks: &mut AllRanks<'_>) -> bool {
        let late = self.lifecycle.take_deadline(now);
        if let Some(due) = self.lifecycle.take_due(now).filter(|_| !late) {
            self.go_on(due, ranks);
        }
        let is_due = |(_, until): &mut (BTreeSet<usize>, Instant)| now >= *until;
        for (jobs, _) in self.dismissals.extract_if(.., is_due) {
            ranks.signal_jobs(&jobs, libc::SIGKILL);
        }
        late
    }

    /// Carries out the step that is due for ranks that were asked to end.
    fn go_on(&mut self, due: Due, ranks: &mut AllRanks<'_>) {
        match due {
            Due::KillWithoutHandler(signal) => ranks.kill_without_handler(signal),
            Due::Announce { signal, left } => {
                let alive: Vec<u32> = ranks.jobs.alive().map(|(_, rank)| rank.rank).collect();
                let (noun, have) = match alive.len() {
                    1 => ("rank", "has"),
                    _ => ("ranks", "have"),
                };
                ranks.outputs.say(&format!(
                    "{noun} {} {have} not ended after {} and {have} {} s more; the same signal once more ends the job at once",
                    list(&alive),
                    sys::signal_name(signal),
                    left.as_secs_f64().ceil()
                ));
            }
            Due::Kill => self.kill(ranks),
        }
    }

    fn kill(&mut self, ranks: &mut AllRanks<'_>) {
        ranks.kill();
        self.lifecycle.note_killed();
    }

    /// Ends jobs while others go on, at once or after the grace period.
    pub(super) fn dismiss(
        &mut self,
        jobs: &BTreeSet<usize>,
        signal: Signal,
        ranks: &mut AllRanks<'_>,
    ) {
        ranks.jobs.dismiss(jobs);
        ranks.let_go(|job| jobs.contains(&job.0));
        if signal == libc::SIGKILL {
            return ranks.signal_jobs(jobs, signal);
        }
        // A stopped process acts on no signal but SIGCONT and SIGKILL.
        for signal in [signal, libc::SIGCONT] {
            ranks.signal_jobs(jobs, signal);
        }
        let until = Instant::now() + self.grace;
        self.dismissals.push((jobs.clone(), until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Request, request};

    fn plan() -> Box<Plan> {
        match request(["mpirun", "-n", "1", "prog"].map(Into::into)).unwrap() {
            Request::Job(plan) => plan,
            Request::Daemon | Request::Adoption { .. } => panic!("a job was asked for"),
        }
    }

    #[test]
    fn the_first_failure_decides_the_status_and_a_second_signal_kills() {
        let plan = plan();
        let mut ranks = AllRanks::new(&plan, None).unwrap();
        let mut ending = Ending::new(&plan);
        ending.begin(3, libc::SIGTERM, &mut ranks);
        ending.begin(4, libc::SIGTERM, &mut ranks);
        assert_eq!((ending.status(), ending.is_running()), (3, false));
        assert!(ending.lifecycle.is_asked());
        ending.begin_by_signal(libc::SIGINT, &mut ranks);
        assert!(!ending.lifecycle.is_asked());
        assert_eq!(ending.status(), 3);
    }

    #[test]
    fn dismissed_jobs_are_killed_when_their_time_is_over_and_others_run() {
        let plan = plan();
        let mut ranks = AllRanks::new(&plan, None).unwrap();
        let mut ending = Ending::new(&plan);
        ending.dismiss(&BTreeSet::from([1]), libc::SIGTERM, &mut ranks);
        let due = ending.next().expect("one set of jobs waits for its end");
        assert!(!ending.step(due - Duration::from_millis(1), &mut ranks));
        assert_eq!(ending.next(), Some(due));
        ending.step(due, &mut ranks);
        assert_eq!((ending.next(), ending.is_running()), (None, true));
    }
}
