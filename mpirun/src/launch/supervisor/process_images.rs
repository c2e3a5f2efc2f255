//! Checkpoints that are images of all processes: the supervisor's part ([`images`](super::super::images)).
//!
//! While the front end takes the checkpoint, the supervisor only waits for its answer.
//! A restored supervisor continues in this wait, and the answer is that of the restart's front end.

use super::Supervisor;
use super::affinity::Affinities;
use super::control::checkpoint_rounds;
use super::remote_control;
use crate::launch::hold::{self, Go};
use rustix::fd::AsFd as _;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};

/// Takes the checkpoint that is asked for, if any.
pub(super) fn step(supervisor: &mut Supervisor<'_>) {
    let Some(stop) = supervisor.control.checkpoints.take_held() else {
        return;
    };
    // What is still queued is in the image, and is written after the checkpoint.
    supervisor.control.ranks.outputs.drain();
    let waiting = remote_control::close(supervisor);
    // If the front end dies now, it may leave this process stopped, and no process would end the ranks.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let descriptors: Vec<_> = waiting
        .iter()
        .map(|connection| connection.as_fd())
        .collect();
    let affinities = Affinities::read();
    let asked = hold::hold(&supervisor.front, stop, &descriptors);
    drop(descriptors);
    drop(waiting);
    let answer = asked.ok().and_then(|()| supervisor.front.wait_for_go());
    let _ = set_parent_process_death_signal(None);
    // Without an answer the front end has died, which the next read of its socket reports.
    if let Some(Go {
        outcome,
        front_end,
        is_restored,
    }) = answer
    {
        if is_restored {
            affinities.set();
        }
        remote_control::listen_again(supervisor, Pid::from_raw(front_end));
        for signal in supervisor.front.take_early() {
            supervisor.pass_on(signal);
        }
        checkpoint_rounds::end_round(&mut supervisor.control, false, outcome);
    }
}
