//! Losses in fault-tolerant jobs (`--with-ft`): the job continues without dead, *lost* ranks.
//!
//! A lost rank is reported immediately, and again with all other losses at the end.
//! The rank's process group is killed, so that no process acts in the rank's name.
//! The PMI server notifies the other ranks, and barriers no longer include the rank.
//!
//! The exit status is that of the survivors; without survivors it is that of the first lost rank.
//! An abort, a malformed request or a failed start is not a death but a failure of the job.

use super::super::jobs::Jobs;
use super::JobControl;
use crate::hosts::Host;
use crate::hosts::map::MapError;
use crate::launch::ending::Cause;
use crate::launch::program::{App, Plan};
use crate::pmi::Proc;
use std::collections::BTreeSet;

/// The last words of the message about a loss: the option that lets the job continue.
const HOW: &str = "(--with-ft ulfm)";

/// The lost ranks and hosts so far.
#[derive(Debug, Default)]
pub(in super::super) struct Losses {
    /// The exit code of the first lost rank.
    first: Option<i32>,
    /// Lost hosts, on which no further rank is placed.
    hosts: BTreeSet<u32>,
    /// Other hosts whose daemons have sent at least one frame.
    reached: BTreeSet<u32>,
}

impl Losses {
    /// Records that the daemon of another host has sent a frame.
    pub(in super::super) fn note_reached(&mut self, host: u32) {
        self.reached.insert(host);
    }

    /// Returns true if the daemons of the hosts of all `ranks` have ever sent a frame.
    /// The loss of a host whose daemon has not sent a frame is a failed start.
    pub(super) fn were_reached(&self, ranks: &[Proc], jobs: &Jobs<'_>) -> bool {
        let mut ranks = ranks.iter().filter_map(|&proc| jobs.get(proc));
        ranks.all(|rank| self.reached.contains(&rank.host))
    }

    /// Returns true if the host of one of these ranks was reached, so that the rank may run.
    pub(super) fn was_one_reached(&self, ranks: &[Proc], jobs: &Jobs<'_>) -> bool {
        let mut ranks = ranks.iter().filter_map(|&proc| jobs.get(proc));
        ranks.any(|rank| self.reached.contains(&rank.host))
    }

    /// Returns the host of each rank of a job that is about to start.
    /// Living ranks occupy slots, and lost hosts have none.
    pub(in super::super) fn place(
        &self,
        plan: &Plan,
        apps: &[App],
        jobs: &Jobs<'_>,
    ) -> Result<Vec<Vec<usize>>, MapError> {
        let used: Vec<u32> = jobs.alive().map(|(_, rank)| rank.host).collect();
        place_beside(plan, apps, &used, &self.hosts)
    }
}

impl JobControl<'_> {
    /// Records the death of a rank; the other ranks continue.
    pub(super) fn lose(&mut self, proc: Proc, cause: &Cause, code: i32) {
        if !self.is_running() || self.is_explained(proc) {
            return;
        }
        let mut text = self.ranks.sentence(proc, cause);
        if self.ranks.jobs.any_alive() {
            text += &format!(" The job goes on without it {HOW}.");
        }
        self.ranks.outputs.say(&text);
        self.record_lost(proc, cause, code);
    }

    /// Records the loss of hosts and of all ranks on them; the other ranks continue.
    pub(super) fn lose_with_hosts(&mut self, hosts: &[u32], ranks: &[Proc], why: &str) {
        self.losses.hosts.extend(hosts);
        if !self.is_running() {
            return;
        }
        for &host in hosts {
            let on_host = |proc: &Proc| {
                self.ranks
                    .jobs
                    .get(*proc)
                    .is_some_and(|rank| rank.host == host)
            };
            let lost: Vec<Proc> = ranks.iter().copied().filter(on_host).collect();
            if lost.is_empty() {
                continue;
            }
            let name = self.ranks.jobs.host_name(host);
            let cause = Cause::HostLost {
                host: name.clone(),
                why: why.into(),
            };
            if let [one] = lost.as_slice() {
                self.lose(*one, &cause, 1);
                continue;
            }
            let ranks = self.ranks.jobs.names_of(&lost);
            let mut text = format!("{ranks} are lost with their host {name}: {why}.");
            if self.ranks.jobs.any_alive() {
                text += &format!(" The job goes on without them {HOW}.");
            }
            self.ranks.outputs.say(&text);
            for proc in lost {
                self.record_lost(proc, &cause, 1);
            }
        }
        self.find_abandoned();
    }

    /// Records a loss, kills the rank's remaining processes, and notifies the other ranks.
    fn record_lost(&mut self, proc: Proc, cause: &Cause, code: i32) {
        self.losses.first.get_or_insert(code);
        self.ranks.jobs.record_lost(proc, cause.to_string());
        self.ranks.local.close_socket(proc);
        self.ranks.local.end_group_of(proc);
        let effects = self.server.died(proc);
        self.carry_out(effects);
    }

    /// Sets the exit status to that of the first lost rank if all ranks have ended as lost.
    pub(in super::super) fn count_losses(&mut self) {
        let survivors = self
            .ranks
            .jobs
            .iter()
            .filter(|(_, rank)| rank.lost.is_none());
        let survived = survivors.count() > 0 || self.ranks.jobs.has_forgotten();
        if let (false, Some(first)) = (survived, self.losses.first) {
            self.ending.fail(first);
        }
    }

    /// Reports all lost ranks after all other output, unless the job was ended.
    pub(in super::super) fn report_losses(&mut self) {
        // If the job had one rank, its loss has been reported already.
        if !self.is_running() || self.losses.first.is_none() || self.ranks.jobs.count() == 1 {
            return;
        }
        let losses = self.ranks.jobs.losses();
        self.ranks.outputs.say(&losses);
    }
}

/// Places programs on free slots of hosts that are not lost;
/// `used` contains the host of each living rank.
///
/// If there are too few free slots, the living ranks are ignored.
fn place_beside(
    plan: &Plan,
    apps: &[App],
    used: &[u32],
    lost: &BTreeSet<u32>,
) -> Result<Vec<Vec<usize>>, MapError> {
    let is_there = |host: &usize| !lost.contains(&(*host as u32));
    let there: Vec<usize> = (0..plan.hosts.len()).filter(is_there).collect();
    let mut apps = apps.to_vec();
    if !lost.is_empty() {
        for app in &mut apps {
            app.hosts.retain(is_there);
            if app.hosts.is_empty() {
                app.hosts.clone_from(&there);
            }
        }
    }
    let mut free: Vec<Host> = plan.hosts.clone();
    for &host in used {
        if let Some(host) = free.get_mut(host as usize) {
            host.slots = host.slots.saturating_sub(1);
        }
    }
    let fits = |placed: &Vec<Vec<usize>>| {
        let ranks = |host: usize| placed.iter().flatten().filter(|&&on| on == host).count();
        (0..free.len()).all(|host| ranks(host) <= free[host].slots)
    };
    match plan.place_on(&apps, &free) {
        Ok(placed) if fits(&placed) => Ok(placed),
        _ => plan.place(&apps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Request, request};

    fn placed(spawn: &str, used: &[u32], lost: &[u32]) -> Vec<usize> {
        let plan = |line: &str| {
            let words = format!("mpirun {line}");
            match request(words.split(' ').map(Into::into)).unwrap() {
                Request::Job(plan) => plan,
                Request::Restart(_)
                | Request::Daemon
                | Request::DaemonWithImages
                | Request::Adoption { .. } => {
                    panic!("{line} makes a daemon")
                }
            }
        };
        let first = plan("--with-ft ulfm -host a:2,b:2,c:2 -n 6 prog");
        let mut apps = plan(&format!("-host a,b,c {spawn} prog")).apps;
        for app in &mut apps {
            app.hosts.clear();
        }
        let lost = lost.iter().copied().collect();
        place_beside(&first, &apps, used, &lost).unwrap().concat()
    }

    #[test]
    fn a_spare_takes_the_place_of_a_dead_rank() {
        assert_eq!(placed("-n 1", &[0, 0, 1, 2, 2], &[]), [1]);
        assert_eq!(placed("-n 2", &[0, 1, 1, 2], &[]), [0, 2]);
    }

    #[test]
    fn a_spawned_job_fills_the_slots_that_are_left() {
        assert_eq!(placed("-n 3", &[0, 0, 1], &[]), [1, 2, 2]);
        assert_eq!(placed("--map-by node -n 2", &[0], &[]), [0, 1]);
    }

    #[test]
    fn more_ranks_than_free_slots_are_placed_as_if_nothing_ran() {
        assert_eq!(placed("-n 2", &[0, 0, 1, 2, 2], &[]), [0, 0]);
    }

    #[test]
    fn nothing_runs_on_a_host_that_is_lost() {
        assert_eq!(placed("-n 2", &[0, 0, 2, 2], &[1]), [0, 0]);
        assert_eq!(placed("-n 1", &[0, 2, 2], &[1]), [0]);
        assert_eq!(placed("-n 3", &[1, 1, 2, 2], &[0]), [1, 1, 2]);
    }
}
