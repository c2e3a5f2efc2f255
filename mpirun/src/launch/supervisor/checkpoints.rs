//! Checkpoints of the launched job: when they are asked for, the agreement with its ranks, and the outcome.
//!
//! A timer, a signal, a program, and `mpi-ctl` ask for one; all of them for the same one until it is complete.

use super::control::JobControl;
use crate::checkpoint::Checkpointing;
use crate::launch::program::Plan;
use crate::launch::sys::Signal;
use crate::pmi::{Job, Proc};
use mpi_core::crs::coordinator::{Actions, Coordinator, Outcome};
use mpi_core::rte::checkpoints::Report;
use printable::name;
use std::path::Path;
use std::time::{Duration, Instant};

/// The exit status of a job that was asked to stop after a checkpoint, and did.
pub const STOPPED: i32 = 85;

/// The launched job.
const LAUNCHED: Job = Job(0);

pub(super) struct Checkpoints<'a> {
    plan: Option<&'a Checkpointing>,
    coordinator: Option<Coordinator>,
    /// When the timer asks for the next one.
    next: Option<Instant>,
    /// When the current one was asked for, and whether a user did.
    asked: Option<(Instant, bool)>,
    /// The sentence about the latest outcome, and the number of outcomes so far.
    latest: Result<String, String>,
    outcomes: u64,
    /// Whether a rank has left MPI or has ended, so that no more checkpoint is taken.
    is_ending: bool,
}

/// The origin of a request.
pub(super) enum Asks {
    Timer,
    /// The job ends after the checkpoint if `stop`.
    User {
        stop: bool,
    },
}

impl<'a> Checkpoints<'a> {
    pub(super) fn new(plan: &'a Plan) -> Checkpoints<'a> {
        let plan = plan.checkpoints.as_ref();
        Checkpoints {
            plan,
            coordinator: None,
            next: plan.and_then(due),
            asked: None,
            latest: Err("none was taken".into()),
            outcomes: 0,
            is_ending: false,
        }
    }

    /// Returns true for the signal that asks for a checkpoint.
    pub(super) fn is_signal(&self, signal: Signal) -> bool {
        self.plan.is_some_and(|plan| plan.signal == Some(signal))
    }

    /// Returns when the timer asks for the next one.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Returns the number of outcomes so far.
    pub(super) fn outcomes(&self) -> u64 {
        self.outcomes
    }

    /// Returns the sentence about the latest outcome; an error if no checkpoint was taken.
    pub(super) fn latest_outcome(&self) -> Result<String, String> {
        self.latest.clone()
    }

    /// Describes the state, for users.
    pub(super) fn status(&self) -> String {
        let Some(plan) = self.plan else {
            return "no checkpoints are taken (--checkpoint-dir)".into();
        };
        let waits = self.coordinator.as_ref().and_then(Coordinator::waits_for);
        let now = match waits {
            Some(waits) => format!("one was asked for and waits for {waits}"),
            None => "none is being taken".into(),
        };
        let (Ok(latest) | Err(latest)) = &self.latest;
        format!(
            "checkpoints in {}: {now}; the latest: {latest}",
            name(&plan.dir)
        )
    }

    fn dir(&self) -> &Path {
        self.plan.map_or(Path::new(""), |plan| &plan.dir)
    }
}

/// Returns when the timer is due next.
fn due(plan: &Checkpointing) -> Option<Instant> {
    plan.every
        .and_then(|every| Instant::now().checked_add(every))
}

impl JobControl<'_> {
    /// Asks for a checkpoint. Returns the reason if none can be asked for.
    pub(super) fn ask_for_checkpoint(&mut self, asks: &Asks) -> Result<(), String> {
        if self.checkpoints.plan.is_none() {
            return Err("mpirun was started without --checkpoint-dir".into());
        }
        self.can_be_kept()?;
        let (user, stop) = match asks {
            Asks::Timer => (false, false),
            Asks::User { stop } => (true, *stop),
        };
        let asked = self.checkpoints.asked.unwrap_or((Instant::now(), false));
        self.checkpoints.asked = Some((asked.0, asked.1 || user));
        let actions = self.coordinator().request(stop);
        self.act_on(actions);
        Ok(())
    }

    /// Asks for a checkpoint, and reports if none can be asked for.
    pub(super) fn ask_by_signal(&mut self) {
        if let Err(why) = self.ask_for_checkpoint(&Asks::User { stop: false }) {
            self.end_round(false, Err(format!("no checkpoint is taken: {why}")));
        }
    }

    /// Asks for a checkpoint if the timer is due.
    pub(super) fn step_checkpoints(&mut self, now: Instant) {
        if self.checkpoints.next.is_none_or(|next| now < next) {
            return;
        }
        self.checkpoints.next = None;
        if self.is_running()
            && !self.checkpoints.is_ending
            && let Err(why) = self.ask_for_checkpoint(&Asks::Timer)
        {
            self.end_round(false, Err(format!("no checkpoint is taken: {why}")));
        }
    }

    /// Fails if the job cannot be kept.
    fn can_be_kept(&self) -> Result<(), String> {
        let jobs = &self.ranks.jobs;
        if jobs.alive().any(|(_, rank)| rank.job != LAUNCHED) {
            return Err("the job has spawned another one, and a checkpoint is of one job".into());
        }
        let lost = jobs.of(LAUNCHED).find(|rank| rank.lost.is_some());
        if let Some(lost) = lost {
            return Err(format!("rank {} was lost", lost.rank));
        }
        let silent = jobs
            .iter()
            .find(|(proc, rank)| rank.job == LAUNCHED && !self.server.hears_checkpoints(*proc));
        match silent {
            Some((_, rank)) => Err(format!(
                "rank {} has not called MPI_Init of this library, or has called MPI_Finalize",
                rank.rank
            )),
            None => Ok(()),
        }
    }

    fn coordinator(&mut self) -> &mut Coordinator {
        let ranks = self.ranks.jobs.of(LAUNCHED).count();
        let coordinator = &mut self.checkpoints.coordinator;
        coordinator.get_or_insert_with(|| Coordinator::new(ranks))
    }

    /// A rank has reported.
    pub(super) fn serve_checkpoint(&mut self, by: Proc, report: Report) {
        if self.checkpoints.plan.is_none() {
            return;
        }
        if report == Report::Request {
            // A program that asks at each step is one user.
            return self.ask_by_program();
        }
        let rank = self.ranks.jobs.get(by).filter(|rank| rank.job == LAUNCHED);
        if let Some(rank) = rank.map(|rank| rank.rank as usize) {
            let actions = self.coordinator().report(rank, report);
            self.act_on(actions);
        }
    }

    fn ask_by_program(&mut self) {
        let is_busy = self.checkpoints.asked.is_some();
        if !is_busy && let Err(why) = self.ask_for_checkpoint(&Asks::User { stop: false }) {
            self.end_round(false, Err(format!("no checkpoint is taken: {why}")));
        }
    }

    /// A rank has ended or left MPI.
    pub(super) fn leave_checkpoints(&mut self, proc: Proc) {
        if self.checkpoints.plan.is_none() {
            return;
        }
        let rank = self
            .ranks
            .jobs
            .get(proc)
            .filter(|rank| rank.job == LAUNCHED);
        if let Some(rank) = rank.map(|rank| rank.rank as usize) {
            self.checkpoints.is_ending = true;
            let actions = self.coordinator().left(rank);
            self.act_on(actions);
        }
    }

    fn act_on(&mut self, actions: Actions) {
        let Actions { notice, outcome } = actions;
        if let Some(notice) = notice {
            let effects = self.server.tell_checkpoint(LAUNCHED, notice);
            self.carry_out(effects);
        }
        match outcome {
            Some(Outcome::Taken {
                number,
                bytes,
                stop,
            }) => self.checkpoint_was_taken(number, bytes, stop),
            Some(Outcome::NotTaken { why }) => {
                // A job that ends has no need of the checkpoint that the timer has asked for.
                let by_user = self.checkpoints.asked.is_some_and(|(_, user)| user);
                let ends = self.checkpoints.is_ending;
                let sentence = format!("no checkpoint was taken: {why}");
                self.end_round(ends && !by_user, Err(sentence));
            }
            None => {}
        }
    }

    fn checkpoint_was_taken(&mut self, number: u64, bytes: u64, stop: bool) {
        let asked = self.checkpoints.asked.map(|(asked, _)| asked.elapsed());
        let took = asked.unwrap_or(Duration::ZERO).as_secs_f64();
        let set = self.checkpoints.dir().join(number.to_string());
        let then = match stop {
            true => "; the job is asked to stop",
            false => "",
        };
        let sentence = format!(
            "checkpoint {number} is in {}: {bytes} bytes, {took:.2} s after it was asked for{then}",
            name(&set)
        );
        self.end_round(false, Ok(sentence));
        if stop {
            self.ending.fail(STOPPED);
        }
    }

    fn end_round(&mut self, is_silent: bool, outcome: Result<String, String>) {
        let (Ok(sentence) | Err(sentence)) = &outcome;
        if !is_silent {
            self.ranks.outputs.say(sentence);
        }
        let checkpoints = &mut self.checkpoints;
        checkpoints.latest = outcome;
        checkpoints.outcomes += 1;
        checkpoints.asked = None;
        checkpoints.next = checkpoints.plan.and_then(due);
    }
}
