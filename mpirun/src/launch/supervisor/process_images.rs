//! Checkpoints that are images of all processes: the supervisor's part ([`images`](super::super::images)).
//!
//! First the daemons on other hosts send everything that they have, and are silent.
//! While the front end then takes the checkpoint, the supervisor only waits for its answer.
//! A restored supervisor continues in this wait, and the answer is that of the restart's front end.

use super::Supervisor;
use super::control::checkpoint_rounds;
use super::remote_control;
use crate::launch::affinity::Affinities;
use crate::launch::hold::{self, Described, Go};
use crate::launch::sys;
use crate::pmi::Job;
use rustix::fd::BorrowedFd;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use std::collections::BTreeMap;

/// Takes the checkpoint that is asked for, if any, as soon as nothing is on the way between hosts.
pub(super) fn step(supervisor: &mut Supervisor<'_>) {
    let is_ending = !supervisor.control.is_running();
    let checkpoints = &mut supervisor.control.checkpoints;
    let links = &mut supervisor.control.ranks.links;
    if is_ending && (checkpoints.take_held().is_some() || checkpoints.silencing.is_some()) {
        // The orders that end the job wait until the daemons are no longer silent.
        checkpoints.silencing = None;
        links.release();
        let why = "no checkpoint is taken: the job ends".to_owned();
        return checkpoint_rounds::end_round(&mut supervisor.control, false, Err(why));
    }
    if let Some(stop) = checkpoints.take_held() {
        links.hold();
        checkpoints.silencing = Some(checkpoints.is_silencing_to_stop() || stop);
    }
    if links.are_silent()
        && let Some(stop) = checkpoints.silencing.take()
    {
        take(supervisor, stop);
    }
}

fn take(supervisor: &mut Supervisor<'_>, stop: bool) {
    // What is still queued is in the image, and is written after the checkpoint.
    supervisor.control.ranks.outputs.drain();
    let waiting = remote_control::close(supervisor);
    // If the front end dies now, it may leave this process stopped, and no process would end the ranks.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let affinities = Affinities::read();
    let described = described(supervisor);
    let asked = {
        let links = supervisor.control.ranks.links.silent();
        let links = links.filter_map(|link| Some((link, link.pipes()?)));
        let (mut job, mut pipes) = (described, Vec::<BorrowedFd<'_>>::new());
        for (link, (to, from)) in links {
            job.hosts.push((link.branch.host, link.branch.name.clone()));
            pipes.extend([to, from]);
        }
        hold::hold(&supervisor.front, stop, waiting, (&job, &pipes))
    };
    let answer = asked.ok().and_then(|()| supervisor.front.wait_for_go());
    let _ = set_parent_process_death_signal(None);
    supervisor.control.ranks.links.release();
    // Without an answer the front end has died, which the next read of its socket reports.
    if let Some(Go {
        outcome,
        front_end,
        is_restored,
        lost,
    }) = answer
    {
        if is_restored {
            affinities.set();
        }
        remote_control::listen_again(supervisor, Pid::from_raw(front_end));
        checkpoint_rounds::end_round(&mut supervisor.control, false, outcome);
        // The SIGCONT that has ended the stop of this process is not for the ranks, which may have been stopped before.
        let own = std::iter::from_fn(|| sys::next_request(&supervisor.signals));
        let own: Vec<_> = own.filter(|signal| *signal != libc::SIGCONT).collect();
        for signal in supervisor.front.take_early().into_iter().chain(own) {
            supervisor.pass_on(signal);
        }
        // The reports of ended ranks were read with the signals.
        supervisor.read_signals();
        for (host, why) in lost {
            if let Some(number) = supervisor.control.ranks.links.number_of(host) {
                supervisor.lose_link(number, &why);
            }
        }
    }
}

/// Returns what the front end needs to know of the job, apart from its other hosts.
fn described(supervisor: &Supervisor<'_>) -> Described {
    /// The maximum length of the description of the ranks in bytes.
    const LONGEST: usize = 100_000;
    let jobs = &supervisor.control.ranks.jobs;
    let launched = jobs.of(Job(0));
    let placement: BTreeMap<u32, u32> = launched.map(|rank| (rank.rank, rank.host)).collect();
    let mut ranks = remote_control::ranks(supervisor);
    if ranks.len() > LONGEST {
        ranks.clear();
    }
    Described {
        hosts: Vec::new(),
        placement: placement.into_values().collect(),
        ranks,
        signal: supervisor.control.checkpoints.signal(),
    }
}
