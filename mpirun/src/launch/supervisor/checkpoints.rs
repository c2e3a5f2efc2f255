//! Checkpoint state of the launched job: settings, the round in progress, and the latest outcome.
//!
//! [`checkpoint_rounds`](super::control::checkpoint_rounds) changes this state.

use crate::launch::program::{Checkpointing, Plan};
use crate::launch::sys::Signal;
use mpi_core::crs::coordinator::Coordinator;
use printable::name;
use std::path::Path;
use std::time::Instant;

pub(super) struct Checkpoints<'a> {
    pub(super) plan: Option<&'a Checkpointing>,
    pub(super) coordinator: Option<Coordinator>,
    /// The time at which the timer requests the next checkpoint.
    pub(super) next: Option<Instant>,
    /// The time of the current request, and true if a user made the request.
    pub(super) asked: Option<(Instant, bool)>,
    /// Whether images of all processes are asked for, and if so whether the job ends after them.
    pub(super) held: Option<bool>,
    /// As `held`, while the daemons on other hosts are asked to be silent.
    pub(super) silencing: Option<bool>,
    /// The message about the latest outcome, and the number of outcomes so far.
    pub(super) latest: Result<String, String>,
    pub(super) outcomes: u64,
    /// Whether a rank has left MPI or has ended, so that no further checkpoint can be taken.
    pub(super) is_ending: bool,
}

/// The origin of a checkpoint request.
pub(super) enum Asks {
    Timer,
    /// A user's request; if `stop`, the job ends after the checkpoint.
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
            held: None,
            silencing: None,
            latest: Err("none was taken".into()),
            outcomes: 0,
            is_ending: false,
        }
    }

    /// Returns true if the checkpoints are images of all processes.
    pub(super) fn are_images(&self) -> bool {
        self.plan.is_some_and(|plan| plan.images.is_some())
    }

    /// Returns true while daemons are asked to be silent for images of all processes.
    pub(super) fn is_silencing(&self) -> bool {
        self.silencing.is_some()
    }

    /// Returns true if the job ends after the images for which daemons are asked to be silent.
    pub(super) fn is_silencing_to_stop(&self) -> bool {
        self.silencing == Some(true)
    }

    /// Removes and returns the request for images of all processes.
    pub(super) fn take_held(&mut self) -> Option<bool> {
        self.held.take()
    }

    /// Returns true if this signal requests a checkpoint.
    pub(super) fn is_signal(&self, signal: Signal) -> bool {
        self.signal() == Some(signal)
    }

    /// Returns the signal that requests a checkpoint.
    pub(super) fn signal(&self) -> Option<Signal> {
        self.plan?.signal
    }

    /// Returns the time at which the timer requests the next checkpoint.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Returns the number of completed or failed rounds so far.
    pub(super) fn outcomes(&self) -> u64 {
        self.outcomes
    }

    /// Returns the message about the latest outcome; an error if no checkpoint was taken.
    pub(super) fn latest_outcome(&self) -> Result<String, String> {
        self.latest.clone()
    }

    /// Describes the checkpoint state for users of `mpi-ctl status`.
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

    pub(super) fn dir(&self) -> &Path {
        self.plan.map_or(Path::new(""), |plan| &plan.dir)
    }
}

/// Returns the time at which the timer requests a checkpoint: one interval from now.
pub(super) fn due(plan: &Checkpointing) -> Option<Instant> {
    plan.every
        .and_then(|every| Instant::now().checked_add(every))
}
