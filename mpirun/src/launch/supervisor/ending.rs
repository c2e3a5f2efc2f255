//! Termination of jobs: of all jobs, of the jobs connected with a failure, or of a failed spawn.
//!
//! A signal asks the ranks to end; when their grace period is over, they are killed.
//! Later failures of these ranks are consequences and are not reported.

use super::all_ranks::AllRanks;
use super::lifecycle::{Due, Lifecycle};
use crate::launch::ending::list;
use crate::launch::program::Plan;
use crate::launch::sys::{self, Signal};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub(super) struct Ending {
    lifecycle: Lifecycle,
    /// Sets of jobs that are being ended while other jobs continue, each with its SIGKILL's time.
    dismissals: Vec<(BTreeSet<usize>, Instant)>,
    /// Whether the job ends because a rank was killed by a signal or its host is lost.
    is_by_death: bool,
    /// Whether ranks may still run on a host that is lost.
    host_is_lost: bool,
    /// The grace period between SIGTERM and SIGKILL.
    grace: Duration,
    /// The grace period of ranks that handle the signal that mpirun received.
    signal_grace: Duration,
}

impl Ending {
    pub(super) fn new(plan: &Plan) -> Ending {
        Ending {
            lifecycle: Lifecycle::new(plan.timeout),
            dismissals: Vec::new(),
            is_by_death: false,
            host_is_lost: false,
            grace: plan.grace,
            signal_grace: plan.signal_grace,
        }
    }

    /// Records that the job ends because a rank was killed by a signal or its host is lost.
    pub(super) fn note_death(&mut self) {
        self.is_by_death = true;
    }

    /// Records that ranks may still run on a host that is lost.
    pub(super) fn note_lost_host(&mut self) {
        self.host_is_lost = true;
    }

    /// Returns true if ranks may still run on a host that is lost.
    pub(super) fn host_is_lost(&self) -> bool {
        self.host_is_lost
    }

    /// Records that the user ends the job, which is therefore not restarted, even if a rank has died before.
    pub(super) fn note_user(&mut self) {
        self.is_by_death = false;
    }

    /// Returns true if a restart of the job may come further: see [`Ending::note_death`].
    pub(super) fn is_by_death(&self) -> bool {
        self.is_by_death
    }

    /// Returns true until all jobs are being ended.
    pub(super) fn is_running(&self) -> bool {
        self.lifecycle.is_running()
    }

    /// Returns true if the wait for the ends of killed ranks has timed out.
    pub(super) fn has_given_up(&self) -> bool {
        self.lifecycle.has_given_up()
    }

    /// Records a failure with exit status `status`.
    /// Returns true if this is the first failure; only the first failure sets the exit status.
    pub(super) fn fail(&mut self, status: i32) -> bool {
        self.lifecycle.fail(status)
    }

    /// Returns mpirun's exit status.
    pub(super) fn status(&self) -> i32 {
        self.lifecycle.status()
    }

    /// Returns the time at which [`Self::step`] is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let dismissals = self.dismissals.iter().map(|(_, until)| *until);
        dismissals.chain(self.lifecycle.next()).min()
    }

    /// Begins to end all jobs, unless they are being ended already.
    pub(super) fn begin(&mut self, code: i32, signal: Signal, ranks: &mut AllRanks<'_>) {
        if self.is_running() {
            self.lifecycle.fail(code);
            self.lifecycle.begin_ending(self.grace);
            ranks.ask_to_end(signal);
        }
    }

    /// Ends all jobs after a signal from the user;
    /// ranks that handle the signal get a longer grace period.
    /// A second signal kills all ranks immediately.
    pub(super) fn begin_by_signal(&mut self, signal: Signal, ranks: &mut AllRanks<'_>) {
        self.note_user();
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

    /// Executes the steps that are due. Returns true once, when the job's time limit has passed.
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

    /// Executes the step that is due for ranks that were asked to end.
    fn go_on(&mut self, due: Due, ranks: &mut AllRanks<'_>) {
        match due {
            Due::KillWithoutHandler(signal) => ranks.kill_without_handler(signal),
            Due::Announce { signal, left } => {
                let alive: Vec<u32> = ranks.jobs.alive().map(|(_, rank)| rank.rank).collect();
                if let Some(sentence) = announcement(&alive, signal, left) {
                    ranks.outputs.say(&sentence);
                }
            }
            Due::Kill => self.kill(ranks),
        }
    }

    fn kill(&mut self, ranks: &mut AllRanks<'_>) {
        ranks.kill();
        self.lifecycle.note_killed();
    }

    /// Ends `jobs` by `signal`, and by SIGKILL after the grace period; other jobs continue.
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
        // A stopped process reacts only to SIGCONT and SIGKILL, so SIGCONT follows the signal.
        for signal in [signal, libc::SIGCONT] {
            ranks.signal_jobs(jobs, signal);
        }
        let until = Instant::now() + self.grace;
        self.dismissals.push((jobs.clone(), until));
    }
}

/// Returns the sentence about the ranks that still run after a signal of the user.
///
/// `None` if all ranks have ended: mpirun may still wait for the launcher of another host.
fn announcement(alive: &[u32], signal: Signal, left: Duration) -> Option<String> {
    let (noun, have) = match alive {
        [] => return None,
        [_] => ("rank", "has"),
        _ => ("ranks", "have"),
    };
    Some(format!(
        "{noun} {} {have} not ended after {} and {have} {} s more; the same signal once more ends the job at once",
        list(alive),
        sys::signal_name(signal),
        left.as_secs_f64().ceil()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Request, request};

    fn plan() -> Box<Plan> {
        match request(["mpirun", "-n", "1", "prog"].map(Into::into)).unwrap() {
            Request::Job(plan) => plan,
            Request::Restart(_)
            | Request::Daemon
            | Request::DaemonWithImages
            | Request::Adoption { .. } => {
                panic!("a job was asked for")
            }
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
    fn the_announcement_names_the_ranks_that_run_and_is_omitted_if_all_have_ended() {
        let said = |alive: &[u32]| announcement(alive, libc::SIGINT, Duration::from_millis(1500));
        let rest = "the same signal once more ends the job at once";
        assert_eq!(said(&[]), None);
        assert_eq!(
            said(&[3]),
            Some(format!(
                "rank 3 has not ended after SIGINT and has 2 s more; {rest}"
            ))
        );
        assert_eq!(
            said(&[0, 2]),
            Some(format!(
                "ranks 0, 2 have not ended after SIGINT and have 2 s more; {rest}"
            ))
        );
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
