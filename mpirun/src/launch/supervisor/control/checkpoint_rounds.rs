//! Checkpoint rounds of the launched job: requests, the protocol with the ranks, and the outcome.
//!
//! A timer, a signal, a program or `mpi-ctl` requests a checkpoint.
//! All requests before the completion of a round belong to that round.

use super::JobControl;
use crate::launch::outside;
use crate::launch::supervisor::checkpoints::{Asks, due};
use crate::launch::supervisor::unsaved;
use crate::pmi::{Job, Proc};
use mpi_core::crs::coordinator::{Actions, Coordinator, Outcome};
use mpi_core::crs::criu::CriuError;
use mpi_core::rte::checkpoints::Report;
use printable::name;
use std::time::{Duration, Instant};

/// The exit status of a job that was ended after a checkpoint by request.
pub const STOPPED: i32 = 85;

/// The job that the command line launched.
const LAUNCHED: Job = Job(0);

/// Requests a checkpoint. Returns the reason if no checkpoint can be taken.
pub(in crate::launch::supervisor) fn ask(
    control: &mut JobControl<'_>,
    asks: &Asks,
) -> Result<(), String> {
    if control.checkpoints.plan.is_none() {
        return Err("mpirun was started without --checkpoint-dir".into());
    }
    match control.checkpoints.are_images() {
        true => images_can_be_taken(control).map_err(|error| error.to_string())?,
        false => can_be_kept(control)?,
    }
    let (user, stop) = match asks {
        Asks::Timer => (false, false),
        Asks::User { stop } => (true, *stop),
    };
    let asked = control.checkpoints.asked.unwrap_or((Instant::now(), false));
    control.checkpoints.asked = Some((asked.0, asked.1 || user));
    if control.checkpoints.are_images() {
        let earlier = control.checkpoints.held.unwrap_or(false);
        control.checkpoints.held = Some(earlier || stop);
        return Ok(());
    }
    let actions = coordinator(control).request(stop);
    act_on(control, actions);
    Ok(())
}

impl JobControl<'_> {
    /// Handles a rank's checkpoint report.
    pub(super) fn serve_checkpoint(&mut self, by: Proc, report: Report) {
        if self.checkpoints.plan.is_none() {
            return;
        }
        if report == Report::Request {
            // A program may request a checkpoint in each iteration; a round serves all of them.
            return ask_by_program(self);
        }
        if self.checkpoints.are_images() {
            return;
        }
        let rank = self.ranks.jobs.get(by).filter(|rank| rank.job == LAUNCHED);
        if let Some(rank) = rank.map(|rank| rank.rank as usize) {
            let actions = coordinator(self).report(rank, report);
            act_on(self, actions);
        }
    }

    /// Handles the end of a rank, or a rank that leaves MPI.
    pub(super) fn leave_checkpoints(&mut self, proc: Proc) {
        if self.checkpoints.plan.is_none() || self.checkpoints.are_images() {
            return;
        }
        let rank = self
            .ranks
            .jobs
            .get(proc)
            .filter(|rank| rank.job == LAUNCHED);
        if let Some(rank) = rank.map(|rank| rank.rank as usize) {
            self.checkpoints.is_ending = true;
            let actions = coordinator(self).left(rank);
            act_on(self, actions);
        }
    }
}

/// Requests a checkpoint; prints the reason if no checkpoint can be taken.
pub(in crate::launch::supervisor) fn ask_by_signal(control: &mut JobControl<'_>) {
    if let Err(why) = ask(control, &Asks::User { stop: false }) {
        end_round(
            control,
            false,
            Err(format!("no checkpoint is taken: {why}")),
        );
    }
}

/// Requests a checkpoint if the timer is due.
pub(in crate::launch::supervisor) fn step(control: &mut JobControl<'_>, now: Instant) {
    if control.checkpoints.next.is_none_or(|next| now < next) {
        return;
    }
    control.checkpoints.next = None;
    if control.is_running()
        && !control.checkpoints.is_ending
        && let Err(why) = ask(control, &Asks::Timer)
    {
        end_round(
            control,
            false,
            Err(format!("no checkpoint is taken: {why}")),
        );
    }
}

/// Returns an error if images of the processes on this host are impossible.
/// The front end finds out later which connections between hosts are within the job.
fn images_can_be_taken(control: &JobControl<'_>) -> Result<(), CriuError> {
    let connections = unsaved::check(&control.ranks.jobs)?;
    match connections.first() {
        Some(connection) if !control.ranks.links.any_open() => Err(outside::foreign(connection)),
        _ => Ok(()),
    }
}

/// Returns an error if a checkpoint of the job is impossible.
fn can_be_kept(control: &JobControl<'_>) -> Result<(), String> {
    let jobs = &control.ranks.jobs;
    if jobs.alive().any(|(_, rank)| rank.job != LAUNCHED) {
        return Err("the job has spawned another one, and a checkpoint is of one job".into());
    }
    let lost = jobs.of(LAUNCHED).find(|rank| rank.lost.is_some());
    if let Some(lost) = lost {
        return Err(format!("rank {} was lost", lost.rank));
    }
    let silent = jobs
        .iter()
        .find(|(proc, rank)| rank.job == LAUNCHED && !control.server.hears_checkpoints(*proc));
    match silent {
        Some((_, rank)) => Err(format!(
            "rank {} has not called MPI_Init of this library, or has called MPI_Finalize",
            rank.rank
        )),
        None => Ok(()),
    }
}

fn coordinator<'a>(control: &'a mut JobControl<'_>) -> &'a mut Coordinator {
    let ranks = control.ranks.jobs.of(LAUNCHED).count();
    let coordinator = &mut control.checkpoints.coordinator;
    coordinator.get_or_insert_with(|| Coordinator::new(ranks))
}

fn ask_by_program(control: &mut JobControl<'_>) {
    let is_busy = control.checkpoints.asked.is_some();
    if !is_busy && let Err(why) = ask(control, &Asks::User { stop: false }) {
        end_round(
            control,
            false,
            Err(format!("no checkpoint is taken: {why}")),
        );
    }
}

fn act_on(control: &mut JobControl<'_>, actions: Actions) {
    let Actions { notice, outcome } = actions;
    if let Some(notice) = notice {
        let effects = control.server.tell_checkpoint(LAUNCHED, notice);
        control.carry_out(effects);
    }
    match outcome {
        Some(Outcome::Taken {
            number,
            bytes,
            stop,
        }) => was_taken(control, number, bytes, stop),
        Some(Outcome::NotTaken { why }) => {
            // The failure of the timer's checkpoint is not reported if the job is ending,
            // unless no checkpoint of the program can ever be taken.
            let by_user = control.checkpoints.asked.is_some_and(|(_, user)| user);
            let is_known = by_user || coordinator(control).is_without_points();
            let is_silent = control.checkpoints.is_ending && !is_known;
            let sentence = format!("no checkpoint was taken: {why}");
            end_round(control, is_silent, Err(sentence));
        }
        None => {}
    }
}

fn was_taken(control: &mut JobControl<'_>, number: u64, bytes: u64, stop: bool) {
    let asked = control.checkpoints.asked.map(|(asked, _)| asked.elapsed());
    let took = asked.unwrap_or(Duration::ZERO).as_secs_f64();
    let set = control.checkpoints.dir().join(number.to_string());
    let then = match stop {
        true => "; the job is asked to stop",
        false => "",
    };
    let sentence = format!(
        "checkpoint {number} is in {}: {bytes} bytes, {took:.2} s after it was asked for{then}",
        name(&set)
    );
    end_round(control, false, Ok(sentence));
    if stop {
        control.ending.fail(STOPPED);
    }
}

pub(in crate::launch::supervisor) fn end_round(
    control: &mut JobControl<'_>,
    is_silent: bool,
    outcome: Result<String, String>,
) {
    let (Ok(sentence) | Err(sentence)) = &outcome;
    if !is_silent {
        control.ranks.outputs.say(sentence);
    }
    let checkpoints = &mut control.checkpoints;
    checkpoints.latest = outcome;
    checkpoints.outcomes += 1;
    checkpoints.asked = None;
    checkpoints.next = checkpoints.plan.and_then(due);
}
